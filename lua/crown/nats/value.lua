--- What JetStream tells of the value of a key.
-- @internal crown.nats.value

local calendar = require "crown.text.calendar"

local value = {}

--- The instant of a write, as a consumer tells it.
-- @string nanoseconds since 1970, in digits
-- @treturn number equal to what crown.text.calendar makes of the server's words for it
function value.time_of(nanoseconds)
  return (tonumber(nanoseconds:sub(1, -10)) or 0) + tonumber("0." .. nanoseconds:sub(-9))
end

--- Whether what was written last says that the key was deleted.
-- @string operation its header KV-Operation
-- @treturn boolean
function value.is_gone(operation)
  return operation == "DEL" or operation == "PURGE"
end

--- A value.
-- @string data
-- @tparam table headers by their names in small letters
-- @number revision
-- @string written when, in the server's words
-- @treturn table `{ data =, revision =, headers =, gone =, written =, written_at = its seconds }`
function value.of(data, headers, revision, written)
  return { data = data, headers = headers, revision = revision, written = written, written_at = calendar.seconds(written),
    gone = value.is_gone(headers["kv-operation"]) }
end

return value
