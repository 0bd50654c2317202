local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- Whatever somebody has written by hand where a leader's name belongs.
describe("crown-lua run, where a store names a leader", function()
  for what, case in pairs {
    ["without a name"] = { "", "following 'x'; somebody without a name leads\n" },
    ["of 2000 bytes"] = { ("n"):rep(2000), "following 'x'; " .. ("n"):rep(255) .. "… leads\n" },
  } do
    it(what .. ", says so in a line that can be read", function()
      local dir = tempdir()
      write_file(dir .. "/strange.lua", ([[
return { init = function() return {} end, claim = function() return false, { node = %q } end, refresh = function() end }]])
        :format(case[1]))
      local one = Candidate.start { args = { "run", "--oracle", "strange", "x", "true" }, node = "one", log = dir .. "/log",
        env = { LUA_PATH = dir .. "/?.lua;;" } }
      finally(function() one:destroy() end)
      eventually(function() return one:output():find(case[2], 1, true) end, 20)
    end)
  end
end)
