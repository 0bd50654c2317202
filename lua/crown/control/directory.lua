--- The directory of this user's runtimes on this host: locks of the embedded oracle, and the sockets of
-- `crown-lua status`.
-- @module crown.control.directory

local core = require "crown.core"

--- Where it is; it need not be there yet.
-- @treturn string `$XDG_RUNTIME_DIR/crown-lua`, for root `/run/crown-lua`, else `/tmp/crown-lua-UID`
local function directory()
  local uid = core.user_ids()
  local runtime = os.getenv "XDG_RUNTIME_DIR"
  if runtime and runtime ~= "" then return runtime .. "/crown-lua" end
  if uid == 0 then return "/run/crown-lua" end
  return ("/tmp/crown-lua-%d"):format(uid)
end

return directory
