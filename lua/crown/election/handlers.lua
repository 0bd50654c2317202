--- The won, lost, leader and campaign handlers: a module's name or a table, with or without a state of their own.
-- @internal crown.election.handlers

local schema = require "crown.check.schema"
local usage = require "crown.check.usage"

local handlers = {}
local NONE = { functions = {}, has_state = false } -- shared: most of many thousands of elections have no handlers
local KNOWN = { "init", "won", "lost", "leader", "campaign" }

schema.place({ init = true, won = true, lost = true, leader = true, campaign = true }, "handlers = { %s = … }", "docs/app.md")

local function load_table(where, given)
  if type(given) == "table" then return given end
  local found, loaded = pcall(require, given)
  if not found then usage.error("%s: handlers: %s", where, usage.one_line(loaded)) end
  if type(loaded) ~= "table" then
    usage.error("%s: handlers: module '%s' returns a %s, not a table", where, given, type(loaded))
  end
  return loaded
end

local function check_functions(where, loaded)
  for _, name in ipairs(KNOWN) do
    if loaded[name] ~= nil and type(loaded[name]) ~= "function" then
      usage.error("%s: handlers.%s must be a function, not a %s", where, name, type(loaded[name]))
    end
  end
end

-- In a table written out in the app, a name that is none of ours is a slip of the pen; a module may have others.
local function check_names(where, given)
  for name in pairs(given) do
    local known = false
    for _, one in ipairs(KNOWN) do known = known or one == name end
    if not known then
      usage.error("%s: handlers: unknown handler '%s'%s; there are %s", where, tostring(name),
        usage.suggest(tostring(name), KNOWN), table.concat(KNOWN, ", "))
    end
  end
end

--- Validates and prepares handlers.
-- @string where how messages name the election
-- @tparam nil|string|table given the option
-- @tparam table opts what `init` gets
-- @treturn table `{ functions =, has_state =, state = }`
function handlers.check(where, given, opts)
  if not given then return NONE end
  local loaded = load_table(where, given)
  check_functions(where, loaded)
  if type(given) == "table" and getmetatable(given) == nil then check_names(where, given) end
  local prepared = { functions = loaded, has_state = loaded.init ~= nil }
  if loaded.init then
    local state, reason = loaded.init(opts)
    if state == nil then
      usage.error("%s: handlers.init: %s", where, tostring(reason or "returned nothing"))
    end
    prepared.state = state
  end
  return prepared
end

--- Calls a handler, the state first where there is one.
-- @tparam table prepared of handlers.check
-- @string name of the handler
-- @param ... its arguments
function handlers.call(prepared, name, ...)
  local fn = prepared.functions[name]
  if not fn then return end
  if prepared.has_state then return fn(prepared.state, ...) end
  return fn(...)
end

return handlers
