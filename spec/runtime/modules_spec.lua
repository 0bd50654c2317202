-- Where Lua modules are found: ours are inside the program, and no file comes before them.
local crown = require "crown"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("a module", function()
  it("of ours is not replaced by a file on the path, such as an older one that luarocks has installed", function()
    local dir = tempdir()
    assert(os.execute("mkdir -p " .. dir .. "/crown/text") == 0)
    write_file(dir .. "/crown/text/hex.lua", "return 'of somebody else'")
    write_file(dir .. "/any.lua", "return 'of somebody else'")
    write_file(dir .. "/app.lua", [[
      package.path = arg[1] .. "/?.lua;" .. arg[1] .. "/any.lua;" .. package.path
      print(require "crown.text.hex" "\1\255")]])
    assert.equal("01ff\n", run { dir .. "/app.lua", dir }.stdout)
  end)

  it("of ours is replaced on purpose, by package.preload", function()
    local path = tempdir() .. "/app.lua"
    write_file(path, [[
      package.preload["crown.text.hex"] = function() return "of the app" end
      print(require "crown.text.hex")]])
    assert.equal("of the app\n", run { path }.stdout)
  end)

  -- Root, who asks for the status in a folder of another user's, would run that user's program.
  it("of nobody else's is run by a command, wherever that is called", function()
    local dir = tempdir()
    local planted = 0
    for name in assert(crown.exec({ "sh", "-c", "cd lua && find crown -name '*.lua'" })).stdout:gmatch "%S+" do
      assert(os.execute(("mkdir -p %s/%s"):format(dir, name:match "^(.*)/")) == 0)
      write_file(dir .. "/" .. name, ("io.stderr:write 'somebody else runs %s\\n' os.exit(70)"):format(name))
      planted = planted + 1
    end
    assert.is_true(planted > 100)
    for _, words in ipairs { "status", "info", "history", "run --once job -- true", "--version --verbose", "help run" } do
      local result = assert(crown.exec({ "sh", "-c", ('cd %s && exec "$0" %s'):format(dir, words), program },
        { timeout = 60, env = { CROWN_DIRECTORY = dir .. "/user" } }))
      assert.is_nil(result.stderr:find("somebody else", 1, true), result.stderr)
      assert.is_true(result.code < 2, result.stderr)
    end
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
