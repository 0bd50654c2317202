--- Lock files that were taken away from under their holders: whose path names another file by now, or none. The lock is
-- held all the same, by whatever is left of the holder's tree, and nobody else may lead before it is free.
--
-- It is found in two ways: this user's processes show what they have open, also without any record; and /proc/locks
-- shows the locks of everybody, by the number of the file, which the record names.
-- @module crown.oracle.old_lock

local core = require "crown.core"
local lockfile = require "crown.core.lockfile"
local read_file = require "crown.text.read_file"
local Shared = require "crown.link.shared"

local old_lock = {}

local WINDOW = 0.005 -- seconds in which claims gather that one look serves, since many start at once
local APART = 0.1 -- seconds after a look in which the next one waits for company; one alone goes at once

local function opened_by_path()
  local opened, problem = lockfile.opened()
  if not opened then return nil, problem end
  local by_path = {}
  for descriptor, path in pairs(opened) do
    path = path:gsub(" %(deleted%)$", "")
    by_path[path] = by_path[path] or {}
    table.insert(by_path[path], descriptor)
  end
  return by_path
end

-- The numbers of the files that somebody holds a lock on.
local function locked_files()
  local text = read_file "/proc/locks"
  if not text then return nil, "/proc/locks cannot be read" end
  local numbers = {}
  for number in text:gmatch "OFDLCK%s+ADVISORY%s+WRITE%s+%-?%d+%s+(%x+:%x+:%d+)" do numbers[number] = true end
  return numbers
end

-- A look begins after it is asked for: whoever holds an older file has had it open since before the newer one was made.
local function looks(fn)
  local before = -math.huge
  return Shared.new(fn, function()
    local alone = core.now() - before > APART
    before = core.now()
    return alone and 0 or WINDOW
  end)
end

local opened, locked = looks(opened_by_path), looks(locked_files)

--- Looks for who still holds an older file of a lock that is ours.
-- @param lock of crown.core.lockfile
-- @string[opt] recorded the number of the file that somebody led by
-- @treturn string what the file of the holder holds ("" where that cannot be seen); false when there is none; or nil and a
-- message
-- @treturn table with false, what older files hold that nobody has locked
function old_lock.holder(lock, recorded)
  local path, number = lock:name()
  if not path then return nil, number end
  local by_path, problem = opened:ask()
  if not by_path then return nil, problem end
  local free = {}
  for _, descriptor in ipairs(by_path[path] or {}) do
    local held, text, other = lockfile.look(descriptor)
    if other and other ~= number then
      if held then return text end
      free[#free + 1] = text
    end
  end
  if not recorded or recorded == number then return false, free end
  local numbers
  numbers, problem = locked:ask() -- only now: the kernel takes 15 ms to say so
  if not numbers then return nil, problem end
  if numbers[recorded] then return "" end
  return false, free
end

return old_lock
