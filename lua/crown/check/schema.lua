--- Checks a table of options against a schema: types, ranges, unknown names.
-- A schema maps option names to rules: `{ type = "number"|"string"|"boolean"|"table"|"function"|"any", required =,
-- least =, above =, most =, integer =, values =, match =, default =, not_beside = another option that says the same,
-- check = function(value) → problem or nil }`;
-- `type` may be a list of types.
-- @internal crown.check.schema

local figure = require "crown.check.figure"
local seconds = require "crown.check.seconds"
local usage = require "crown.check.usage"

local schema = {}

-- Where options stand, by their names: those that are written in another place than theirs are told it.
local places = {}

local MILLISECONDS = 1000 -- from here on a time that is refused may have been meant so

local function has_type(value, wanted)
  if wanted == "any" then return true end
  if type(wanted) == "string" then return type(value) == wanted end
  for _, one in ipairs(wanted) do
    if type(value) == one then return true end
  end
  return false
end

local function type_words(wanted)
  return type(wanted) == "table" and table.concat(wanted, " or ") or wanted
end

-- Every number with a bound that need not be whole is a time.
local function is_time(rule)
  return rule.most and not rule.integer
end

--- Makes a set of options known to all others.
-- @tparam table rules names as keys
-- @string how to write one of them: "child = { …, %s = … }"
-- @string list which page has them all
-- @string[opt] within how the names of tables begin that these options are for
function schema.place(rules, how, list, within)
  places[#places + 1] = { rules = rules, how = how, list = list, within = within }
end

-- What to say of a name that is none of these options.
local function unknown(where, name, rules)
  local names, list, how = usage.names(rules), nil, nil
  for _, place in ipairs(places) do
    local is_own = place.rules == rules or place.within ~= nil and where:sub(1, #place.within) == place.within
    if is_own then list = list or place.list
    elseif place.rules[name] ~= nil then how = how or place.how:gsub("%%s", name) end
  end
  local meant = usage.translate(name, names) or how and (" (%s)"):format(how) or usage.suggest(name, names)
  return meant .. (list and ("; %s has the list"):format(list) or "")
end

--- Warns of a number that fits its rule, and yet looks as if it were in milliseconds.
-- @string where as for schema.check
-- @string name of the option
-- @param value
-- @tparam table rule
function schema.warn(where, name, value, rule)
  if type(value) == "number" and is_time(rule) then seconds.warn(where, name, value) end
end

--- What is wrong with a number by a rule's `integer`, `least`, `above` and `most`.
-- @number value
-- @tparam table rule
-- @treturn string words to follow the number's name, or nil
function schema.range_problem(value, rule)
  if value ~= value then return "is not a number" end
  if rule.integer and value % 1 ~= 0 then return "must be a whole number" end
  if rule.least and value < rule.least then return "must be at least " .. figure.exact(rule.least) end
  if rule.above and value <= rule.above then return "must be more than " .. figure.exact(rule.above) end
  if rule.most and value > rule.most then
    local time = is_time(rule) and value >= MILLISECONDS
    return ("must be at most %s%s"):format(figure.exact(rule.most),
      time and (" (%s: seconds, not milliseconds?)"):format(figure.exact(value)) or "")
  end
end

local function value_problem(value, rule)
  if not has_type(value, rule.type) then
    local instead = rule.type == "number" and seconds.suggest or rule.instead
    return ("must be a %s, not a %s%s"):format(type_words(rule.type), type(value),
      type(value) == "string" and instead and instead(value) or "")
  end
  if type(value) == "number" then
    local problem = schema.range_problem(value, rule)
    if problem then return problem end
  end
  if rule.values and type(value) == "string" then
    local known = {}
    for _, one in ipairs(rule.values) do known[one] = true end
    if not known[value] then
      return ("must be one of %s, not '%s'%s"):format(table.concat(rule.values, ", "), value,
        usage.suggest(value, rule.values))
    end
  end
  if type(value) == "string" and value:find "%z" then return "has a NUL byte in it, where the system would cut it off" end
  if rule.match and type(value) == "string" and not value:match(rule.match) then
    return ("'%s' is not possible: %s"):format(value, rule.match_words)
  end
  return rule.check and rule.check(value)
end

--- Checks the value of one option.
-- @string where as for schema.check
-- @string name of the option
-- @param value
-- @tparam table rule
-- @raise a usage error that names the option
function schema.check_value(where, name, value, rule)
  local problem = value_problem(value, rule)
  if problem then usage.error("%s: %s %s", where, name, problem) end
end

--- Checks options and fills in defaults.
-- @string where what to call the table in messages: "elect 'reports'"; options are named "where: option"
-- @tparam table options what the user gave
-- @tparam table rules the schema
-- @treturn table a new table: the options with defaults
-- @raise a usage error that names the option
function schema.check(where, options, rules)
  if type(options) ~= "table" then
    usage.error("%s: a table of options expected, not a %s", where, type(options))
  end
  local checked = {}
  for name, value in pairs(options) do
    local rule = rules[name]
    if not rule then
      usage.error("%s: unknown option '%s'%s", where, tostring(name), unknown(where, tostring(name), rules))
    end
    schema.check_value(where, name, value, rule)
    if rule.not_beside and options[rule.not_beside] ~= nil then
      usage.error("%s: %s has no effect beside %s: give one of them", where, name, rule.not_beside)
    end
    schema.warn(where, name, value, rule)
    checked[name] = value
  end
  for name, rule in pairs(rules) do
    if checked[name] == nil then
      if rule.required then usage.error("%s: %s is required: %s", where, name, rule.required) end
      if rule.default ~= nil then checked[name] = rule.default end -- nil would take a place in the table, too
    end
  end
  return checked
end

return schema
