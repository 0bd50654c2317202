--- The end of what the command of an election has written in its last run, for who asks from another host. It stands beside the
-- election's record, in one of its own, so that no claim carries it: `output`, base64 of the bytes, and `written`, how many there
-- were in all; `node`; `began`, seconds since 1970; `slot`, perhaps. Nothing is judged by it.
-- @internal crown.register.outputs

local base64 = require "crown.text.base64"
local record = require "crown.register.record"
local tools = require "crown.register.tools"

local outputs = {}

--- Bytes that are kept of it. No store shows more of a record than twice as many.
outputs.MOST = 65536

-- Of two runs the later one stays. A host that was cut off may come late.
local function is_older(found, fields)
  return found and type(found.began) == "number" and found.began > fields.began
end

local function keep(store, name, fields)
  local text = base64.encode(fields.bytes:sub(-outputs.MOST))
  local before, problem, code = tools.write_over(store, record.output_name(name), function(found)
    if is_older(found, fields) then return false end
    local one = record.after(found)
    one.output, one.written, one.node, one.began, one.slot = text, fields.written, fields.node, fields.began, fields.slot
    return one
  end)
  if before == nil then return nil, problem, code end
  return true
end

local function is_whole(one)
  return type(one.written) == "number" and type(one.node) == "string" and type(one.began) == "number"
end

--- Reads what is kept, or keeps it.
-- @tparam table store
-- @string name of the election
-- @tparam[opt] table fields `bytes`, `written`, `node`, `began`, `slot`: what is to be kept
-- @treturn table the same fields; false: nothing is kept; or true: it is kept; or nil, message, code
function outputs.output(store, name, fields)
  if fields then return keep(store, name, fields) end
  local found, problem, code = tools.read(store, record.output_name(name))
  if not found then return found, problem, code end
  local bytes = is_whole(found) and base64.decode(found.output)
  if not bytes then return nil, ("what '%s' has written cannot be read in the store"):format(name) end
  return { bytes = bytes, written = found.written, node = found.node, began = found.began, slot = found.slot }
end

return outputs
