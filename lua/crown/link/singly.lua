--- Looks and writes of a register whose server is asked for one record at a time: all at once.
-- @internal crown.link.singly

local each = require "crown.link.each"

local singly = {}

--- Looks at records.
-- @tparam table names
-- @tparam function fn of a name → its answer; or nil, message, code
-- @treturn table the answers by their names; or nil, message, code
function singly.look(names, fn)
  local found, failed = each(names, fn)
  if failed then return nil, failed[1], failed[2] end
  local answers = {}
  for i, name in ipairs(names) do answers[name] = found[i] end
  return answers
end

--- Writes records.
-- @tparam table writes
-- @tparam function fn of a write → its new version, or false; or nil, message, code
-- @treturn table what that returned for each; or nil, message, code where it did for none
function singly.swap(writes, fn)
  local versions, failed = each(writes, fn)
  if failed and next(versions) == nil then return nil, failed[1], failed[2] end
  return versions
end

return singly
