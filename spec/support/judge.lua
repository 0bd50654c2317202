--- What has to be true of a program that tricks were played on, with a healthy election (support.healthy) beside.
local assert = require "luassert"
local read_file = require "crown.text.read_file"

local judge = {}

local PAUSE_MOST = 2 -- seconds between two refreshes of the healthy election: one was missed
local HELD_MOST = 200 -- ms in which the loop may stand still, less what other processes had; after two seconds it is killed

--- The loop was not held.
-- @string path of the report of CROWN_LOOP_HELD
-- @number[opt] most milliseconds that it may be (200)
-- @tparam[opt] support.stillness still what the machine did meanwhile
function judge.loop(path, most, still)
  local held = read_file(path) or ""
  most = (most or HELD_MOST) + (still and still:seconds() or 0) * 1000
  for ms in held:gmatch "held for (%d+) ms" do assert.is_true(tonumber(ms) < most, held) end
end

-- No refresh was missed while the machine went on.
local function is_in_time(output, still)
  for pause, at in output:gmatch "LATE ([%d.]+) s at ([%d.]+)" do
    local stood = still and still:seconds(at - pause, tonumber(at)) or 0
    assert.is_true(pause - stood < PAUSE_MOST, output)
  end
end

--- The healthy election has lost nothing and missed no refresh, no task died, and the loop was not held.
-- @string output of the program
-- @string path of the report of CROWN_LOOP_HELD
-- @tparam[opt] support.stillness still what the machine did meanwhile
function judge.program(output, path, still)
  for _, bad in ipairs { "UNHEALTHY", "a task failed", "an error here", "silent for", "ended by signal" } do
    assert.is_nil(output:find(bad, 1, true), output)
  end
  is_in_time(output, still)
  judge.loop(path, nil, still)
end

return judge
