-- What Redis refuses, to a candidate and to crown-lua check --store: each with the cause and the next step.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Redis = require "support.redis"
local run = require "support.run"

describe("a Redis server that refuses a candidate", function()
  local server

  setup(function() server = Redis.start() end)
  teardown(function() server:destroy() end)

  local function has(words, text) assert.truthy(text:find(words, 1, true), ("%q is not in: %s"):format(words, text)) end

  local function try(url) return run { "run", "--once", "--wait", "1", "--oracle", url, "x", "true" } end

  for title, case in pairs {
    ["a database that it does not have, as misuse"] = { "redis://%s/99", 2, "DB index is out of range; the server has fewer databases" },
    ["too few replicas"] = { "redis://%s?min_replicas=3&trust_empty=true", 3, "only 0 of 3 replicas have it; are the replicas connected" },
    ["that it is no node of a cluster, as misuse"] = { "redis+cluster://%s", 2, "no node of a cluster: have the URL begin with redis://" },
    ["that it is no Sentinel"] = { "redis+sentinel://%s/mine", 3, "name the Sentinels' hosts and ports in the URL" },
  } do
    it("says " .. title .. ", and what to do", function()
      local url = case[1]:format("127.0.0.1:" .. server.port)
      local tried, checked = try(url), run { "check", "--store", "--oracle", url, "run", "x", "true" }
      assert.equal(case[2], tried.code, tried.stderr)
      has(case[3], tried.stderr)
      assert.equal(2, checked.code, checked.stdout .. checked.stderr)
    end)
  end

  it("says that it has as many clients as it takes", function()
    server:call("CONFIG", "SET", "maxclients", "1")
    finally(function() server:call("CONFIG", "SET", "maxclients", "100") end)
    local tried = try("redis://127.0.0.1:" .. server.port)
    assert.equal(3, tried.code)
    has("max number of clients reached; raise the server's maxclients", tried.stderr)
    assert.is_nil(tried.stderr:find("nobody asked for", 1, true), tried.stderr)
  end)

  it("is asked for its log, and for no other port, where it has answered before", function()
    local client = assert(crown.redis.connect(server.url, { timeout = 0.3 }))
    assert.equal("PONG", client:call "PING")
    server:freeze()
    finally(function()
      server:thaw()
      client:close()
    end)
    for _ = 1, 3 do -- the later ones on connections that it never answers
      local answer, problem = client:call "PING"
      assert.is_nil(answer)
      has("; look at the server's log, and at the network", problem)
    end
  end)

  it("says that it is busy with a script, by its name, and how to end that", function()
    local url = ("redis://127.0.0.1:%d?trust_empty=true&timeout=1"):format(server.port)
    server:call("CONFIG", "SET", "busy-reply-threshold", "50")
    local client = assert(crown.redis.connect(server.url, { timeout = 60 }))
    crown.spawn(function() client:call("EVAL", "while true do end", "0") end)
    finally(function()
      server:call("SCRIPT", "KILL")
      client:close()
    end)
    eventually(function() return select(3, server:call "PING") == "BUSY" end, 10)
    local words = ("redis at 127.0.0.1:%d: BUSY Redis is busy running a script"):format(server.port)
    for _, words_of in ipairs { { "check", "--store", "--oracle", url, "run", "x", "true" }, { "info", "--oracle", url },
      { "evict", "--force", "x", "--oracle", url }, { "pause", "x", "--oracle", url } } do
      local result = run(words_of)
      assert.equal(words_of[1] == "check" and 2 or 3, result.code, result.stdout .. result.stderr)
      has(words, result.stdout .. result.stderr)
      has("NOSAVE; end the script", result.stdout .. result.stderr)
    end
  end)

  it("has check --store wait for a write no longer than a candidate would", function()
    eventually(function() return server:call("CLIENT", "PAUSE", "60000", "WRITE") == "OK" end, 10) -- a killed script has ended
    finally(function() server:call("CLIENT", "UNPAUSE") end)
    local checked = run { "check", "--store", "--oracle", ("redis://127.0.0.1:%d?ttl=2"):format(server.port), "run", "x", "true" }
    assert.equal(2, checked.code, checked.stdout)
    has("the server refuses a write: no answer in time", checked.stdout)
  end)

  it("keeps no command from running once whose user may not subscribe", function()
    server:call("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "&*", "+@all", "-subscribe")
    local url = ("redis://deaf:secret@127.0.0.1:%d?trust_empty=true&amnesia_wait=0"):format(server.port)
    local result = run { "run", "--oracle", url, "--once", "deaf", "echo", "ran" }
    assert.same({ 0, "ran\n" }, { result.code, result.stdout }, result.stderr)
  end)

  it("is not told to have a wrong host or port where nobody listens at a socket", function()
    local tried = try "redis+unix:///nowhere.sock"
    assert.equal(3, tried.code)
    has("is this the path of its socket?", tried.stderr)
    assert.is_nil(tried.stderr:find("host and port", 1, true))
  end)
end)
