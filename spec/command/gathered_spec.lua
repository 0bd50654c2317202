-- What befalls many elections at once does not fill the log.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local COUNT, WRITTEN, WINDOW = 200, 20, 1 -- elections; lines; seconds

describe("the log of two hundred elections", function()
  local one, app

  setup(function()
    app = write_file(tempdir() .. "/app.lua", [[
      for i = 1, tonumber(arg[1]) do require("crown").elect { name = "e" .. i, oracle = arg[2] } end]])
  end)
  after_each(function() one:destroy() end)

  -- A cause that pauses for a second begins anew: just before and just after that it names so many.
  local function assert_few(times)
    for i = 2 * WRITTEN + 1, #times do
      assert.is_true(times[i] - times[i - 2 * WRITTEN] > WINDOW - 0.01, "more lines than that in a second")
    end
  end

  local function seconds(line)
    local hours, minutes, rest = line:match "T(%d+):(%d+):([%d.]+)Z"
    return hours * 3600 + minutes * 60 + rest
  end

  -- How many lines of an event name an election, and how many elections the others count.
  local function lines(event, error)
    local named, counted, times = 0, 0, {}
    for line in one:output():gmatch "[^\n]+" do
      if line:find(event, 1, true) and line:find(error, 1, true) then
        if line:find " name=e%d" then
          named = named + 1
          times[named] = seconds(line)
        end
        counted = counted + (tonumber(line:match " more=(%d+)") or 0)
      end
    end
    assert_few(times)
    return named, counted
  end

  local function start(oracle)
    one = Candidate.start { args = { app, ("%d"):format(COUNT), oracle }, node = "one", log = tempdir() .. "/log" }
  end

  it("names the first, and counts the others whose store may have forgotten for the same reason", function()
    local store = Redis.start()
    start(store.url .. "?ttl=5")
    eventually(function()
      local named, counted = lines("oracle.amnesia", "has no record of this election")
      return counted > 0 and named + counted == COUNT
    end, 40)
    store:destroy()
  end)

  it("counts those whose store is away", function()
    start("redis://127.0.0.1:" .. port.free())
    eventually(function()
      local named, counted = lines("oracle.error", "Connection refused")
      return counted > 0 and named + counted >= COUNT -- those that began first have asked again
    end, 40)
  end)

  it("counts those whose leaders hear nothing of their refreshes", function()
    local store = Redis.start()
    start(store.url .. "?ttl=3&trust_empty=true&amnesia_wait=0")
    eventually(function() return select(2, one:output():gsub("leadership%.claimed", "")) == COUNT end, 40)
    store:freeze()
    local fine = pcall(eventually, function()
      local _, counted = lines("leadership.uncertain", "phase=")
      return counted > 0
    end, 10)
    store:thaw()
    assert.is_true(fine, one:output():match "leadership.uncertain[^\n]*")
    store:destroy()
  end)

  it("counts those whose runtime died while they led", function()
    start("file:" .. tempdir())
    eventually(function() return select(2, one:output():gsub("leadership%.claimed", "")) == COUNT end, 40)
    one:hurt("KILL", "runtime")
    eventually(function()
      local named, counted = lines("leadership.lost", "reason=runtime_died")
      return counted > 0 and named + counted == COUNT
    end, 40)
  end)

  it("is not what it tells of where one election fails again and again", function()
    local path = write_file(tempdir() .. "/app.lua", [[
      local function claim(state)
        for _ = 1, 64 do state.emit("oracle.error", { error = "away" }) end
        return nil, "away"
      end
      require("crown").elect { name = "e1", oracle = { init = function(opts) return { emit = opts.emit } end, claim = claim,
        refresh = claim, abdicate = claim } }]])
    one = Candidate.start { args = { path }, node = "one", log = tempdir() .. "/log" }
    local field = eventually(function() return one:output():match "oracle.error [^\n]* (more[%w_]*)=%d" end, 40)
    assert.equal("more", field)
  end)

  it("counts what has not been told yet before it ends", function()
    start("redis://127.0.0.1:" .. port.free())
    eventually(function() return lines("oracle.error", "") >= WRITTEN end, 40)
    one:signal "TERM"
    one:wait(20)
    local named, counted = lines("oracle.error", "")
    -- How many of them have asked by then is a matter of luck.
    assert.is_true(named >= WRITTEN and counted > 0, named .. " named, " .. counted .. " counted")
  end)
end)
