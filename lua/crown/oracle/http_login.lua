--- Logins and headers of an oracle over HTTP: each goes into one line of a request.
-- @internal crown.oracle.http_login

local schema = require "crown.check.schema"
local usage = require "crown.check.usage"

local http_login = {}

local NAME = "^[%w!#$%%&'*+.^_`|~-]+$" -- a token: RFC 9110, section 5.6.2

-- Without the value, which may be a secret.
local function line_problem(value)
  if value:find "%c" then
    return "must be one line, without a newline at its end (of a file read as a whole?) or another control character"
  end
end

local function word_problem(value)
  return value == "" and "must not be empty" or line_problem(value)
end

local function headers_problem(headers)
  for name, value in pairs(headers) do
    if type(name) ~= "string" or not name:find(NAME) then
      return "must have names as keys: headers = { [\"X-Api-Key\"] = \"…\" }"
    end
    if type(value) == "table" then return ("has a table for '%s', not a text"):format(name) end
    local problem = line_problem(tostring(value))
    if problem then return ("'%s' %s"):format(name, problem) end
  end
end

--- The options' rules.
http_login.rules = {
  headers = { type = "table", default = {}, check = headers_problem },
  user = { type = "string", check = word_problem },
  password = { type = "string", check = line_problem },
  bearer = { type = "string", not_beside = "user", check = word_problem },
}

--- Checks what these options are beside each other and the URL.
-- @string where for messages: "oracle 'http_lease'"
-- @tparam table checked the options; `url` without those that are the oracle's
-- @tparam table rules all of the oracle
-- @raise a usage error that names the option
function http_login.check(where, checked, rules)
  local rest = checked.url:match "%?([^=&#]*)"
  if rest then schema.check(where, { [rest] = "" }, rules) end -- an unknown one: a query stands behind each path
  if checked.password and not checked.user then usage.error("%s: password has no effect without user", where) end
  if not checked.url:find "^%w+://[^/?#]*@" then return end
  for _, name in ipairs { "user", "bearer" } do
    if checked[name] then usage.error("%s: %s has no effect beside the user in the URL: give one of them", where, name) end
  end
end

return http_login
