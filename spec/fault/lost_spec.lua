-- `lost` comes once for each `won`, also when the runtime dies between the two, at whatever moment.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

local APP = [[
local crown = require "crown"
crown.elect { name = "owed", oracle = "file:" .. arg[1], child = { arg[2], arg[3], "stubborn" }, stop_timeout = 1, handlers = {
  won = function(term) print(("WON %d"):format(term.epoch)) io.flush() end,
  lost = function(reason) print("LOST " .. reason) io.flush() end,
} }
]]

describe("a runtime that dies while its term ends", function()
  local one

  after_each(function() one:destroy() end)

  it("leaves lost to the next one", function()
    local dir = tempdir()
    local file = assert(io.open(dir .. "/app.lua", "w"))
    file:write(APP)
    file:close()
    one = Candidate.start { args = { dir .. "/app.lua", dir .. "/locks", ticker, dir .. "/ticks" }, node = "one", log = dir .. "/log" }
    eventually(function() return one:output():find "WON 1" and #one:pids "child" == 1 end, 10)
    run { "evict", "--oracle", "file:" .. dir .. "/locks", "--force", "--wait", "0", "owed" }
    eventually(function() return one:output():find "leadership%.lost" end, 10)
    one:hurt("KILL", "runtime")
    eventually(function() return one:output():find "WON 2" end, 20)
    local _, lost = one:output():gsub("LOST ", "")
    assert.equal(1, lost)
  end)
end)
