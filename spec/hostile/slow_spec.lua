-- Real servers on which a login takes longer than a question may, as on a very busy host.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"

local TTL, SLOW = 2, 0.8 -- seconds; a question to a store has a quarter of the TTL, or less

-- A way to a server on which a connection's first byte is late.
local function late(port)
  return assert(crown.tcp.listen("127.0.0.1", 0, function(peer)
    crown.sleep(SLOW)
    local upstream = crown.tcp.connect("127.0.0.1", port)
    if not upstream then return peer:close() end
    for _, one in ipairs { peer, upstream } do one:set_timeout(3600) end
    local function pump(from, to)
      for bytes in function() return from:read "*s" end do to:write(bytes) end
      from:close()
      to:close()
    end
    crown.spawn(pump, peer, upstream)
    pump(upstream, peer)
  end))
end

local STORES = {
  { "Postgres", Postgres, "postgres://crown@127.0.0.1:%d/crown" },
  { "Postgres, with the advisory lock", Postgres, "postgres+advisory://crown@127.0.0.1:%d/crown" },
  { "Redis", Redis, "redis://127.0.0.1:%d" },
  { "NATS", Nats, "nats://127.0.0.1:%d/B" },
}

describe("an election on a server on which a login takes longer than a question may:", function()
  for _, store in ipairs(STORES) do
    it(store[1] .. " gets more time for it with each try, and leads", function()
      local server = store[2].start()
      local way = late(server.port)
      local one = Candidate.start { node = "one", log = tempdir() .. "/log",
        args = { "--oracle", store[3]:format(way:port()) .. "?amnesia_wait=0&ttl=" .. TTL, "run", "slow", "sleep", "1000" } }
      eventually(function() return one:output():find "leading 'slow'" end, 20)
      one:destroy()
      way:close()
      server:destroy()
    end)
  end
end)

describe("a client of Postgres whose server never answers a login", function()
  it("waits longer with each try, as it pauses longer before it", function()
    local TIMEOUT, LONG = 0.1, 0.35 -- seconds; the sixth pause is 0.4 at least
    local tries, long = 0, 0
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(peer)
      local came = crown.now()
      peer:read("*a", 3600)
      peer:close()
      tries, long = tries + 1, long + (crown.now() - came >= LONG and 1 or 0)
    end))
    local client = assert(crown.postgres.new(("postgres://crown@127.0.0.1:%d/crown?sslmode=disable"):format(listener:port()),
      { timeout = TIMEOUT }))
    client:listen("channel", print)
    eventually(function() return long == 3 or tries == 10 end, 60)
    client:close()
    listener:close()
    assert.equal(3, long)
  end)
end)

describe("a server of Postgres that takes one login after another, those that were given up as well,", function()
  local LOGIN, TIMEOUT, COUNT = 0.02, 2, 400 -- seconds of each, and of a client; all at once would take four times as long
  local WELL = "R\0\0\0\8\0\0\0\0Z\0\0\0\5I"
  local ANSWER = "E\0\0\0\29SERROR\0CXX000\0Mwell met\0\0Z\0\0\0\5I"

  -- What a server says whose next turn is free at some instant.
  local function serve(peer, free_at)
    crown.sleep(free_at - crown.now())
    local length = peer:read(4)
    if not length or not peer:read(length:byte(4) - 4) or not peer:write(WELL) then return end
    while peer:read "*s" and peer:write(ANSWER) do end
  end

  it("lets in a runtime with many connections, which has only some of them log in at a time", function()
    local free_at, let_in = 0, 0
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(peer)
      peer:set_timeout(3600)
      free_at = math.max(free_at, crown.now()) + LOGIN
      serve(peer, free_at)
      peer:close()
    end))
    local clients = {}
    for i = 1, COUNT do
      clients[i] = assert(crown.postgres.new(("postgres://crown@127.0.0.1:%d/crown?sslmode=disable&target_session_attrs=any")
        :format(listener:port()), { timeout = TIMEOUT }))
      crown.spawn(function()
        eventually(function() return select(2, clients[i]:query "SELECT 1"):find "well met" end, 20)
        let_in = let_in + 1
      end)
    end
    local fine, problem = pcall(eventually, function() return let_in == COUNT end, 20)
    for _, one in ipairs(clients) do one:close() end
    listener:close()
    assert(fine, ("%s: %d of %d are in"):format(problem, let_in, COUNT))
  end)
end)
