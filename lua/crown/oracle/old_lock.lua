--- Lock files that were taken away from under their holders: whose path names another file by now, or none. The lock is
-- held all the same, by whatever is left of the holder's tree, and nobody else may lead before it is free.
--
-- It is found in two ways: this user's processes show what they have open, also without any record; and /proc/locks
-- shows the locks of everybody, by the number of the file, which the record names. A file that was moved, or whose directory
-- was, has another path by now, and holds the one by which it was locked.
-- @internal crown.oracle.old_lock

local core = require "crown.core"
local lockfile = require "crown.core.lockfile"
local read_file = require "crown.text.read_file"
local Shared = require "crown.link.shared"

local old_lock = {}

local WINDOW = 0.005 -- seconds in which claims gather that one look serves, since many start at once
local APART = 0.1 -- seconds after a look in which the next one waits for company; one alone goes at once
local SHARE = 4 -- times as long as the last look took: looks of thousands of locks must leave the loop to the claims

local function last_word(path) return path:match "[^/]*$" end

local function opened_by_name()
  local opened, problem = lockfile.opened()
  if not opened then return nil, problem end
  local by_name = {}
  for descriptor, path in pairs(opened) do
    path = path:gsub(" %(deleted%)$", "")
    local name = last_word(path)
    by_name[name] = by_name[name] or {}
    table.insert(by_name[name], { descriptor = descriptor, path = path })
  end
  return by_name
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
  local ended, took = -math.huge, 0
  return Shared.new(function()
    local began = core.now()
    local found, problem = fn()
    ended = core.now()
    took = ended - began
    return found, problem
  end, function()
    return core.now() - ended > APART and 0 or math.max(WINDOW, SHARE * took)
  end)
end

local opened, locked = looks(opened_by_name), looks(locked_files)

--- Looks for who still holds an older file of a lock that is ours.
-- @param lock of crown.core.lockfile
-- @string[opt] recorded the number of the file that somebody led by
-- @tparam function path_in returns the path by which a file was locked, by what it holds; nil where that does not say
-- @treturn string what the file of the holder holds ("" where that cannot be seen); false when there is none; or nil and a
-- message
-- @treturn table with false, what older files hold that nobody has locked
function old_lock.holder(lock, recorded, path_in)
  local path, number = lock:name()
  if not path then return nil, number end
  local by_name, problem = opened:ask()
  if not by_name then return nil, problem end
  local free = {}
  for _, one in ipairs(by_name[last_word(path)] or {}) do
    local held, text, other = lockfile.look(one.descriptor)
    if other and other ~= number and (one.path == path or path_in(text) == path) then
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
