-- A runtime of thousands of elections that is told to end: it stops some in each turn of the loop, so that what the stores answer
-- to the first ones is not left lying until the last one was asked.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local APP = [[
local crown = require "crown"
local elections = require "crown.core.election"
local MANY = 2000
local function say(what)
  local file = assert(io.open(arg[1], "a"))
  file:write(what .. "\n")
  file:close()
end
for i = 1, MANY do crown.elect { name = "e" .. i, oracle = "memory:many" } end
crown.spawn(function()
  repeat crown.sleep(0.01) until elections.counts()["leadership.claimed"] == MANY
  say "led"
  while true do
    local lost = elections.counts()["leadership.lost"]
    if lost > 0 and lost < MANY then return say "between" end
    crown.sleep(0.0001)
  end
end)
]]

describe("a runtime of thousands of elections", function()
  it("has other turns while it stops them", function()
    local dir = tempdir()
    write_file(dir .. "/app.lua", APP)
    local candidate = Candidate.start { node = "one", log = dir .. "/log",
      args = { "--log-level", "error", dir .. "/app.lua", dir .. "/out" } }
    eventually(function() return read_file(dir .. "/out") end, 20)
    candidate:signal "TERM"
    assert.equal(0, candidate:wait(20))
    assert.equal("led\nbetween\n", read_file(dir .. "/out"))
    candidate:destroy()
  end)
end)
