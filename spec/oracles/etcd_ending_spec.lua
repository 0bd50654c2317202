-- When to ask etcd for what is left of a lease: soon after its end, and seldom before.
local Ending = require "crown.etcd.ending"
local keys = require "crown.etcd.keys"

local floor, random = math.floor, math.random -- a look-up in the environment of busted takes longer than all else here

local TRIP = 0.0004 -- seconds from a question to its answer
local LIFE, RUNS = 20, 50 -- of a leader in seconds, and how many of them

-- A follower of a leader that keeps its lease each third of its time, until it dies. All times are exact.
-- @return seconds from the end of the leader's time to the question that finds it over; how many questions there were while it
-- lived, and after that
local function follow(ttl, dies)
  local granted, refresh = ttl + keys.SPARE, ttl / 3
  local began = random() * refresh
  local last = began + floor((dies - began) / refresh) * refresh
  local ending, at, alive, dead = Ending.new(), refresh, 0, 0
  while true do
    local answers = at + TRIP / 2
    local kept = answers < last and began + floor((answers - began) / refresh) * refresh or last
    local left = floor(kept + granted - answers)
    if left < keys.SPARE then return at - (last + ttl), alive, dead end
    if at < dies then alive = alive + 1 else dead = dead + 1 end
    ending:told(at, at + TRIP, left, granted)
    at = math.max(at + TRIP, ending:next())
  end
end

-- @return of many leaders: the greatest lateness in seconds; questions a second while they lived; the most after one's death
local function measure(ttl)
  local latest, alive, dead = 0, 0, 0
  for _ = 1, RUNS do
    local late, before, after = follow(ttl, LIFE * (1 + random()))
    latest, alive, dead = math.max(latest, late), alive + before, math.max(dead, after)
  end
  return latest, alive / RUNS / (LIFE * 1.5), dead
end

describe("the end of a lease in etcd", function()
  before_each(function() math.randomseed(1) end)

  -- Questions a second while the leader lives, and the most after its death.
  local cases = { { ttl = 2, alive = 7, dead = 300 }, { ttl = 3, alive = 7, dead = 100 }, { ttl = 5, alive = 2, dead = 100 },
    { ttl = 10, alive = 0.5, dead = 100 }, { ttl = 60, alive = 0.1, dead = 100 } }
  for _, case in ipairs(cases) do
    it(("is found within a millisecond, by few questions, where a lease lasts %d s"):format(case.ttl), function()
      local latest, alive, dead = measure(case.ttl)
      assert.is_true(latest < 0.001, ("late by up to %.5f s"):format(latest))
      assert.is_true(alive < case.alive, ("%.2f questions a second"):format(alive))
      assert.is_true(dead < case.dead, ("up to %d questions after a leader's death"):format(dead))
    end)
  end

  it("is found within 4 ms where etcd never tells of a change before: in a lease of 1 s", function()
    local latest = measure(1)
    assert.is_true(latest < 0.004, ("late by up to %.5f s"):format(latest))
  end)
end)
