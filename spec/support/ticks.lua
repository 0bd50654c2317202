--- Reads the ticks of children: who led when, and that no two led at once.
local eventually = require "crown.testing.eventually"

local ticks = {}

--- All ticks of a file, in order of time.
-- @treturn table of `{ at = seconds, node =, epoch =, role =, pid = }`
function ticks.read(path)
  local found = {}
  local file = io.open(path, "rb")
  if not file then return found end
  for at, node, epoch, role, pid in file:read("*a"):gmatch "(%d+) (%S+) (%d+) (%S+) (%d+)\n" do
    found[#found + 1] = { at = tonumber(at) / 1e9, node = node, epoch = tonumber(epoch), role = role,
      pid = tonumber(pid) }
  end
  file:close()
  table.sort(found, function(a, b) return a.at < b.at end)
  return found
end

--- The terms that ticked: first and last tick of each epoch.
function ticks.terms(path)
  local by_epoch, order = {}, {}
  for _, tick in ipairs(ticks.read(path)) do
    if tick.role == "leader" then
      local term = by_epoch[tick.epoch]
      if not term then
        term = { epoch = tick.epoch, node = tick.node, first = tick.at }
        by_epoch[tick.epoch] = term
        order[#order + 1] = term
      end
      term.last = tick.at
    end
  end
  return order
end

--- Seconds during which two terms ticked at once; epochs must rise too.
function ticks.overlap(path)
  local sum, terms = 0, ticks.terms(path)
  for i = 2, #terms do
    assert(terms[i].epoch > terms[i - 1].epoch, "an epoch went back")
    sum = sum + math.max(0, terms[i - 1].last - terms[i].first)
  end
  return sum
end

--- Waits for the first tick of a term behind `epoch`.
function ticks.await(path, epoch, seconds)
  return eventually(function()
    local terms = ticks.terms(path)
    local last = terms[#terms]
    return last and last.epoch > epoch and last
  end, seconds or 10)
end

return ticks
