--- Whether a directory that somebody names may be made.
-- @internal crown.control.parent

local files = require "crown.core.files"
local usage = require "crown.check.usage"

local parent = {}

--- Refuses a directory under another one that is not there: it is mistyped, or its file system is not mounted, and who makes it
-- elects beside those who have the right one. Directly below / only root could make one, and / is always there, so that it says
-- nothing for the name. What cannot be looked at is left to whoever opens it, who says why.
-- @string label what the user wrote: "file:/a/b"
-- @string dir an absolute path
-- @raise a usage error that says what to make
function parent.check(label, dir)
  local above = dir:match "^(.-)/+[^/]+/*$"
  if not above then return end
  local is_below_root = above == ""
  local kind, problem = files.kind(is_below_root and dir or above)
  if kind or problem then return end
  if is_below_root then
    usage.error("%s: there is no directory %s, and none is made directly below /: make it first, if that is the right one "
      .. "(mkdir -m 700 %s)", label, dir, (dir:gsub("/+$", "")))
  end
  usage.error("%s: there is no directory %s: make it first, if that is the right one (mkdir -p %s)", label, above, above)
end

return parent
