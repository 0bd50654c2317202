-- crown-lua evict, on an oracle of the spec's own.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("evict", function()
  -- As where a store tells of the one who was evicted for a moment longer.
  it("takes nobody of the term that it ended for the next leader", function()
    local dir = tempdir()
    write_file(dir .. "/late_store.lua", [[
local looks = 0
return { init = function() end, claim = function() end, refresh = function() end,
  evict = function() return { node = "one", epoch = 7 } end,
  list = function()
    looks = looks + 1
    return { { name = "e", node = looks < 3 and "one" or "two", epoch = looks < 3 and 7 or 8 } }
  end }]])
    local result = run({ "evict", "--oracle", "late_store", "--force", "e" }, { env = { LUA_PATH = dir .. "/?.lua;;" } })
    assert.equal("evicted one from 'e' (epoch 7)\n'e' is led by two now (epoch 8)\n", result.stdout, result.stderr)
  end)
end)
