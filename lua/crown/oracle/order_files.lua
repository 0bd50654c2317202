--- Operators' orders beside lock files: NAME.orders, which is empty where nothing is ordered. It is written over as a whole, by
-- who has locked it; its text is its version.
-- @internal crown.oracle.order_files

local core = require "crown.core"
local files = require "crown.core.files"
local full_disk = require "crown.text.full_disk"
local lockfile = require "crown.core.lockfile"
local read_file = require "crown.text.read_file"

local OrderFiles = {}
OrderFiles.__index = OrderFiles

local TRIES, PAUSE = 100, 0.01 -- seconds, while another one writes

--- Makes one.
-- @string dir
-- @tparam function replace `(path, text)` → true, or nil and a message: writes a file as a whole
-- @treturn OrderFiles see crown.oracle.order_book
function OrderFiles.new(dir, replace)
  return setmetatable({ dir = dir, replace = replace }, OrderFiles)
end

--- The file of an election's orders.
-- @string dir
-- @string name
-- @treturn string
function OrderFiles.path(dir, name) return ("%s/%s.orders"):format(dir, name) end

local function answer_of(path)
  local text = files.readable(path) and read_file(path) or nil
  return text and text ~= "" and { text = text, version = text } or false
end

--- As a store of orders has it.
function OrderFiles:read(names)
  local found, all = {}, names
  if not all then
    local listed, problem = {}, nil
    if files.kind(self.dir) then listed, problem = files.list(self.dir) end
    if not listed then return nil, problem, "store" end
    all = {}
    for _, file in ipairs(listed) do all[#all + 1] = file:match "^(.+)%.orders$" end
  end
  for _, name in ipairs(all) do
    local answer = answer_of(OrderFiles.path(self.dir, name))
    if answer or names then found[name] = answer end
  end
  return found
end

-- @return the file, locked; or nil and a message
local function open(self, path)
  for _ = 1, TRIES do
    local fine, problem = files.kind(path) ~= nil, nil
    if not fine then fine, problem = self.replace(path, "") end
    local lock
    if fine then lock, problem = lockfile.open(path) end
    if not lock then return nil, problem end
    if lock:try() and lock:same(path) then return lock end
    lock:close()
    core.sleep(PAUSE)
  end
  return nil, path .. " is locked by another program"
end

--- As a store of orders has it.
function OrderFiles:write(name, text, version)
  local path = OrderFiles.path(self.dir, name)
  local lock, problem = open(self, path)
  if not lock then return nil, full_disk.of_locks(self.dir, problem), "store" end
  local stands, written = answer_of(path), false
  if (stands and stands.version) == version then written, problem = self.replace(path, text or "") end
  lock:close()
  return written, full_disk.of_locks(self.dir, problem), "store"
end

return OrderFiles
