--- Thousands of elections are mostly declared one after the other and differ in their names alone. What the options of the last
-- one came to serves the next one, if that is like it.
-- @internal crown.election.alike

local settings = require "crown.election.settings"

local alike = {}

local PLAIN = { string = true, number = true, boolean = true }

-- @return a copy, or nil: tables and functions in it may be other ones inside when they are seen again
local function copy_of(options, tables)
  local copy = {}
  for key, value in pairs(options) do
    local kept = value
    if tables[key] and type(value) == "table" then kept = copy_of(value, {}) end
    if kept == nil or kept == value and not PLAIN[type(value)] then return nil end
    copy[key] = kept
  end
  return copy
end

local function is_like(options, copy, but)
  if type(options) ~= "table" or type(copy) ~= "table" then return options == copy end
  for key, value in pairs(options) do
    if key ~= but and not is_like(value, copy[key]) then return false end
  end
  for key in pairs(copy) do
    if options[key] == nil then return false end
  end
  return true
end

local latest -- another task may replace it at any time

--- Keeps what an election's options came to.
-- @tparam table given the options, as the user gave them
-- @tparam table plan
function alike.keep(given, plan)
  local options = given.handlers == nil and copy_of(given, { oracle = true })
  if not options then return end
  latest = { options = options, plan = plan, oracle = settings.oracle, ttl = settings.ttl }
end

--- What the options of the last election came to, where these are the same but for the name.
-- @tparam table given
-- @treturn table or nil
function alike.find(given)
  local last = latest
  if not last or last.oracle ~= settings.oracle or last.ttl ~= settings.ttl or settings.checking then return nil end
  return is_like(given, last.options, "name") and last.plan or nil
end

return alike
