--- What the supervisor of this runtime says to Postgres when the runtime is dead and no process of its trees exists any more: all
-- that the runtime leads is released. See runtime/process/will.h.
-- @internal crown.postgres.will

local will = {}

-- The digits that the supervisor replaces by the instant of that, in microseconds since the start of the host, as the numbers of
-- claims are (crown.oracle.claim_number).
local INSTANT = ("0"):rep(16)

-- A message of the protocol: a byte, a length that counts itself, a body.
local function message(kind, body)
  local length = #body + 4
  return kind .. string.char(bit.rshift(length, 24), bit.band(bit.rshift(length, 16), 255), bit.band(bit.rshift(length, 8), 255),
    bit.band(length, 255)) .. body
end

--- The messages for a statement.
-- @string sql has INSTANT once at most, for the instant
-- @treturn string what to send: Sync, which ends whatever pipeline was under way, Query, and Terminate, so that the server
-- closes when it is done
-- @treturn number from which byte on the digits of the instant stand; nil where it has none
function will.messages(sql)
  local bytes = message("S", "") .. message("Q", sql:gsub("INSTANT", INSTANT, 1) .. "\0") .. message("X", "")
  return bytes, bytes:find(INSTANT, 1, true)
end

return will
