--- What members say to each other, and what it has to look like.
-- @internal crown.registry.messages

local core = require "crown.core"

local messages = {}

local decode = core.json.decode

local NAME_MOST = 255
local VALUE_MOST = 65536
local PARTS_MOST = 1000000

local function is_count(value)
  return type(value) == "number" and value >= 0 and value < 2 ^ 53 and value % 1 == 0
end

local function is_flag(value)
  return type(value) == "boolean"
end

local function is_text(value)
  return type(value) == "string" and #value <= NAME_MOST
end

local function is_name(value)
  return is_text(value) and value ~= "" and not value:find "%c"
end

-- Whoever reads the name some day decodes it.
local function is_value(value)
  return type(value) == "string" and #value <= VALUE_MOST and (pcall(decode, value))
end

local function is_position(value)
  return type(value) == "table" and is_count(value.epoch) and is_count(value.seq)
end

local function is_list_of(check)
  return function(value)
    if type(value) ~= "table" then return false end
    local size = #value
    for key, one in pairs(value) do
      if not is_count(key) or key < 1 or key > size or not check(one) then return false end
    end
    return true
  end
end

local CHANGES = {
  ["+"] = { is_name, is_text, is_text, is_value },
  ["-"] = { is_name },
  ["x"] = { is_text, is_text },
}

local function is_change(value)
  local fields = type(value) == "table" and CHANGES[value[1]]
  if not fields or #value ~= #fields + 1 then return false end
  for i, check in ipairs(fields) do
    if not check(value[i + 1]) then return false end
  end
  return true
end

local function is_entry(value)
  return type(value) == "table" and is_name(value[1]) and is_text(value[2]) and is_text(value[3]) and is_value(value[4])
end

local function is_op(value)
  return type(value) == "table" and (value.what == "register" or value.what == "unregister") and is_name(value.name)
    and is_text(value.token) and (value.what ~= "register" or is_value(value.value))
end

local function is_part(value)
  return is_count(value) and value >= 1 and value <= PARTS_MOST
end

local function is_write(value)
  return type(value) == "table" and is_text(value.request) and is_op(value.op)
end

local function is_result(value)
  if type(value) ~= "table" then return false end
  if value.ok == false then return is_text(value.owner) and is_value(value.value) end
  return value.ok == true or type(value.retry) == "string" or type(value.error) == "string"
end

local function is_answer(value)
  return type(value) == "table" and is_text(value.request) and is_result(value.result)
end

local SHAPES = {
  append = { epoch = is_count, first = is_count, changes = is_list_of(is_change) },
  resume = { epoch = is_count, from = is_position },
  snapshot = { epoch = is_count, seq = is_count, part = is_part, last = is_flag, names = is_list_of(is_entry) },
  copy = { epoch = is_count, seq = is_count, part = is_part, last = is_flag, names = is_list_of(is_entry), term = is_count },
  held = { epoch = is_count, seq = is_count },
  gap = { epoch = is_count, part = is_flag },
  stale = { epoch = is_count },
  seek = { epoch = is_count },
  position = { epoch = is_count, at = is_position },
  fetch = { epoch = is_count },
  write = { writes = is_list_of(is_write) },
  written = { answers = is_list_of(is_answer) },
}

--- Whether a text can be a name: control characters would swell in JSON, and nobody could read them.
-- @param value
-- @treturn boolean
messages.is_name = is_name

--- Whether a text can be a value: JSON, and not too long.
-- @param value
-- @treturn boolean
messages.is_value = is_value

--- The most bytes of a name.
messages.NAME_MOST = NAME_MOST

--- The most bytes of a value as JSON.
messages.VALUE_MOST = VALUE_MOST

--- Checks a message.
-- @param message what a frame held
-- @return true, or nil and what is wrong
function messages.check(message)
  local shape = type(message) == "table" and SHAPES[message.kind]
  if not shape then return nil, "a message of an unknown kind" end
  for field, check in pairs(shape) do
    if not check(message[field]) then return nil, ("a message '%s' whose %s is not one"):format(message.kind, field) end
  end
  return true
end

return messages
