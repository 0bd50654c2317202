-- A thousand connections of one runtime lose their store at the same moment, and it comes back.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local judge = require "support.judge"
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local COUNT = 1000
local AWAY = 3           -- seconds
local TRIES_MOST = 12    -- of each connection in that time: pauses of 50 ms would make sixty and more
local HELD_MOST = 500    -- ms in which the loop may stand still, less what other processes had
local AT_ONCE_MOST = 0.5 -- of the connections that try within 100 ms, once the pauses have grown

-- Prints, ten times a second: how many connections there are, how many were dialled so far, and how many were dialled within a
-- tenth of a second at most, from a second after the loss on. An election in its memory
-- loses nothing by it.
local APP = [[
local conditions = require "crown.link.conditions"
local crown = require "crown"
local tcp = require "crown.core.tcp"
local open = ({
  redis = function(port) return require("crown.redis.client").new("redis://127.0.0.1:" .. port, { timeout = 5 }) end,
  nats = function(port) return require("crown.nats.bucket").at("nats://127.0.0.1:" .. port, { bucket = "B", timeout = 5 }) end,
  postgres = function(port)
    local client = require("crown.postgres").new("postgres://crown@127.0.0.1:" .. port .. "/crown", { timeout = 5 })
    client:listen("news", function() end)
    return client
  end,
})[arg[1] ]
crown.elect { name = "healthy", oracle = { "memory" }, handlers = {
  won = function(term) print "HEALTHY" while term:valid() do crown.sleep(0.1) end end,
  lost = function() print "UNHEALTHY" end,
} }
local dialled, most = 0, 0
local connect = tcp.connect
function tcp.connect(...)
  dialled = dialled + 1
  return connect(...)
end
local clients = {}
for i = 1, tonumber(arg[3]) do clients[i] = assert(open(arg[2])) end
crown.spawn(function()
  local away = 0 -- tenths of a second
  while true do
    local before = dialled
    crown.sleep(0.1)
    local there = 0
    for _, one in ipairs(conditions.all()) do
      if one.state == "open" or one.state == "proven" then there = there + 1 end
    end
    away = there == 0 and away + 1 or 0
    if away > 10 then most = math.max(most, dialled - before) end
    print(("THERE %d DIALLED %d MOST %d"):format(there, dialled, most))
  end
end)
]]

local function start(name, store)
  local path = tempdir() .. "/app.lua"
  write_file(path, APP)
  local self = { app = Candidate.start { args = { path, name, tostring(store.port), tostring(COUNT) }, node = "many",
    log = path .. ".log", env = { CROWN_LOOP_HELD = path .. ".held" } }, held = path .. ".held" }
  -- @return how many there are, how many were dialled so far, and how many at once
  function self.last()
    local there, dialled, most = self.app:output():match ".*THERE (%d+) DIALLED (%d+) MOST (%d+)\n"
    return tonumber(there), tonumber(dialled), tonumber(most)
  end
  function self.await(count)
    eventually(function() return self.last() == count or error(tostring((self.last()))) end, 60)
  end
  return self
end

local function finish(self)
  local output = self.app:output()
  self.app:destroy()
  assert.is_nil(output:find("UNHEALTHY", 1, true), output)
  assert.is_nil(output:find("a task failed", 1, true), output)
  judge.loop(self.held, HELD_MOST)
end

describe("a thousand connections that lose their store at once", function()
  local STORES = { redis = function() return Redis.start { config = "maxclients 3000\n" } end, nats = Nats.start }
  for name, start_store in pairs(STORES) do
    it("dial it at growing pauses, each in its own time, and are back soon: " .. name, function()
      local store = start_store()
      local many = start(name, store)
      many.await(COUNT)
      crown.sleep(2.5) -- they have proved good
      local before = select(2, many.last())
      store:down()
      many.await(0)
      crown.sleep(AWAY)
      local _, after, most = many.last()
      store:up()
      many.await(COUNT)
      finish(many)
      store:destroy()
      assert.is_true(after - before > COUNT and after - before < TRIES_MOST * COUNT, after - before .. " tries")
      assert.is_true(most < AT_ONCE_MOST * COUNT, most .. " at once")
    end)
  end

  -- libpq dials by itself: who comes is counted where the server was.
  it("dial it at growing pauses, and are back soon: postgres", function()
    local store = Postgres.start { config = "max_connections = 1100" }
    local many = start("postgres", store)
    many.await(COUNT)
    crown.sleep(2.5)
    store:down "immediate"
    many.await(0)
    local tries = 0
    local listener = assert(crown.tcp.listen("127.0.0.1", store.port, function(connection)
      tries = tries + 1
      connection:close()
    end))
    crown.sleep(AWAY)
    listener:close()
    store:up()
    many.await(COUNT)
    finish(many)
    store:destroy()
    assert.is_true(tries > COUNT and tries < TRIES_MOST * COUNT, tries .. " tries")
  end)
end)
