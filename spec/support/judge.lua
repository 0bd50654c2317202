--- What has to be true of a program that tricks were played on, with a healthy election (support.healthy) beside.
local assert = require "luassert"
local read_file = require "crown.text.read_file"

local judge = {}

local HELD_MOST = 200 -- ms in which the loop may stand still, less what other processes had; after two seconds it is killed

--- The loop was not held.
-- @string path of the report of CROWN_LOOP_HELD
-- @number[opt] most milliseconds that it may be (200)
function judge.loop(path, most)
  local held = read_file(path) or ""
  for ms in held:gmatch "held for (%d+) ms" do assert.is_true(tonumber(ms) < (most or HELD_MOST), held) end
end

--- The healthy election has lost nothing and missed no refresh, no task died, and the loop was not held.
-- @string output of the program
-- @string path of the report of CROWN_LOOP_HELD
function judge.program(output, path)
  for _, bad in ipairs { "UNHEALTHY", "LATE", "a task failed", "an error here", "silent for", "ended by signal" } do
    assert.is_nil(output:find(bad, 1, true), output)
  end
  judge.loop(path)
end

return judge
