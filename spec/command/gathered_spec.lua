-- What befalls many elections at once does not fill the log.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local COUNT, WRITTEN = 200, 20

describe("the log of two hundred elections", function()
  local one, app

  setup(function()
    app = write_file(tempdir() .. "/app.lua", [[
      for i = 1, tonumber(arg[1]) do require("crown").elect { name = "e" .. i, oracle = arg[2] } end]])
  end)
  after_each(function() one:destroy() end)

  -- How many lines of an event name an election, and how many elections the others count.
  local function lines(event, error)
    local named, counted = 0, 0
    for line in one:output():gmatch "[^\n]+" do
      if line:find(event, 1, true) and line:find(error, 1, true) then
        if line:find " name=e%d" then named = named + 1 end
        counted = counted + (tonumber(line:match " more_elections=(%d+)") or 0)
      end
    end
    return named, counted
  end

  local function start(oracle)
    one = Candidate.start { args = { app, ("%d"):format(COUNT), oracle }, node = "one", log = tempdir() .. "/log" }
  end

  it("names the first, and counts the others whose store may have forgotten for the same reason", function()
    local store = Redis.start()
    start(store.url .. "?ttl=5")
    eventually(function()
      local named, counted = lines("oracle.amnesia", "the store is new to us")
      return named + counted == COUNT
    end, 40)
    assert.equal(WRITTEN, (lines("oracle.amnesia", "the store is new to us")))
    store:destroy()
  end)

  it("counts those whose store is away", function()
    start("redis://127.0.0.1:" .. port.free())
    eventually(function()
      local named, counted = lines("oracle.error", "Connection refused")
      return named == WRITTEN and counted == COUNT - WRITTEN
    end, 40)
  end)

  it("counts what has not been told yet before it ends", function()
    start("redis://127.0.0.1:" .. port.free())
    eventually(function() return lines("oracle.error", "") >= WRITTEN end, 40)
    one:signal "TERM"
    one:wait(20)
    local named, counted = lines("oracle.error", "")
    -- How many of them have asked by then is a matter of luck.
    assert.is_true(named == WRITTEN and counted > 0, named .. " named, " .. counted .. " counted")
  end)
end)
