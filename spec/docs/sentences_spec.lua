-- tools/check-sentences.lua, which reads pages and manual pages.
local crown = require "crown"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("tools/check-sentences.lua", function()
  local LONG, SHORT = ("word "):rep(31), ("word "):rep(30)

  local function judge(name, text)
    local path = write_file(tempdir() .. "/" .. name, text)
    local result = assert(crown.exec { "luajit", "tools/check-sentences.lua", path })
    return result.code, (result.stdout:gsub("%S+:(%d+):", "line %1:"))
  end

  it("names a sentence of more than thirty words by its line, in a page and in a manual page", function()
    for name, text in pairs {
      ["a.md"] = "# Heading\n\n- %s.\n", ["b.md"] = "Short.\n\nShort. %s. Short.\n",
      ["a.1"] = ".SH DESCRIPTION\n.nf\n%s.\n.fi\n", ["b.1"] = ".PP\n.B crown\\-lua\n%s.\n",
    } do
      assert.equal(0, judge(name, text:format(name == "b.1" and SHORT:sub(6) or SHORT)))
      local code, told = judge(name, text:format(LONG))
      assert.equal(1, code, name)
      assert.matches("^line %d: a sentence of 3[12] words, 30 are the most: ", told)
    end
  end)

  it("names a cell of more than twenty-five words, also the words of an option", function()
    local cell = ("word "):rep(26)
    assert.matches("^line 1: a cell of 26 words", (select(2, judge("a.md", "| x | " .. cell .. "|\n"))))
    assert.matches("^line 4: a cell of 26 words", (select(2, judge("a.1", ".SH OPTIONS\n.TP\n.B \\-\\-x\n" .. cell .. "\n"))))
  end)

  it("leaves out code, examples and how a command is written", function()
    assert.equal(0, (judge("a.md", "```sh\n" .. LONG .. "\n```\n`" .. LONG .. "`\n")))
    assert.equal(0, (judge("a.1", ".SH SYNOPSIS\n" .. LONG .. "\n.SH DESCRIPTION\n  " .. LONG .. "\n")))
  end)
end)
