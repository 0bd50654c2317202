--- The terms of elections that this host has seen: each from when its leader was first seen until it ended or the next one began.
-- @internal crown.election.terms

local history = require "crown.election.history"

local terms = {}

-- Elections of one name in several stores are several. What was written before the store was kept counts for any.
function terms.key(name, place)
  return ("%s\n%s"):format(name, place or "")
end

local function begin(list, open, entry)
  local key = terms.key(entry.name, entry.store)
  local before, leader = open[key], entry.leader
  if before and before.leader == leader and (before.epoch == entry.epoch or entry.epoch == 0) then return end
  if before and not before.ended then before.ended, before.at_most = entry.time, true end -- it may have ended long before
  local term = { name = entry.name, store = entry.store, leader = leader, epoch = entry.epoch, began = entry.time }
  open[key] = term
  list[#list + 1] = term
end

local function finish(open, entry)
  local term = open[terms.key(entry.name, entry.store)]
  if not term or term.leader ~= entry.node or term.epoch ~= entry.epoch then return end
  term.ended, term.reason = entry.time, entry.reason
end

-- Several runtimes of a host tell of the same term: it counts once, from when it was first seen.
local function list_of(entries, name)
  local list, open = {}, {}
  for _, entry in ipairs(entries) do
    if name == nil or entry.name == name then
      if entry.event == "leadership.lost" then
        finish(open, entry)
      else
        begin(list, open, entry)
      end
    end
  end
  return list
end

--- Reads the terms.
-- @tparam table places directories of runtimes, as of crown.control.places
-- @string[opt] name of one election; nil: of all
-- @treturn table an array in their order: `{ name =, store =, leader =, epoch =, began =, ended =, reason =, at_most = }`:
-- `at_most` where it was not seen to end, and the next one was seen to begin
-- @treturn table texts: why a file that may be there could not be read
-- @treturn table the entries that were read: with a name all of its, and some of others
function terms.read(places, name)
  local entries, problems = {}, {}
  for _, place in ipairs(places) do
    local found, problem = history.read(place, name)
    problems[#problems + 1] = problem
    for _, entry in ipairs(found) do entries[#entries + 1] = entry end
  end
  for i, entry in ipairs(entries) do entry.order = i end
  table.sort(entries, function(a, b)
    if a.time ~= b.time then return a.time < b.time end
    return a.order < b.order
  end)
  return list_of(entries, name), problems, entries
end

return terms
