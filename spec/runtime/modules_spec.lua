-- Where Lua modules are found: ours are inside the program, and a file on the path wins.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("a module", function()
  it("of ours is replaced by a file on the path", function()
    local dir = tempdir()
    assert(os.execute("mkdir -p " .. dir .. "/crown/text") == 0)
    write_file(dir .. "/crown/text/hex.lua", "return 'of the user'")
    write_file(dir .. "/app.lua", "package.path = arg[1] .. '/?.lua;' .. package.path print(require 'crown.text.hex')")
    assert.equal("of the user\n", run { dir .. "/app.lua", dir }.stdout)
  end)

  it("of ours is replaced by a file that stands on the path for every name", function()
    local dir = tempdir()
    write_file(dir .. "/any.lua", "return (...)")
    write_file(dir .. "/app.lua", "package.path = arg[1] .. '/any.lua' print(require 'crown.text.hex')")
    assert.equal("crown.text.hex\n", run { dir .. "/app.lua", dir }.stdout)
  end)

  it("of ours bears its name and its lines", function()
    local path = tempdir() .. "/app.lua"
    write_file(path, [[
      local about = debug.getinfo(require "crown.text.hex", "S")
      print(about.source, about.linedefined)]])
    local line = 0
    for text in io.lines "lua/crown/text/hex.lua" do
      line = line + 1
      if text:find "^local function hex" then break end
    end
    assert.equal(("@crown/text/hex.lua\t%d\n"):format(line), run { path }.stdout)
  end)

  -- For each of some forty modules every start would look through all of that path.
  it("of ours is found without a look at the path of C libraries", function()
    local path = tempdir() .. "/app.lua"
    write_file(path, "print(select(2, pcall(require, 'crown.text.none')))")
    local text = run { path }.stdout
    local inside, library = text:find("inside crown-lua", 1, true), text:find(".so'", 1, true)
    assert.is_true(inside ~= nil and library ~= nil and inside < library, text)
  end)
end)
