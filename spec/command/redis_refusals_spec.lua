-- What Redis refuses, to a candidate and to crown-lua check --store: each with the cause and the next step.
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

  it("is not told to have a wrong host or port where nobody listens at a socket", function()
    local tried = try "redis+unix:///nowhere.sock"
    assert.equal(3, tried.code)
    has("is this the path of its socket?", tried.stderr)
    assert.is_nil(tried.stderr:find("host and port", 1, true))
  end)
end)
