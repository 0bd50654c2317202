-- One run for all who ask while it is under way.
local core = require "crown.core"
local joined = require "crown.register.joined"
local promise = require "crown.core.promise"

local PATIENCE = 10

describe("a run that is joined", function()
  local now, env, place, runs, answers

  before_each(function()
    now, place, runs, answers = 100, {}, {}, {}
    env = { now = function() return now end, detach = core.detach, promise = promise, atomic = core.atomic }
  end)

  -- Asks; the run waits for its promise in `runs`.
  local function ask(name)
    core.spawn(function()
      answers[name] = { joined(env, place, PATIENCE, function(run)
        local one = promise()
        runs[#runs + 1] = { run = run, promise = one }
        return one:wait(math.huge)
      end) }
    end)
    core.sleep(0)
    core.sleep(0)
  end

  local function answer(i, ...)
    runs[i].promise:resolve(...)
    core.sleep(0)
    core.sleep(0)
  end

  it("answers all who have asked meanwhile, with all that it returns", function()
    ask "one"
    ask "two"
    assert.equal(1, #runs)
    assert.equal(runs[1].run, place.run)
    answer(1, 1, 2, 3)
    assert.same({ one = { 1, 2, 3 }, two = { 1, 2, 3 } }, answers)
    assert.is_nil(place.run)
    ask "three"
    assert.equal(2, #runs)
  end)

  it("is waited for as long as it has patience", function()
    ask "one"
    now = now + PATIENCE
    ask "two"
    assert.equal(1, #runs)
    now = now + 0.01
    ask "three"
    assert.equal(2, #runs)
    assert.equal(runs[2].run, place.run)
    answer(1, "late")
    assert.equal(runs[2].run, place.run)
    assert.same({ one = { "late" }, two = { "late" } }, answers)
    answer(2, "new")
    assert.same({ "new" }, answers.three)
  end)

  it("answers nothing and why when it fails", function()
    local problem = select(2, joined(env, place, PATIENCE, function() error("it broke", 0) end))
    assert.equal("it broke", problem)
    assert.is_nil(place.run)
  end)
end)
