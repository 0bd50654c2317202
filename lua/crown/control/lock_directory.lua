--- The directory of a file oracle's locks.
-- @internal crown.control.lock_directory

local default = require "crown.control.directory"
local parent = require "crown.control.parent"
local usage = require "crown.check.usage"

--- Where it is; it need not be there yet.
-- @tparam table opts of the oracle: `dir`; or `path`, of its URL
-- @treturn string an absolute path
-- @raise a usage error for one that cannot be meant
local function lock_directory(opts)
  if opts.dir and opts.path and opts.path ~= "" and opts.path ~= opts.dir then
    usage.error("oracle 'file': the directory %s of the URL has no effect beside dir = %s: give one of them", opts.path, opts.dir)
  end
  local dir = opts.dir or opts.path
  if not dir or dir == "" then return default() end
  if dir:sub(1, 1) ~= "/" then
    usage.error("file:%s is relative to the working directory: write file:%s/%s", dir, os.getenv "PWD" or "", dir)
  end
  parent.check("file:" .. dir, dir)
  return dir
end

return lock_directory
