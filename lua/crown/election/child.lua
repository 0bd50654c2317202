--- A child as the user says it, made into what the C side starts.
-- @internal crown.election.child

local core = require "crown.core"
local options = require "crown.election.options"
local schema = require "crown.check.schema"
local usage = require "crown.check.usage"

local child = {}

-- The system would cut a text off there, and run another command than this one.
local function refuse_nul(where, name, text)
  if text:find "%z" then usage.error("%s: %s has a NUL byte in it", where, name) end
end

local function check_argv(where, argv)
  if #argv == 0 then usage.error("%s: command is empty: name a program", where) end
  for i = 1, #argv do
    if type(argv[i]) ~= "string" then
      usage.error("%s: command[%d] must be a string, not a %s", where, i, type(argv[i]))
    end
    refuse_nul(where, ("command[%d]"):format(i), argv[i])
  end
  for key in pairs(argv) do
    if type(key) == "string" then
      usage.error("%s: beside '%s' the command has a name of its own: child = { command = { … }, %s = … }", where, key, key)
    elseif type(key) ~= "number" or key < 1 or key > #argv or key % 1 ~= 0 then
      usage.error("%s: command must be a list without holes: entry '%s' is not in order", where, tostring(key))
    end
  end
  return argv
end

local function check_env(where, env)
  local checked = {}
  for key, value in pairs(env) do
    if type(key) ~= "string" or key == "" or key:find "[=%z]" then
      usage.error("%s: env: '%s' is no name of a variable", where, tostring(key))
    end
    if type(value) ~= "string" and type(value) ~= "number" then
      usage.error("%s: env.%s must be a string, not a %s", where, key, type(value))
    end
    checked[key] = tostring(value)
    refuse_nul(where, "env." .. key, checked[key])
  end
  return checked
end

local LOG_FIELDS = 4 -- CHILD_LOG_FIELDS

-- As the log writes them: in the order of their names.
local function check_log_fields(where, fields)
  local names, flat = {}, {}
  for name, value in pairs(fields) do
    if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" or type(value) ~= "string" then
      usage.error("%s: log_fields.%s: a field has a name of letters, digits and '_', and a text", where, tostring(name))
    end
    refuse_nul(where, "log_fields." .. name, value)
    names[#names + 1] = name
  end
  if #names > LOG_FIELDS then usage.error("%s: log_fields has more than %d fields", where, LOG_FIELDS) end
  table.sort(names)
  for i, name in ipairs(names) do flat[2 * i - 1], flat[2 * i] = name, fields[name] end
  return flat
end

local function check_output(where, name, value)
  if value == "inherit" or value == "null" or value:find("/", 1, true) then return value end
  if value == "log" and name ~= "stdin" then return value end
  usage.error("%s: %s must be inherit, null%s or a path with a slash, not '%s'", where, name,
    name == "stdin" and "" or ", log", value)
end

-- { lua = "module" } is a process of its own that runs the module; it finds modules as its parent does.
local function lua_command(env, module)
  env.CROWN_LUA_PATH = package.path
  return { "/proc/self/exe", "--lua-child", module }
end

local function ids(where, spec, user, group)
  if user == nil and group == nil then return end
  local uid, gid, groups = core.user_ids(user and tostring(user), group and tostring(group))
  if not uid then usage.error("%s: %s", where, gid) end
  spec.uid, spec.gid, spec.groups = uid, gid, groups
end

local function restart(where, given)
  local checked = schema.check(where .. ": restart", given or {}, options.restart)
  return { policy = checked.policy, max = checked.max, within = checked.within,
    backoff_first = checked.backoff[1], backoff_most = checked.backoff[2] }
end

--- Validates a child.
-- @string where how messages name it: "elect 'reports': child"
-- @tparam table given an argv list, or options
-- @treturn table what crown.core.election takes as `child`
-- @treturn table its restart policy
-- @treturn number its stop_timeout, or nil
function child.check(where, given)
  if given[1] ~= nil then given = { command = given } end
  local checked = schema.check(where, given, options.child)
  if (checked.command == nil) == (checked.lua == nil) then
    usage.error("%s: give either a command (a list) or lua (a module's name)", where)
  end
  local env = check_env(where, checked.env or {})
  local spec = {
    argv = checked.command and check_argv(where, checked.command) or lua_command(env, checked.lua),
    lua = checked.lua,
    env = env,
    cwd = checked.cwd,
    log_fields = checked.log_fields and check_log_fields(where, checked.log_fields) or nil,
    keep_output = checked.keep_output,
    stdin = check_output(where, "stdin", checked.stdin),
    stdout = check_output(where, "stdout", checked.stdout),
    stderr = check_output(where, "stderr", checked.stderr),
    stop_signal = options.signal_number(checked.stop_signal),
    isolation = checked.isolation,
    terminal = checked.terminal,
    escalate = checked.mode == "interrupt",
    told = checked.told,
    watchdog = checked.watchdog,
    signalled = checked.mode == "signal",
    fence = checked.fence,
  }
  if checked.keep_output and checked.stdout ~= "log" and checked.stderr ~= "log" then
    usage.error("%s: keep_output keeps what goes to the log: let stdout or stderr be log", where)
  end
  if checked.fence and not spec.signalled then usage.error("%s: fence is for mode = \"signal\"", where) end
  ids(where, spec, checked.user, checked.group)
  local policy = restart(where, checked.restart)
  spec.decides = policy.policy == "finish"
  return spec, policy, checked.stop_timeout
end

return child
