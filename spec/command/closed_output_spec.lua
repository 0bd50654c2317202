-- A standard output that the shell has closed (`>&-`): who prints there has failed.
local crown = require "crown"
local program = require "support.program"
local tempdir = require "support.tempdir"

describe("a standard output that is closed", function()
  for _, words in ipairs { "--version", "help run", "info", "check run x true" } do
    it("fails crown-lua " .. words, function()
      local result = crown.exec({ "sh", "-c", ("exec %s %s >&-"):format(program, words) }, { env = { CROWN_DIRECTORY = tempdir() } })
      assert.equal(1, result.code, result.stderr)
      assert.matches("write standard output: Bad file descriptor", result.stderr)
    end)
  end
end)
