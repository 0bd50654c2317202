-- `make torture`: real candidates on real stores, hurt by random faults, judged by their children's ticks.
-- crown-lua spec/torture/main.lua STORES FAULTS SEED [SIDE_BY_SIDE] [whole]: STORES a list with commas, or all; with `jobs:` before
-- it, hosts with a crontab; whole: a schedule that fails is not made smaller
package.path = "./spec/?.lua;" .. package.path

local crown = require "crown"
local JobWorld = require "torture.job_world"
local ranks = require "torture.ranks"
local schedule = require "torture.schedule"
local shrink = require "torture.shrink"
local stores = require "torture.stores"
local tables = require "crown.command.tables"
local torture_names = require "torture.names"
local World = require "torture.world"

local A_RUN = 25           -- faults
local UNEXPLAINED_MOST = 3 -- seconds without a leader that no fault explains
local MODES = { "plain", "stubborn" }

local wanted = arg[1] or "all"
local kind = wanted:find "^jobs:" and JobWorld or World
local KNOWN = kind == JobWorld and JobWorld.STORES or stores.NAMES
wanted = wanted:gsub("^jobs:", "")

-- On a store of its own: what an earlier run has done to one must not tell on the next.
local function play(name, draw, mode, seed)
  local store = stores.start(name)
  if kind == World then ranks.draw(store, seed) end
  local list = draw(store)
  local world = kind.new(store, mode)
  local fine, result = pcall(world.play, world, list)
  if not fine then result = { wrong = { tostring(result) }, terms = 0, overlap = 0, epochs = 0, gap = 0, unexplained = 0 } end
  for _, text in ipairs(world:destroy()) do table.insert(result.wrong, text) end
  if result.unexplained > UNEXPLAINED_MOST then
    table.insert(result.wrong, ("nobody led for %.1f s that no fault explains"):format(result.unexplained))
  end
  store.server:destroy()
  result.said, result.logs = world.said, world.dir or world.cluster.dir
  return result, list
end

local function report(name, seed, mode, list, result)
  print(("\n%s, seed %d, children of mode %s:"):format(name, seed, mode))
  for _, text in ipairs(result.wrong) do print("  " .. text) end
  print("what happened:\n  " .. table.concat(result.said, "\n  "))
  print("schedule:\n" .. schedule.text(list))
  print(("again: make torture %sSTORE=%s FAULTS=%d SEED=%d"):format(kind == JobWorld and "JOBS=1 " or "", name, #list, seed))
  print("the logs of the candidates are kept in /tmp/crown-kept-" .. require("crown.core").pid .. "\n")
  os.execute(("cp -r %s /tmp/crown-kept-%d"):format(result.logs, require("crown.core").pid))
  io.flush()
end

local function torture(name, count, first_seed)
  local sum = { faults = 0, terms = 0, overlap = 0, epochs = 0, gap = 0, unexplained = 0, runs = 0, wrong = 0 }
  local seed = first_seed
  while sum.faults < count do
    local size = math.min(A_RUN, count - sum.faults)
    local mode = MODES[seed % #MODES + 1]
    local began, result, list = pcall(play, name, function(store)
      return schedule.draw(store, seed, size, World.CANDIDATES, kind.WITHOUT)
    end, mode, seed)
    if not began then -- as where a server did not start in time on a busy machine; the others go on
      print(("%-10s seed %-8d could not begin: %s"):format(name, seed, tostring(result)))
      result = { wrong = { "could not begin" }, terms = 0, overlap = 0, epochs = 0, gap = 0, unexplained = 0 }
      list, count = {}, count - size
    end
    sum.faults, sum.runs, sum.terms = sum.faults + #list, sum.runs + 1, sum.terms + result.terms
    sum.overlap, sum.epochs = sum.overlap + result.overlap, sum.epochs + result.epochs
    sum.gap, sum.unexplained = math.max(sum.gap, result.gap), math.max(sum.unexplained, result.unexplained)
    if #result.wrong > 0 then
      sum.wrong = sum.wrong + 1
      if began then report(name, seed, mode, list, result) end
      local function fails(part) return #play(name, function() return part end, mode, seed).wrong > 0 end
      local smaller = (arg[5] == "whole" or not began) and list or shrink(list, fails)
      if #smaller < #list then print("enough of it:\n" .. schedule.text(smaller)) end
    end
    print(("%-10s seed %-8d %3d faults %3d terms  longest gap %5.1f s  unexplained %4.1f s  %s"):format(name, seed, #list,
      result.terms, result.gap, result.unexplained, #result.wrong == 0 and "fine" or "WRONG"))
    io.flush()
    seed = seed + 1
  end
  return sum
end

local names = {}
for name in (wanted == "all" and table.concat(KNOWN, ",") or wanted):gmatch "[^,]+" do names[#names + 1] = name end
local count, seed, side_by_side = tonumber(arg[2]) or 25, tonumber(arg[3]) or 1, tonumber(arg[4]) or 4

local rows, good, wrong, at, running = {}, 0, 0, 0, 0
local function work()
  while at < #names do
    at = at + 1
    local mine = at
    local sum = names[mine] == "registry" and torture_names(count, seed) or torture(names[mine], count, seed)
    good, wrong = good + sum.runs - sum.wrong, wrong + sum.wrong
    rows[mine] = { names[mine], ("%d"):format(sum.faults), ("%d"):format(sum.terms), ("%.1f ms"):format(sum.overlap),
      ("%d"):format(sum.epochs), ("%.1f s"):format(sum.gap), sum.unexplained and ("%.1f s"):format(sum.unexplained) or "not judged",
      ("%d of %d"):format(sum.runs - sum.wrong, sum.runs) }
  end
  running = running - 1
end
for _ = 1, math.min(side_by_side, #names) do
  running = running + 1
  crown.spawn(work)
end
while running > 0 do crown.sleep(0.1) end
print()
io.write(tables.text({ "store", "faults", "terms", "two at once", "epochs shared or back", "longest gap", "unexplained",
  "runs that were fine" }, rows))
print(("%d passed, %d failed"):format(good, wrong))
os.exit(wrong == 0 and 0 or 1)
