--- The files of AWS's command line that hold profiles: ~/.aws/credentials and ~/.aws/config.
-- @internal crown.s3.profile

local files = require "crown.core.files"
local read_file = require "crown.text.read_file"

local profile = {}

-- What a profile may say and this client cannot do, with what to do instead.
local REFUSED = {
  { "sso_session", "it logs in by SSO, which crown-lua does not" },
  { "sso_start_url", "it logs in by SSO, which crown-lua does not" },
  { "credential_process", "it runs a program for its login (credential_process), which crown-lua does not" },
  { "role_arn", "it takes a role (role_arn), which crown-lua does not" },
}
local INSTEAD = ": give a profile with keys of its own, or let the instance have the role"

local function path_of(variable, name)
  local given = os.getenv(variable)
  if given and given ~= "" then return given, true end
  local home = os.getenv "HOME"
  return home and ("%s/.aws/%s"):format(home, name), false
end

-- @return the section's values, whether it is there
local function section(text, wanted)
  local found, is_there, inside = {}, false, false
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    local title = line:match "^%s*%[%s*(.-)%s*%]"
    if title then
      inside = title == wanted or title:match "^profile%s+(.*)$" == wanted
      is_there = is_there or inside
    elseif inside and line:find "^[%w_]" then
      local key, value = line:match "^([%w_]+)%s*=%s*(.-)%s*$"
      if key then found[key:lower()] = value end
    end
  end
  return found, is_there
end

--- Reads a profile.
-- @string[opt] name the user's; else AWS_PROFILE's, else "default"
-- @treturn table what both files say of it by their keys in small letters, `refused`: why it has no login that can be used;
-- or nil and a message, where it was named and is not there, or a file cannot be read
function profile.read(name)
  local wanted = name or os.getenv "AWS_PROFILE" or "default"
  local found, is_there = {}, false
  for _, one in ipairs { { "AWS_CONFIG_FILE", "config" }, { "AWS_SHARED_CREDENTIALS_FILE", "credentials" } } do
    local path, is_named = path_of(one[1], one[2])
    if path and (is_named or files.readable(path)) then
      local text, problem = read_file(path)
      if not text then return nil, problem end
      local values, there = section(text, wanted)
      is_there = is_there or there
      for key, value in pairs(values) do found[key] = value end
    end
  end
  if not is_there and (name or os.getenv "AWS_PROFILE") then return nil, ("there is no profile '%s'"):format(wanted) end
  for _, one in ipairs(REFUSED) do
    if found[one[1]] then found.refused = ("profile '%s': %s%s"):format(wanted, one[2], INSTEAD) end
  end
  return found
end

return profile
