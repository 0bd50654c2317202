--- What has to be true of the runtime that had all the tricks played on it: the election beside has lost nothing and missed no
-- refresh, no task died, and the loop was not held.
local assert = require "luassert"
local read_file = require "crown.text.read_file"

local HELD_MOST = 200 -- ms in which the loop may stand still, less what other processes had

--- @string output of the runtime
-- @string path of the report of CROWN_LOOP_HELD
return function(output, path)
  for _, bad in ipairs { "UNHEALTHY", "LATE", "a task failed", "an error here", "silent for", "ended by signal" } do
    assert.is_nil(output:find(bad, 1, true), output)
  end
  local held = read_file(path) or ""
  for ms in held:gmatch "held for (%d+) ms" do assert.is_true(tonumber(ms) < HELD_MOST, held) end
end
