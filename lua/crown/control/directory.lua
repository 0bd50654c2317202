--- The directory of this user's runtimes on this host: locks of the embedded oracle, and the sockets of
-- `crown-lua status`. It depends on the user alone, not on how the program was started, so that a login shell, cron, `sudo -u`
-- and a unit elect among each other; it is on a disk, where epochs outlive a reboot, and no cleaner empties it.
-- @internal crown.control.directory

local core = require "crown.core"
local files = require "crown.core.files"
local parent = require "crown.control.parent"
local usage = require "crown.check.usage"

local LONGEST = 107 - #"/runtime-4194304.sock" -- bytes: see unix(7), and pid_max in proc(5)

--- Where it is; it need not be there yet.
-- @treturn string `$CROWN_DIRECTORY`; else for root `/var/lib/crown-lua`, for others `.local/state/crown-lua` in their home
-- directory, or `/var/tmp/crown-lua-UID` where they have none
-- @raise a usage error where `$CROWN_DIRECTORY` is not absolute, too long, or no directory, or nothing is there to make it in
local function directory()
  local named = os.getenv "CROWN_DIRECTORY"
  if named and named ~= "" then
    if named:sub(1, 1) ~= "/" then usage.error("CROWN_DIRECTORY: '%s' is not an absolute path", named) end
    if #named > LONGEST then
      usage.error("CROWN_DIRECTORY has %d bytes: the path of a socket in it has room for %d", #named, LONGEST)
    end
    parent.check("CROWN_DIRECTORY=" .. named, named)
    local kind = files.kind(named)
    if kind == "file" or kind == "other" then usage.error("CROWN_DIRECTORY=%s: that is not a directory", named) end
    return named
  end
  local uid = core.user_ids()
  if uid == 0 then return "/var/lib/crown-lua" end
  local home = core.home()
  if home and home ~= "/" and files.kind(home) == "directory" then return home .. "/.local/state/crown-lua" end
  return ("/var/tmp/crown-lua-%d"):format(uid)
end

return directory
