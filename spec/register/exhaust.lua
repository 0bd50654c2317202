--- luajit -joff spec/register/exhaust.lua [SECONDS [MUTANT]]: a small world around the register's rule: two runtimes, one election,
-- a course of 16 seconds without chance. Every place gets its fault: each request is lost, carried out without an answer, twice, or
-- long after it was given up; and at each second a runtime is killed or stopped, a record is deleted, or the store restarts. Then
-- every two faults that are close together. A breach is printed with its faults.
package.path = "spec/?.lua;lua/?.lua;rockspec/plain/?.lua;" .. package.path
local load = require "support.register_modules"
local World = require "support.register_world"

local SECONDS = 16
local CLOSE = 3 -- seconds between two faults
local REQUESTS = { "lost", "unanswered", "again", "late" }
local TICKS = { "kill 1", "kill 2", "host 1", "stop 1", "stop 2", "delete", "delete_session 1", "restart" }

-- The mutant of spec/mutants that is named.
local function mutant(id)
  for _, one in ipairs(dofile("tools/mutants/list.lua").load()) do
    if one.id == id then return one end
  end
end

local modules = load(arg[2] and assert(mutant(arg[2])))

-- @return what is wrong, or nil; and the places for faults, each with its instant
local function run(faults)
  local world = World.small { modules = modules, seconds = SECONDS, script = faults, ticks = TICKS }
  local fine, problem = pcall(function() world:run() end)
  return not fine and tostring(problem) or nil, world.places
end

local function told(faults, problem)
  local words = {}
  for place, fault in pairs(faults) do words[#words + 1] = ("%s: %s"):format(place, fault) end
  table.sort(words)
  print(("%s\n  with %s"):format(problem, table.concat(words, "; ")))
end

local function choices(place)
  return place.is_request and REQUESTS or place.ticks
end

local runs, bad = 0, 0

local function try(faults)
  runs = runs + 1
  if runs % 500 == 0 then collectgarbage() end
  local problem, places = run(faults)
  if problem then
    bad = bad + 1
    if bad <= 3 then told(faults, problem) end
  end
  return places
end

local function close_pairs(first, name, fault, ends)
  for _, second in ipairs(first.after) do
    for _, other in ipairs(choices(second)) do
      if os.clock() > ends then return false end
      try { [name] = fault, [second.name] = other }
    end
  end
  return true
end

-- The places after one fault, in the course that this makes.
local function after(places, place)
  local found = {}
  for _, other in ipairs(places) do
    if other.order > place.order and other.at - place.at <= CLOSE then found[#found + 1] = other end
  end
  return { after = found }
end

local function search(seconds)
  local ends = os.clock() + seconds
  local plain = try {}
  local singles, done = {}, 0
  for _, place in ipairs(plain) do
    for _, fault in ipairs(choices(place)) do
      singles[#singles + 1] = { place = place, fault = fault, places = try { [place.name] = fault } }
    end
  end
  print(("one fault: %d places, %d courses, all"):format(#plain, runs))
  -- Spread over the whole course, so that a search which runs out of time has left out no part of it.
  local stride = 7
  for offset = 1, stride do
    for i = offset, #singles, stride do
      local one = singles[i]
      if not close_pairs(after(one.places, one.place), one.place.name, one.fault, ends) then
        return print(("two faults, at most %d s apart: after %d of %d first ones, %d courses"):format(CLOSE, done, #singles, runs))
      end
      done = done + 1
    end
  end
  print(("two faults, at most %d s apart: %d courses, all"):format(CLOSE, runs))
end

search(tonumber(arg[1] or 60))
os.exit(bad == 0 and 0 or 1)
