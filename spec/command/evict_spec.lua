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

  -- Whoever is on call has a shell without the service's environment.
  it("says which store it has asked where none was named", function()
    local dir = tempdir()
    local result = run({ "evict", "--force", "e" }, { env = { CROWN_DIRECTORY = dir } })
    assert.same({ 1, ("crown-lua: evict: nobody leads 'e' in file:%s; --oracle URL or CROWN_ORACLE names another store\n"):format(dir) },
      { result.code, result.stderr })
  end)
end)
