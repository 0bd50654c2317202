--- The time zone of this host, by its name.
-- @internal crown.cron.host_zone

local files = require "crown.core.files"
local read_file = require "crown.text.read_file"

local LINK, NAME = "/etc/localtime", "/etc/timezone"

--- Finds it, as the C library does: TZ, or else what /etc/localtime links to. On old systems that is a copy, and /etc/timezone
-- has its name.
-- @treturn string "Europe/Berlin"; "UTC" where nothing is set; nil: it has no name
-- @treturn string where the name stands, in words; nil: in the host's files
local function host_zone()
  local given = os.getenv "TZ"
  given = given and given:gsub("^:", "")
  if given and given ~= LINK then return given == "" and "UTC" or given:match "/zoneinfo/(.+)$" or given, "the variable TZ" end
  local target = files.target(LINK)
  local name = target and target:match "zoneinfo/(.+)$" or (read_file(NAME) or ""):match "^%S+"
  return name or files.kind(LINK) == nil and "UTC" or nil
end

return host_zone
