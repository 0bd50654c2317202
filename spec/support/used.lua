--- What a process takes up.
local files = require "crown.core.files"
local read_file = require "crown.text.read_file"

--- @number pid
-- @treturn number MiB that it has in memory
-- @treturn number descriptors that it has open
return function(pid)
  local kib = read_file(("/proc/%d/status"):format(pid)):match "VmRSS:%s+(%d+)"
  return tonumber(kib) / 1024, #files.list(("/proc/%d/fd"):format(pid))
end
