local candidate = require "crown.oracle.candidate"
local Elections = require "support.elections"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"

local function opts(name) return { crown_name = name, token = "0a-1" } end

describe("a candidate", function()
  it("has one token from one runtime of its to the next, and another than its runtime's other elections", function()
    local a = candidate.enter("store", "a", opts "a")
    assert.equal(a, candidate.enter("store", "a", opts "a"))
    assert.are_not.equal(a, candidate.enter("store", "b", opts "b"))
    assert.matches("^0a%-1%-%x%x%x%x%x%x%x%x$", a)
  end)

  it("has a token of its own for each of thousands", function()
    local tokens = {}
    for i = 1, 2000 do
      local token = candidate.enter("a store", "lock " .. i, opts("e" .. i))
      assert.is_nil(tokens[token])
      tokens[token] = true
    end
  end)

  it("comes at one instant with a few others, and a little apart from thousands, as long as they are there", function()
    local mine = Elections.new()
    local function most_apart()
      local most = 0
      for _ = 1, 50 do most = math.max(most, candidate.apart()) end
      return most
    end
    assert.is_true(most_apart() < 0.01)
    for _ = 1, 2000 do mine:elect { name = Elections.unique(), oracle = "memory:apart" } end
    local most = most_apart()
    mine:stop()
    assert.is_true(most > 0.1 and most < 0.5)
    eventually(function() return most_apart() < 0.01 end, 30)
  end)

  it("is alone on its lock in its runtime", function()
    assert(candidate.enter("one", "l", opts "a"))
    local token, problem = candidate.enter("one", "l", opts "b")
    assert.is_nil(token)
    assert.matches("election 'a' of this runtime is on the lock 'l'", problem)
    assert(candidate.enter("two", "l", opts "b"))
  end)

  for _, url in ipairs { "redis://127.0.0.1:1", "postgres://u@127.0.0.1:1/d", "postgres+advisory://u@127.0.0.1:1/d",
    "nats://127.0.0.1:1/B", "etcd://127.0.0.1:1", "http://127.0.0.1:1" } do
    it("is refused at the start as the second one on a lock of " .. url, function()
      local path = tempdir() .. "/app.lua"
      local file = assert(io.open(path, "w"))
      file:write 'for _, name in ipairs { "a", "b" } do require("crown").elect { name = name, oracle = { arg[1], lock = "l" } } end'
      file:close()
      local result = run { "check", path, url }
      assert.equal(2, result.code, result.stderr)
      assert.matches("elect 'b'.*election 'a' of this runtime.*lock 'l'", result.stderr)
    end)
  end
end)
