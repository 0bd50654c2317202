-- Elections in the register in Redis, beside restarts, older versions, and what made two leaders where a lease was a key with an end.
local crown = require "crown"
local driven = require "crown.oracle.driven"
local driver = require "crown.stores.redis"
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Player = require "support.oracle_candidate"
local Redis = require "support.redis"
local register = require "support.redis_register"

local PATIENCE = 60

local key_of = register.key_of

describe("an election in the register in Redis", function()
  local module = driven.oracle(driver)
  local start, destroy = own_servers(Redis.start)
  after_each(destroy)

  it("is led on by those that led as the server restarts", function()
    local server, players, epochs = start { config = "appendonly yes\n" }, {}, {}
    for i = 1, 100 do
      players[i] = Player.new(module, { name = "restarts-" .. i, token = "token", node = "one", url = server.url, ttl = 20,
        amnesia_wait = 0, trust_empty = true })
      epochs[i] = players[i]:win()[4]
    end
    server:down()
    server:up()
    for i, one in ipairs(players) do
      local verdict = one:answered("refresh", PATIENCE)
      assert.same({ "granted", epochs[i] }, { verdict[1], verdict[4] })
    end
  end)

  it("follows a lease of an older version as soon as that is over, once it has waited for long enough", function()
    local server, name = start(), "older"
    server:call("HSET", key_of(name, "lease"), "token", "t", "node", "old-node", "epoch", "17", "claim", "1")
    server:call("SET", key_of(name, "epoch"), "17")
    server:call("PEXPIRE", key_of(name, "lease"), "60000")
    local one = Player.new(module, { name = name, node = "one", url = server.url, ttl = 1, amnesia_wait = 0 })
    eventually(function()
      local verdict = one:claim()
      assert.same({ "denied", "old-node", 17 }, { verdict[1], verdict[3], verdict[4] })
      local text = server:call("HGET", key_of "@store", "record")
      return text and not text:find('"doubt"', 1, true)
    end, PATIENCE)
    server:call("DEL", key_of(name, "lease"))
    assert.equal("granted", one:claim()[1])
  end)

  it("that is new begins at once where others have been led for a while", function()
    local server = start()
    local function player(name, node)
      return Player.new(module, { name = name, node = node, url = server.url, ttl = 1, amnesia_wait = 0 })
    end
    player("first", "one"):win()
    assert.equal("granted", player("second", "two"):claim()[1])
    server:call("DEL", key_of "second")
    assert.equal("denied", player("second", "three"):claim()[1])
  end)

  -- What made two leaders where a lease was a key with an end.
  local function hurt_by(what, hurt, environment)
    it("has no second leader " .. what, function()
      local clock = environment and require("support.wrong_clock").new(0)
      local server = start { config = "appendonly yes\n", env = clock and clock:environment() }
      local function player(node)
        return Player.new(module, { name = "hurt", node = node, url = server.url .. "?timeout=" .. (node == "one" and 19 or 20),
          ttl = 3, amnesia_wait = 0 })
      end
      local one, two = player "one", player "two"
      one:win()
      local acts_until = crown.now() + 3
      assert.equal("denied", two:claim()[1])
      hurt(server, clock, function()
        local at = crown.now()
        if one:refresh()[1] == "granted" then acts_until = at + 3 end
      end)
      local newcomer = player "three"
      while crown.now() < acts_until do
        for _, other in ipairs { two, newcomer } do
          local verdict = other:claim()
          assert.is_true(verdict[1] ~= "granted" or crown.now() > acts_until, "two lead")
        end
        crown.sleep(0.2)
      end
    end)
  end

  local function each_key(server, ...)
    for _, key in ipairs(server:call("KEYS", "*")) do
      local words = { ... }
      server:call(words[1], key, unpack(words, 2))
    end
  end

  hurt_by("where keys that end are evicted", function(server)
    server:call("CONFIG", "SET", "maxmemory-policy", "volatile-random")
    server:call("CONFIG", "SET", "maxmemory", "1mb")
    for _ = 1, 50 do server:call("SET", "other", ("x"):rep(100000), "EX", "100") end
    server:call("CONFIG", "SET", "maxmemory", "0")
  end)
  hurt_by("where every key may be evicted, and the election's is", function(server, _, refresh)
    server:call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    server:call("CONFIG", "SET", "maxmemory", "1mb")
    eventually(function()
      server:call("SET", "other", ("x"):rep(100000))
      return server:call("EXISTS", key_of "hurt") == 0
    end, PATIENCE)
    refresh()
    server:call("CONFIG", "SET", "maxmemory", "0")
    server:call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    refresh()
  end)
  hurt_by("where somebody takes the keys' ends away", function(server) each_key(server, "PERSIST") end)
  hurt_by("where the server's clock is set back and put right", function(_, clock, refresh)
    clock:set(-3600)
    refresh()
    clock:set(0)
  end, true)
  hurt_by("where the server's clock is stepped forward", function(_, clock) clock:set(3600) end, true)
  hurt_by("where the election's record is deleted", function(server) server:call("DEL", key_of "hurt") end)
  hurt_by("where the election's record is given an end by hand", function(server)
    server:call("PEXPIRE", key_of "hurt", "1")
    eventually(function() return server:call("EXISTS", key_of "hurt") == 0 end)
  end)
  hurt_by("where all is lost", function(server) server:call "FLUSHALL" end)
end)
