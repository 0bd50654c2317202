--- The share of slips that were killed, with its interval, by group, and whether that is good enough.
local groups = require "slips.groups"
local results = require "slips.results"

local report = {}

local Z = 1.959964         -- 95 %, for who reads it
local BY_CHANCE = 1 / 1000 -- for who is stopped by it: a few slips may not fail a run in which nothing has got worse

--- Wilson's interval, 95 %. @return its ends, from 0 to 1
-- @number killed
-- @number all
function report.interval(killed, all)
  if all == 0 then return 0, 1 end
  local share, z2 = killed / all, Z * Z
  local middle = (share + z2 / (2 * all)) / (1 + z2 / all)
  local half = Z / (1 + z2 / all) * math.sqrt(share * (1 - share) / all + z2 / (4 * all * all))
  return math.max(0, middle - half), math.min(1, middle + half)
end

--- How likely it is that so few of `all` slips are killed, or fewer, where each is with the chance `least`.
-- Exact, since an interval is not where there are few slips: Wilson's would fail a run for the first slip that survives.
-- @number killed
-- @number all
-- @number least above 0 and below 1
function report.chance(killed, all, least)
  local sum, log = 0, all * math.log(1 - least) -- of none killed
  for count = 0, killed do
    sum = sum + math.exp(log)
    log = log + math.log((all - count) / (count + 1) * least / (1 - least))
  end
  return math.min(1, sum)
end

--- Is a share too low, even if chance was against it? Of a thousand runs of code that reaches `least` at most one is told so.
function report.too_low(killed, all, least)
  return report.chance(killed, all, least) < BY_CHANCE
end

local function new_row() return { killed = 0, survived = 0, untested = 0, equal = 0, same = 0, refused = 0, late = 0, seconds = 0 } end

local function wanted_of(group)
  local wanted = (", at least %.0f"):format(100 * group.least)
  return group.held < group.least and ("%s, %.0f so far"):format(wanted, 100 * group.held) or wanted
end

-- @return whether it is too low; nil for a row that is no group's
local function print_row(name, row, group)
  local all = row.killed + row.survived + row.untested
  local from, to = report.interval(row.killed, all)
  print(("%-10s %4d of %4d killed  %5.1f %% (%.0f to %.0f)%s  %3d equal, %d marked, %d refused  %5.0f s"):format(name, row.killed,
    all, 100 * row.killed / math.max(1, all), 100 * from, 100 * to, group and wanted_of(group) or "",
    row.equal, row.same, row.refused, row.seconds))
  return group and report.too_low(row.killed, all, group.held)
end

--- Prints the table.
-- @tparam table slips of the run
-- @string directory of the run
-- @treturn boolean whether no group's share is too low, and any slip was tried at all
function report.print(slips, directory)
  local found, rows, total, bad = results.load(directory), {}, new_row(), {}
  if #slips > 0 and not next(found) then
    print "no slip was tried: what was said above tells why"
    return false
  end
  for _, one in ipairs(slips) do
    local result = found[results.name(one)]
    if result then
      local name = groups.of(one.file).name
      rows[name] = rows[name] or new_row()
      for _, row in ipairs { rows[name], total } do
        row[result.state] = row[result.state] + 1
        row.seconds = row.seconds + result.seconds
      end
    end
  end
  for _, group in ipairs(groups) do
    if rows[group.name] and print_row(group.name, rows[group.name], group) then bad[#bad + 1] = group.name end
  end
  print_row("all", total)
  if #bad > 0 then print("too few are killed in: " .. table.concat(bad, ", ")) end
  return #bad == 0
end

return report
