-- /healthz?store=1: whether this candidate could lead, if it were its turn.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"

describe("/healthz?store=1", function()
  local started, server, leader, follower

  before_each(function() started = {} end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
    server:destroy()
  end)

  local function start(url, node, place)
    local one = Candidate.start { args = { "--log-level", "info", "run", "--quiet", "--oracle", url, "--http", "127.0.0.1:0",
      "web", "sleep", "60" }, node = node, log = tempdir() .. "/log", env = { CROWN_DIRECTORY = place } }
    started[#started + 1] = one
    one.port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 20)
    return one
  end

  local function ask(one) return http.ask(one.port, "GET /healthz?store=1") end

  local STORES = {
    redis = { Redis, "?ttl=5&amnesia_wait=0" },
    etcd = { Etcd, "?ttl=5" },
  }

  it("is 503 while a candidate sits out what the store may have forgotten, and as long as it may not know, and so says status", function()
    server = Redis.start()
    local place = tempdir()
    follower = start(server.url .. "?ttl=2&amnesia_wait=600", "one", place)
    local reply = eventually(function()
      local found = ask(follower)
      return found.status == 503 and found
    end, 20)
    assert.matches("^'web': its store may have forgotten who leads: this candidate claims again in %d+ s", reply.body)
    local page = http.ask(follower.port, "GET /").body
    assert.matches('class="lease">next claim in %d', page)
    assert.matches('class="store warn">redis: may have forgotten who leads', page)
    assert.matches('<li class="warn">web: the store may have forgotten who leads', page)
    assert.matches("redis: amnesia, claims in %d", run({ "status" }, { env = { CROWN_DIRECTORY = place } }).stdout)
    follower:destroy()
    server:call "FLUSHALL" -- it is new again
    local url = server.url .. "?ttl=6&amnesia_wait=2"
    for _, one in ipairs { start(url, "two"), start(url, "three") } do -- whichever of them leads
      eventually(function() return one:output():find("oracle.amnesia", 1, true) end, 30)
      eventually(function()
        return ask(one).status == 200 and not http.ask(one.port, "GET /").body:find('<li class="warn">', 1, true)
      end, 30)
    end
  end)

  for name, store in pairs(STORES) do
    it("is 503 for a follower whose store has been away for longer than a lease, on " .. name, function()
      server = store[1].start()
      if server.trusted then server:trusted() end
      local url = server.url .. store[2]
      leader = start(url, "one")
      eventually(function() return leader:pids("child")[1] end, 30)
      follower = start(url, "two")
      follower:follows()
      eventually(function() return ask(follower).status == 200 end)
      server:freeze()
      local reply = eventually(function()
        local found = ask(follower)
        return found.status == 503 and found
      end, 60)
      assert.matches("^'web': its store has given no answer for %d+ s: %S", reply.body)
      server:thaw()
      eventually(function() return ask(follower).status == 200 end, 30)
    end)
  end
end)
