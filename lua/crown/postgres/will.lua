--- What the supervisor of this runtime says to Postgres when the runtime is dead and no process of its trees exists any more: all
-- that the runtime leads is released. See runtime/process/will.h.
-- @internal crown.postgres.will

local will = {}

-- A message of the protocol: a byte, a length that counts itself, a body.
local function message(kind, body)
  local length = #body + 4
  return kind .. string.char(bit.rshift(length, 24), bit.band(bit.rshift(length, 16), 255), bit.band(bit.rshift(length, 8), 255),
    bit.band(length, 255)) .. body
end

--- The messages for a statement.
-- @string sql
-- @treturn string what to send: Sync, which ends whatever pipeline was under way, Query, and Terminate, so that the server
-- closes when it is done
function will.messages(sql)
  return message("S", "") .. message("Q", sql .. "\0") .. message("X", "")
end

return will
