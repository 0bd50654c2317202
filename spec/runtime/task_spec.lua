local core = require "crown.core"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local promise = require "crown.core.promise"

describe("a task", function()
  it("sleeps without holding up another", function()
    local quick, slow
    local sleeper = crown.spawn(function() slow = { crown.sleep(600) } end)
    crown.spawn(function() crown.sleep(0.01) quick = true end)
    eventually(function() return quick end)
    assert.is_nil(slow)
    sleeper:cancel()
    eventually(function() return slow end)
  end)

  it("is told politely that it is cancelled, at each wait", function()
    local answers, begun = {}, false
    local task = crown.spawn(function()
      begun = true
      for _ = 1, 2 do answers[#answers + 1] = select(2, crown.sleep(10)) end
    end)
    eventually(function() return begun end)
    task:cancel()
    eventually(function() return #answers == 2 end)
    assert.same({ "cancelled", "cancelled" }, answers)
  end)

  for _, case in ipairs {
    { "table.sort", function(wait) table.sort({ 3, 2, 1 }, function(a, b) wait() return a < b end) end },
    { "string.gsub", function(wait) return (("abc"):gsub(".", wait)) end },
  } do
    it("may not wait inside " .. case[1] .. ", and is told so", function()
      local fine, problem = pcall(case[2], function() crown.sleep(0.001) end)
      assert.is_false(fine)
      assert.matches("not possible here", problem)
    end)
  end

  it("may not wait inside a coroutine of its own, and is told what to do instead", function()
    local fine, problem = pcall(coroutine.wrap(function() crown.sleep(0.001) end))
    assert.is_false(fine)
    assert.matches("use crown.spawn", problem)
  end)

  it("keeps coroutines of its own working", function()
    local generate = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
    assert.equal(1, generate())
    crown.sleep(0.001)
    assert.equal(2, generate())
  end)

  it("waits across pcall and error handlers", function()
    local fine, value = pcall(function() crown.sleep(0.001) return 7 end)
    assert.is_true(fine)
    assert.equal(7, value)
  end)

  it("is told of in words when it fails, whatever it raises", function()
    local path = require "support.tempdir"() .. "/app.lua"
    require "support.write_file"(path, [[
local crown = require "crown"
local function raises(value) crown.spawn(function() error(value) end) end
raises { message = "of a table" }
raises(setmetatable({}, { __tostring = function() return "of its own" end }))
raises(setmetatable({}, { __tostring = function() error "worse" end }))
raises(setmetatable({}, { __index = function() error "worse" end }))
raises(nil)
crown.spawn(function() crown.elect { name = 5 } end)
crown.sleep(0.1)
error(setmetatable({}, { __tostring = function() error "worse" end }))
]])
    local result = require "support.run" { path }
    local said = {}
    for words in result.stderr:gmatch "a task failed: ([^\n]*)" do said[#said + 1] = words end
    assert.same({ "of a table", "of its own", "an error that is no text", "an error that is no text", "an error that is no text" },
      { unpack(said, 1, 5) })
    assert.matches("app.lua:8: .*name must be a string", said[6])
    assert.matches("crown%-lua: an error that is no text\n", result.stderr)
    assert.equal(2, result.code)
  end)

  it("is told of with its traceback below, in the text format", function()
    local path = require "support.tempdir"() .. "/app.lua"
    require "support.write_file"(path, [[
local crown = require "crown"
crown.spawn(function() error "no luck" end)
crown.sleep(0.05)
]])
    local result = require "support.run" { "--log-format", "text", path }
    assert.matches("error a task failed: [^\n]*app.lua:2: no luck\n    stack traceback:\n     [^\n]*app.lua:2: in [^\n]*\n$",
      result.stderr)
  end)

  it("is told of with the user's own frames alone, also in a handler and at the script's end", function()
    local path = require "support.tempdir"() .. "/app.lua"
    local said = {}
    for i, text in ipairs { "error 'boom'", [[
local crown = require "crown"
local function fail() error "boom" end
local one
one = crown.elect { name = "boom", handlers = { won = function() fail() end, lost = function() one:stop() end } }
]] } do
      require "support.write_file"(path, text)
      said[i] = require "support.run"({ "--oracle", "memory:boom", path }).stderr
      assert.is_nil(said[i]:find "%[C%]" or said[i]:find "crown/" or said[i]:find "in function 'call'", said[i])
    end
    assert.matches("app.lua:1: boom\nstack traceback:\n\t[^\n]*app.lua:1: in main chunk\n$", said[1])
    assert.matches("boom\"\n    stack traceback:\n[^\n]*app.lua:2: in function 'fail'\n[^\n]*app.lua:4: in function <", said[2])
  end)

  it("cannot take the hook away from the guard", function()
    assert.has_error(function() debug.sethook(print, "", 1) end)
  end)
end)

describe("a task that never waits", function()
  local function neighbours_beat(spin)
    local beats, spinning = 0, true
    crown.spawn(function()
      while spinning do
        crown.sleep(0.005)
        beats = beats + 1
      end
    end)
    -- Processor time: a slice is counted in it too, and a busy host gives little.
    local over, done = os.clock() + 0.5, false
    crown.spawn(function()
      spin(function() return os.clock() > over end)
      done = true
    end)
    eventually(function() return done end, 60)
    spinning = false
    -- Without preemption there would be none until the spinner ends.
    assert.is_true(beats >= 3)
  end

  it("leaves its neighbours their turns", function()
    neighbours_beat(function(over) while not over() do local _ = 1 end end)
  end)

  it("leaves them their turns from inside pcall loops too", function()
    neighbours_beat(function(over) while not over() do pcall(function() for _ = 1, 1e5 do local _ = 1 end end) end end)
  end)

  -- A task that computes is interrupted between any two instructions: two halves of a change can be told apart then.
  local function halves_seen(change)
    local state, apart, over = { one = 0, two = 0 }, 0, os.clock() + 0.4
    local done = 0
    for _ = 1, 2 do
      crown.spawn(function()
        while os.clock() < over do change(state) end
        done = done + 1
      end)
    end
    crown.spawn(function()
      while done < 2 do
        crown.sleep(0.001)
        if state.one ~= state.two then apart = apart + 1 end
      end
    end)
    eventually(function() return done == 2 end, 60)
    return apart
  end

  local function change(state)
    state.one = state.one + 1
    for _ = 1, 1000 do local _ = 1 end
    state.two = state.two + 1
  end

  it("may be interrupted within a change, unless that is atomic", function()
    assert.is_true(halves_seen(change) > 0)
    assert.equal(0, halves_seen(function(state) core.atomic(change, state) end))
  end)

  -- Has thousands end in one turn of the loop; each has held so many bytes.
  local function end_together(bytes)
    local gates, ended, left = {}, 0, setmetatable({}, { __mode = "k" })
    for i = 1, 2000 do
      crown.spawn(function()
        local own, gate = { ("%5d"):format(i):rep(bytes / 5) }, promise()
        left[own], gates[#gates + 1] = true, gate
        gate:wait(math.huge)
        own.used, ended = true, ended + 1
      end)
    end
    eventually(function() return #gates == 2000 end)
    for _, gate in ipairs(gates) do gate:resolve(true) end
    eventually(function() return ended == 2000 end)
    return left
  end

  it("leaves nothing behind that waits for the collector, where thousands ended together", function()
    local pause = collectgarbage("setpause", 100000)
    end_together(5) -- then it is known how large the heap is, whatever ran before in this process
    collectgarbage() -- from here on it would wait for a thousand times as much
    local left = end_together(20000)
    eventually(function() return next(left) == nil end)
    collectgarbage("setpause", pause)
    collectgarbage()
  end)

  -- With CROWN_TORTURE=gc the whole heap is walked before each resume anyway.
  local among = os.getenv "CROWN_TORTURE" == "gc" and pending or describe
  among("among thousands that often run together", function()
    local heap, walks, pause, count

    before_each(function()
      heap, walks = {}, 0
      for i = 1, 300000 do heap[i] = { i } end
      count = function() -- the collector takes it once in a walk
        getmetatable(newproxy(true)).__gc = function()
          walks = walks + 1
          count()
        end
      end
      pause = collectgarbage("setpause", 100000)
      collectgarbage()
      count()
    end)

    after_each(function()
      count = function() end
      heap = nil
      collectgarbage("setpause", pause)
      collectgarbage() -- takes the last one
    end)

    local function burst(turns)
      local running = 1100
      for _ = 1, running do
        crown.spawn(function()
          crown.sleep(0.01)
          running = running - 1
        end)
      end
      eventually(function() return running == 0 end)
      for _ = 1, turns do crown.sleep(0) end -- of the loop, which has a part of a walk made in each
    end

    it("does not have the whole heap walked through each time", function()
      local BURSTS, TURNS = 10, 100
      burst(TURNS)
      walks = 0
      for _ = 1, BURSTS do burst(TURNS) end
      assert.is_true(walks < BURSTS, walks .. " walks through " .. #heap)
    end)

    it("has a walk come to its end, though the next of them are there before, and leaves nothing to walk for", function()
      local BURSTS, TURNS, CYCLES = 60, 20, 2 -- a walk takes many bursts, and is two cycles of the collector
      for i = #heap + 1, 900000 do heap[i] = { i } end
      walks = 0
      for _ = 1, BURSTS do burst(TURNS) end
      assert.is_true(walks <= CYCLES + 1, walks .. " cycles, where the heap has grown once")
    end)
  end)

  it("lets the heap grow by more between two walks while thousands of tasks run, where the user has not said by how much", function()
    local function pause_now()
      local pause = collectgarbage("setpause", 150)
      collectgarbage("setpause", pause)
      return pause
    end
    local function in_burst()
      local running, pause = 1100, nil
      for _ = 1, running do
        crown.spawn(function()
          crown.sleep(0.01)
          running, pause = running - 1, pause or pause_now()
        end)
      end
      eventually(function() return running == 0 end)
      return pause
    end
    local before = pause_now()
    assert.is_true(in_burst() > before)
    eventually(function() return pause_now() == before end)
    collectgarbage("setpause", 140)
    assert.equal(140, in_burst())
    crown.sleep(0)
    assert.equal(140, pause_now())
    collectgarbage("setpause", before)
  end)

  it("gets what an atomic function returns, and its errors", function()
    assert.same({ 3, 4 }, { core.atomic(function(a, b) return a + 1, b + 1 end, 2, 3) })
    assert.has_error(function() core.atomic(error, "no") end, "no")
    assert.has_error(function() core.atomic(7) end)
  end)

  it("gets an error where it cannot be interrupted, in a coroutine of its own", function()
    local problem
    crown.spawn(function()
      local _, message = pcall(coroutine.wrap(function() while true do local _ = 1 end end))
      problem = message
    end)
    eventually(function() return problem end, 10)
    assert.matches("cannot be interrupted", problem)
  end)
end)
