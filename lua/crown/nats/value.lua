--- What JetStream tells of the value of a key.
-- @internal crown.nats.value

local value = {}

--- Seconds since year 0 of a time as the server writes it: only the server's own times are ever compared.
-- @string text
-- @treturn number, or nil
function value.time(text)
  local year, month, day, hour, minute, second = (text or ""):match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)"
  if not year then return nil end
  year, month = tonumber(year), tonumber(month)
  if month <= 2 then year, month = year - 1, month + 12 end
  local days = 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
    + math.floor((153 * (month - 3) + 2) / 5) + tonumber(day)
  return ((days * 24 + tonumber(hour)) * 60 + tonumber(minute)) * 60 + tonumber(second)
end

local UNIX = value.time "1970-01-01T00:00:00"

--- The same of a time as a consumer tells it.
-- @string nanoseconds since 1970, in digits
-- @treturn number equal to what `time` makes of the server's words for it
function value.time_of(nanoseconds)
  return UNIX + (tonumber(nanoseconds:sub(1, -10)) or 0) + tonumber("0." .. nanoseconds:sub(-9))
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
  return { data = data, headers = headers, revision = revision, written = written, written_at = value.time(written),
    gone = value.is_gone(headers["kv-operation"]) }
end

return value
