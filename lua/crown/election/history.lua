--- The changes of leadership that this host has seen, in a file of this user's directory: a line of JSON each, of all
-- runtimes. `crown-lua history` reads it.
-- @internal crown.election.history

local core = require "crown.core"
local directory = require "crown.control.directory"
local elections = require "crown.core.election"
local files = require "crown.core.files"

local history = {}

local NAME = "/history"
local MOST = 1e6 -- bytes; what is older is kept once

local started

--- Begins to keep changes; once. C writes the lines (runtime/telemetry/history.h).
function history.start()
  if started then return end
  started = true
  elections.keep_history(directory() .. NAME, MOST)
end

--- What was kept, the oldest first.
-- @string place the directory: this user's, or another
-- @string[opt] name of the election; nil: of all
-- @treturn table an array of `{ event, time, name, node, leader, epoch, reason, store }`
-- @treturn string why a file that may be there could not be read, or nil
function history.read(place, name)
  local found, problem = {}, nil
  for _, file in ipairs { place .. NAME .. ".1", place .. NAME } do
    local is_plain, why = files.readable(file) -- a pipe in its place would have us wait
    local opened = is_plain and io.open(file, "r")
    local kind, blind = files.kind(file)
    if not opened and (kind or blind) then problem = why or file .. " cannot be opened" end
    for line in opened and opened:lines() or function() end do
      local is_wanted = not name or line:find(name, 1, true) -- most lines are of others, and decoding takes longest
      local fine, entry = pcall(core.json.decode, is_wanted and line or "")
      if fine and type(entry) == "table" and entry.event and tonumber(entry.time) then found[#found + 1] = entry end
    end
    if opened then opened:close() end
  end
  return found, problem
end

return history
