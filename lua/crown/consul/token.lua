--- The token that Consul is asked with. A file may be replaced at any time, so it is read again.
-- @internal crown.consul.token

local read_file = require "crown.text.read_file"

local token = {}

local function variable(name)
  local value = os.getenv(name)
  return value and value ~= "" and value or nil
end

--- Reads it: from the file that the user names, or from where Consul's own command has it.
-- @string[opt] file
-- @treturn string or false: there is none; or nil and a message
-- @treturn string where it is from, in words
function token.find(file)
  local path = file or variable "CONSUL_HTTP_TOKEN_FILE"
  local text, from = variable "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_TOKEN"
  if path then
    local problem
    text, problem = read_file(path)
    if not text then return nil, ("the token cannot be read: %s"):format(problem) end
    text, from = text:match "^%s*(.-)%s*$", "a file"
    if text == "" then return nil, ("the token's file is empty: %s"):format(path) end
  end
  if not text then return false, "no token" end
  if text:find "[%c ]" then return nil, ("the token from %s has the end of a line or a space in it"):format(from) end
  return text, from
end

return token
