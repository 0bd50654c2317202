--- Temporary files that somebody left behind who was killed while replacing a file of a lock (base/durable.c).
-- @internal crown.oracle.leftovers

local files = require "crown.core.files"

local leftovers = {}

local found = {} -- by directory, as it was when this program first led there: by election, paths

local function look(dir)
  local by_name = {}
  for _, file in ipairs(files.list(dir) or {}) do
    local name, what, pid = file:match "^(.+)%.(%l+)%.(%d+)%.new$"
    -- The record is written by whoever has the lock, an eviction by anybody at any time.
    if what == "json" or what == "evict" and not files.kind("/proc/" .. pid) then
      by_name[name] = by_name[name] or {}
      table.insert(by_name[name], dir .. "/" .. file)
    end
  end
  return by_name
end

--- What may be removed by whoever has the lock; each is told once.
-- @string dir of the lock
-- @string name of the lock
-- @treturn table an array of paths; or nil
function leftovers.take(dir, name)
  found[dir] = found[dir] or look(dir)
  local paths = found[dir][name]
  found[dir][name] = nil
  return paths
end

return leftovers
