-- `lost` comes once for each `won`, also when the runtime dies between the two, at whatever moment.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

local APP = [[
local crown = require "crown"
crown.elect { name = "owed", oracle = "file:" .. arg[1], child = { arg[2], arg[3], "stubborn" }, stop_timeout = 4, handlers = {
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

  it("owes no lost for a term whose won had not begun (R10)", function()
    local dir = tempdir()
    write_file(dir .. "/app.lua", [[
local crown = require "crown"
local ffi = require "ffi"
ffi.cdef "int raise(int);"
local function say(what) print(what) io.flush() end
local died = io.open(arg[1]) ~= nil
local oracle = { name = "deadly", init = function() return {} end, refresh = function() return true, 1 end }
function oracle.claim()
  if died then return true, 1, { epoch = 8 } end
  assert(io.open(arg[1], "w")):close()
  crown.spawn(function() ffi.C.raise(9) end) -- right after the grant, and before anything that the grant begins
  return true, 1, { epoch = 7 }
end
crown.elect { name = "untold", oracle = oracle, handlers = {
  won = function(term) say(("WON %d"):format(term.epoch)) end,
  lost = function(reason) say("LOST " .. reason) end,
} }
]])
    one = Candidate.start { args = { dir .. "/app.lua", dir .. "/died" }, node = "one", log = dir .. "/log" }
    eventually(function() return one:output():find "WON" end, 20)
    assert.matches("leadership%.lost [^\n]*epoch=7 reason=runtime_died.*WON 8", one:output())
    assert.falsy(one:output():find "LOST")
  end)

  -- An election whose `lost` takes its time, and whose runtime is killed while it leads.
  local function killed_while_leading(name, lost, ...)
    local dir = tempdir()
    local file = assert(io.open(dir .. "/app.lua", "w"))
    file:write(([[
local crown = require "crown"
local function say(what) print(what) io.flush() end
crown.elect { name = "%s", oracle = "file:" .. arg[1], lost_timeout = tonumber(arg[2]), handlers = {
  won = function(term) say(("WON %%d"):format(term.epoch)) end,
  lost = function(reason) say("LOST " .. reason) %s say "LOST IS OVER" end,
} }
]]):format(name, lost))
    file:close()
    one = Candidate.start { args = { dir .. "/app.lua", dir .. "/locks", ... }, node = "one", log = dir .. "/log" }
    eventually(function() return one:output():find "WON 1" end, 20)
    one:hurt("KILL", "runtime")
  end

  it("does not lead again before lost is over", function()
    killed_while_leading("slow-news", "crown.sleep(1.5)", 30)
    eventually(function() return one:output():find "WON 2" end, 20)
    assert.truthy(one:output():find "LOST runtime_died\nLOST IS OVER\n.*WON 2")
  end)

  it("leads again when the time of lost is up", function()
    killed_while_leading("endless-news", "crown.sleep(3600)", 1)
    eventually(function() return one:output():find "WON 2" end, 20)
    assert.truthy(one:output():find "LOST runtime_died\n.*not done in the time allowed.*WON 2")
    assert.falsy(one:output():find "LOST IS OVER")
  end)

  it("ends when lost is over, if it is told to end meanwhile", function()
    killed_while_leading("last-news", "crown.sleep(6)", 30) -- long enough to be told meanwhile
    eventually(function() return one:output():find "LOST runtime_died" end, 20)
    one:signal "TERM"
    assert.equal(0, one:wait(20))
    assert.truthy(one:output():find "LOST IS OVER")
    assert.falsy(one:output():find "WON 2")
  end)
end)
