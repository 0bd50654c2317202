--- Slips that nobody thought of: makes them of the tokens of C and Lua, and sees whether a test notices. docs/own-tests.md.
-- luajit tools/slips.lua run | list | check | executed  [seed=WORD] [n=N] [folder=PREFIX] [changed=1] [base=COMMIT]
-- [narrow=1] [seconds=N] [jobs=N] [units=UNIT,…]
package.path = "tools/?.lua;" .. package.path
local changed = require "slips.changed"
local executed = require "slips.executed"
local marks = require "slips.marks"
local options_of = require "options"
local report = require "slips.report"
local run = require "slips.run"
local sample = require "slips.sample"
local slip = require "slips.slip"
local sources = require "slips.sources"
local tests = require "slips.tests"
local tree = require "mutants.tree"

local function words_of(command)
  local pipe = io.popen(command)
  local text = pipe:read "*l"
  pipe:close()
  return text
end

-- Those of changed lines come first, then the sample.
local function order_of(slips, options)
  local order, taken = {}, {}
  local function take(list)
    for _, one in ipairs(list) do
      if not taken[one] then order[#order + 1] = one end
      taken[one] = true
    end
  end
  if options.changed then take(sample.of_changed(slips, options.seed, changed(options.base or "origin/HEAD"))) end
  local of_changed = #order
  if options.n ~= "0" then take(sample.in_order(slips, options.seed)) end
  return order, of_changed
end

local function start_workers(options)
  local words = { "luajit tools/slips.lua work" }
  for _, key in ipairs { "seed", "n", "folder", "changed", "base", "directory", "untils", "narrow" } do
    words[#words + 1] = options[key] and ("%s='%s'"):format(key, options[key])
  end
  local command = table.concat(words, " ") .. " & "
  os.execute(command:rep(tonumber(options.jobs or 2)) .. "wait")
end

local commands = {}

function commands.list(slips, options)
  local texts = {}
  for i, one in ipairs(order_of(slips, options)) do
    if options.n and i > tonumber(options.n) then break end
    texts[one.file] = texts[one.file] or sources.read(one.file)
    local before, after = slip.lines(one, texts[one.file])
    print(("%s:%d %s: %s → %s"):format(one.file, one.line, one.operator, before, after))
  end
  return true
end

function commands.work(slips, options)
  local order, of_changed = order_of(slips, options)
  run.work(order, { directory = options.directory, n = tonumber(options.n) + of_changed, until_s = tonumber(options.untils),
    narrow = options.narrow })
  return true
end

function commands.run(slips, options)
  options.n = options.n or "100"
  options.directory = ("%s/run-%s"):format(tests.HOME, tostring(tree.now()):gsub("%.", ""))
  options.untils = tostring(tree.now() + tonumber(options.seconds or 86400))
  assert(os.execute("mkdir -p " .. options.directory) == 0)
  local order, of_changed = order_of(slips, options)
  print(("%d slips, %d of changed lines; SEED=%s N=%s"):format(#order, of_changed, options.seed, options.n))
  io.flush()
  start_workers(options)
  return report.print(order, options.directory)
end

function commands.check() return marks.check() end

function commands.executed(_, options)
  local units = {}
  for unit in options.units:gmatch "[^, ]+" do units[#units + 1] = unit end
  return executed.make(units)
end

local WITHOUT_SLIPS = { check = true, executed = true }

local options = options_of(arg)
options.seed = options.seed or words_of "git rev-parse HEAD"
local command = assert(commands[arg[1]], "run, list, check or executed?")
os.exit(command(not WITHOUT_SLIPS[arg[1]] and sources.slips(options.folder) or nil, options) and 0 or 1)
