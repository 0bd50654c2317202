-- Real servers that take nobody more, or log in whom they cannot serve: who is sent away comes back at growing pauses.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Pgbouncer = require "support.pgbouncer"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local Victim = require "support.victim"

local SECONDS = 4
local MOST = 14 -- tries of one client in that time: without a pause there were thousands a second

describe("a server that is full", function()
  it("is not stormed: Redis with maxclients 1", function()
    local store = Redis.start { config = "maxclients 1\n" }
    local function rejected() return tonumber(store:call("INFO", "stats"):match "rejected_connections:(%d+)") end
    assert.equal(0, rejected()) -- the spec is the one client
    local victim = Victim.start { Victim.URLS.redis:format(store.port), Victim.URLS.subscriber:format(store.port) }
    eventually(function() return rejected() > 1 end, 20)
    crown.sleep(SECONDS)
    local tries = rejected()
    victim:finish()
    store:destroy()
    assert.is_true(tries < 2 * 2 * MOST, tries .. " tries") -- an election has two connections
  end)

  it("is not stormed: a pooler without its server", function()
    local server = Postgres.start()
    local pooler = Pgbouncer.start(server)
    server:destroy()
    local function logins() return select(2, pooler.process:output():gsub("login attempt", "")) end
    local before = logins()
    local place = ("crown@127.0.0.1:%d/crown?ttl=4"):format(pooler.port)
    local victim = Victim.start { "postgres://" .. place, "postgres+advisory://" .. place }
    eventually(function() return logins() > before + 1 end, 20)
    crown.sleep(SECONDS)
    local tries = logins() - before
    victim:finish()
    pooler:destroy()
    assert.is_true(tries < 2 * MOST, tries .. " tries")
  end)
end)
