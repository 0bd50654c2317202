--- luajit -joff spec/register/simulate.lua CLUSTERS [KIND [SEED]]: virtual clusters of the register's rule, of each kind.
-- luajit -joff spec/register/simulate.lua broken [WORD]: breaks the rule, by each mutant of spec/mutants that the simulation has
-- to find (`by register:KIND:CLUSTERS`).
-- Without the compiler: that of LuaJIT 2.1 as distributions have it makes mistakes in this.
package.path = "spec/?.lua;lua/?.lua;rockspec/plain/?.lua;" .. package.path
local list = dofile "tools/mutants/list.lua"
local load = require "support.register_modules"
local World = require "support.register_world"

local BY = "^register:(%l+):(%d+)$"

-- @return what is wrong, or nil and the terms
local function run(modules, kind, seed, trace)
  collectgarbage() -- what a runtime has forgotten must not depend on when it is collected
  collectgarbage "stop"
  local fine, result = pcall(function() return World.new { seed = seed, kind = kind, modules = modules, trace = trace }:run() end)
  if fine then return nil, result.terms end
  return tostring(result)
end

local function clusters(count, only, first)
  local modules, trace, bad = load(), first and print, false
  for kind in pairs(World.KINDS) do
    if not only or only == kind then
      local all = 0
      for seed = first or 1, first or count do
        local problem, terms = run(modules, kind, seed, trace)
        if problem then
          print(("%s, seed %d: %s"):format(kind, seed, problem))
          bad = true
          break
        end
        all = all + terms
      end
      print(("%-10s %d clusters, %d terms"):format(kind, first and 1 or count, all))
    end
  end
  return not bad
end

local function found(mutant, kind, most)
  local modules = load(mutant)
  for seed = 1, most do
    local problem = run(modules, kind, seed)
    if problem then return ("%s, seed %d: %s"):format(kind, seed, problem:sub(1, 70)) end
  end
end

local function broken(word)
  local all, count = true, 0
  for _, mutant in ipairs(list.load()) do
    local kind, most = (mutant.by or ""):match(BY)
    if kind and (not word or mutant.id:find(word, 1, true)) then
      local how = found(mutant, kind, tonumber(most))
      print(("%-44s %s"):format(mutant.id, how or "NOT FOUND in the world " .. kind))
      all, count = all and how ~= nil, count + 1
    end
  end
  print(("%d mutants"):format(count))
  return all and count > 0
end

io.stdout:setvbuf "line"
local fine
if arg[1] == "broken" then fine = broken(arg[2]) else fine = clusters(tonumber(arg[1]), arg[2], tonumber(arg[3])) end
os.exit(fine and 0 or 1)
