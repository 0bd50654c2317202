--- The rule `healthy`: a candidate whose check fails does not lead. The check is a function, a command, or a URL.
-- @internal crown.election.health

local core = require "crown.core"
local exec = require "crown.core.exec"
local figure = require "crown.check.figure"
local preference = require "crown.election.preference"
local printable = require "crown.text.printable"
local promise = require "crown.core.promise"
local request = require "crown.core.http_request"
local schema = require "crown.check.schema"
local usage = require "crown.check.usage"

local health = {}

local NOT_YET = "not checked yet"
local LOOK = 0.05 -- seconds between two looks whether a term has ended
local LONGEST = 200 -- bytes of a reason that are kept
local MOST_OF_AN_ANSWER = 65536 -- bytes; only the status counts

local function exec_problem(words)
  if #words == 0 then return "must be a list of words: the program and its arguments" end
  for _, word in ipairs(words) do
    if type(word) ~= "string" then return "must be a list of words: the program and its arguments" end
  end
end

local function url_problem(url)
  if not url:find "^https?://[^/]" then return "must be a URL: http://… or https://…" end
end

local RULES = {
  check = { type = "function" },
  exec = { type = "table", check = exec_problem },
  http = { type = "string", check = url_problem },
  every = { type = "number", above = 0, most = 86400, default = 5 },
  timeout = { type = "number", above = 0, most = 3600, default = 3 },
  fail = { type = "number", integer = true, least = 1, most = 1000, default = 3 },
  pass = { type = "number", integer = true, least = 1, most = 1000, default = 2 },
}

-- The last line that a command wrote.
local function last_line(result)
  return (result.stderr .. "\n" .. result.stdout):match "([^\r\n]*%S)%s*$" or result.stderr:match "([^\r\n]*%S)%s*$"
end

local function by_command(check, who)
  local env = { CROWN_ELECTION = who.name, CROWN_NODE = who.node }
  local result, problem, code = exec(check.exec, { timeout = check.timeout, env = env })
  if not result then
    local late = ("%s did not end within %s s"):format(check.exec[1], figure.exact(check.timeout))
    return false, code == "timeout" and late or problem
  end
  if result.code == 0 then return true end
  local how = result.signal and ("signal %d"):format(result.signal) or ("exit code %d"):format(result.code)
  local line = last_line(result)
  return false, line and ("%s: %s"):format(how, line) or how
end

local function by_url(check)
  local status, problem = request { url = check.http, timeout = check.timeout, most = MOST_OF_AN_ANSWER, headers = {} }
  if not status then return false, problem end
  return status >= 200 and status <= 299, ("HTTP status %d"):format(status)
end

-- A function may wait, and may do so for longer than it is waited for.
local function by_function(check)
  local answer = promise()
  local task = core.spawn(function() answer:resolve(pcall(check.check)) end)
  local fine, healthy, why = answer:wait(check.timeout)
  if fine == nil then
    if task then task:cancel() end
    return false, ("no answer within %s s"):format(figure.exact(check.timeout))
  end
  if not fine then return false, usage.one_line(healthy) end
  return healthy == true, why ~= nil and tostring(why) or ("the check said %s"):format(tostring(healthy))
end

-- One that is to lead all the same where nobody else does: a term of its own ends first, so that those who are healthy may claim.
local function lead_as_the_last(handle, who)
  who.rank.is_last = true
  repeat
    core.sleep(LOOK)
    if handle:finished() or not who.rank.is_last then return end
    local state = handle:status().state
  until state == "following" or state == "init"
  handle:allow "unhealthy"
end

local LAST_RESORT = "'%s' is unhealthy here (%s), and is led here only where nobody else does"

local function turn(check, handle, who, healthy, why)
  if healthy then
    if who.rank and who.rank.is_last then
      who.rank.is_last = nil
      who.state:ranked()
    end
    preference.allowed(who)
    return handle:allow "unhealthy"
  end
  local words = printable(core.redact(tostring(why))):sub(1, LONGEST)
  handle:bar("unhealthy", words)
  if not check.last_resort then return end
  core.log("warn", LAST_RESORT:format(printable(who.name), words), {})
  core.detach(lead_as_the_last, handle, who)
end

-- Answers in a row count: `fail` of them make a candidate unhealthy, `pass` of them healthy again; the first one alone decides.
local function watch(check, handle, who)
  local healthy, row, known = false, 0, false
  repeat
    local fine, why = check.ask(check, who)
    row = fine ~= healthy and row + 1 or 0
    local turns = row >= (fine and check.pass or check.fail) or not known
    if turns then healthy, row, known = fine, 0, true end
    if handle:finished() then return end
    if turns or not healthy and not fine and not check.last_resort then turn(check, handle, who, healthy, why) end
    core.sleep(check.every)
  until handle:finished()
end

local function describe(check)
  local what = check.exec and table.concat(check.exec, " ") or check.http or "a function"
  return ("while healthy: %s, asked every %s s for %s s at most; %d in a row make it unhealthy, %d healthy again"):format(
    printable(core.redact(what)), figure.exact(check.every), figure.exact(check.timeout), check.fail, check.pass)
end

--- Makes the rule of an option.
-- @string where how messages name the election
-- @param given a function → true, or false and why; or `{ check | exec | http =, every =, timeout =, fail =, pass = }`
-- @tparam table options the election's, checked: `last_resort`
-- @treturn table the rule, as crown.election.rules has it
-- @raise a usage error
function health.rule(where, given, options)
  where = where .. ": healthy"
  local check = schema.check(where, type(given) == "function" and { check = given } or given, RULES)
  local count = (check.check and 1 or 0) + (check.exec and 1 or 0) + (check.http and 1 or 0)
  if count ~= 1 then
    usage.error("%s: name one check: healthy = function() … end, { exec = { … } } or { http = URL }", where)
  end
  check.last_resort = options.last_resort
  check.ask = check.exec and by_command or check.http and by_url or by_function
  return { words = describe(check), begin = function(handle, who)
    handle:bar("unhealthy", NOT_YET)
    core.detach(watch, check, handle, who)
  end }
end

return health
