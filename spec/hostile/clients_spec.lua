-- Every client against a server that plays tricks, with a healthy election beside.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local tricks = require "support.tricks"
local Victim = require "support.victim"

local CONNECTIONS_MOST = 40 -- that one client may open in some seconds; without growing pauses there are more

local function run(servers)
  local urls = {}
  for client, server in pairs(servers) do urls[#urls + 1] = Victim.URLS[client]:format(server.port) end
  return Victim.start(urls)
end

describe("a server that plays tricks on every client", function()
  for name, script in pairs(tricks) do
    it(name, function()
      local servers = {}
      for client in pairs(Victim.URLS) do servers[client] = Hostile.start(script) end
      local app = run(servers)
      for client, server in pairs(servers) do
        eventually(function() return server.count > 0 or error(client) end, 10)
      end
      crown.sleep(1.5) -- the trick itself takes its time
      app:finish()
      for client, server in pairs(servers) do
        server:destroy()
        assert.is_true(server.count < CONNECTIONS_MOST, client .. ": " .. server.count .. " connections")
      end
    end)
  end
end)

-- After a word that no code of ours expected, the client has to be there for the next connection.
describe("a client that", function()
  local GREETING = "say INFO {}\\r\\n\nhear PING\nsay PONG\\r\\n\n"
  local CASES = {
    { "nats", "reads INFO that is no table", "say INFO 5\\r\\n" },
    { "nats", "reads a message without words", GREETING .. "say MSG\\r\\n" },
    { "nats", "reads a message whose size is nan", GREETING .. "say MSG a 1 nan\\r\\n" },
    { "nats", "reads a message whose size is none", GREETING .. "say MSG a 1 -3\\r\\n" },
    { "sentinel", "hears of a primary whose port is none", "hear main\nsay *2\\r\\n$1\\r\\na\\r\\n$1\\r\\nx\\r\\n" },
    { "sentinel", "hears of a primary that is a number", "hear main\nsay :5\\r\\n" },
    { "redis", "is answered what it did not ask for", "say :5\\r\\n:6\\r\\n:7\\r\\n" },
  }
  for _, case in ipairs(CASES) do
    it(case[2] .. " dials anew", function()
      local server = Hostile.start(case[3])
      local app = run { [case[1]] = server }
      eventually(function() return server.count >= 3 end, 15)
      app:finish()
      server:destroy()
    end)
  end
end)

describe("a Redis server that answers its script in a way of its own", function()
  local GREETING = "hear INFO\nsay $22\\r\\nmaster_replid:abcdef01\\r\\n\nhear ROLE\nsay *1\\r\\n$6\\r\\nmaster\\r\\n\nhear SCRIPT\n"
    .. ("say +0123\\r\\n\nhear SCRIPT\n"):rep(2) .. "say +0123\\r\\n\nhear EVALSHA\nsay "
  for what, answer in pairs { ["a number"] = ":5", ["too few"] = "*1\\r\\n:5", ["numbers"] = "*3\\r\\n:5\\r\\n:5\\r\\n:5",
    ["half a record"] = "*3\\r\\n$1\\r\\nm\\r\\n*1\\r\\n$1\\r\\nv\\r\\n:5" } do
    it("is refused in words: " .. what, function()
      local server = Hostile.start(GREETING .. answer .. "\\r\\n")
      local app = run { redis = server }
      eventually(function() return app:output():find "unexpected reply from Redis" end, 20)
      app:finish()
      server:destroy()
    end)
  end
end)

describe("a Postgres client whose connections die as soon as they are open", function()
  it("makes pauses that grow", function()
    local server = Hostile.start("wait 0.01\n" .. Hostile.LETS_IN .. "close")
    local client = assert(crown.postgres.connect(
      ("postgres://x@127.0.0.1:%d/x?sslmode=disable&target_session_attrs=any"):format(server.port)))
    assert(client:listen("news", function() end))
    crown.sleep(2)
    client:close()
    assert.is_true(server.count > 2 and server.count < 20, server.count .. " connections")
    server:destroy()
  end)
end)

-- With flat pauses of 50 ms there were fifty and more.
describe("pauses between tries", function()
  for _, client in ipairs { "redis", "nats", "subscriber", "watch", "listener", "registry" } do
    it("grow: " .. client, function()
      local server = Hostile.start "close"
      local app = run { [client] = server }
      eventually(function() return server.count > 0 end, 10)
      crown.sleep(3)
      local count = server.count
      app:finish()
      assert.is_true(count > 2 and count < 16, count .. " connections")
      server:destroy()
    end)
  end
end)

describe("a Redis connection whose answer comes late", function()
  it("is given up: the answer is not taken for the next question's", function()
    local server = Hostile.start("hear slow\nwait 0.9\nsay $4\\r\\nlate\\r\\n", "hear GET\nsay $4\\r\\nmine\\r\\n")
    local client = assert(crown.redis.connect(("redis://127.0.0.1:%d"):format(server.port), { timeout = 0.6 }))
    local value, _, code = client:call("GET", "slow")
    assert.is_nil(value)
    assert.equal("timeout", code)
    crown.sleep(0.4)
    assert.equal("mine", client:call("GET", "other"))
    assert.equal(2, server.count)
    client:close()
    server:destroy()
  end)
end)
