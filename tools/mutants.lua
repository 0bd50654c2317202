--- Breaks the code on purpose, one slip at a time, and sees whether a test notices: docs/own-tests.md, "Mutants".
-- luajit tools/mutants.lua check | repath | note | run | report   [folder=PREFIX] [only=WORD] [sample=1] [todo=1|new] [narrow=1]
-- [seconds=N] [jobs=N]
package.path = "tools/?.lua;" .. package.path
local check = require "mutants.check"
local choose = require "mutants.choose"
local judge = require "mutants.judge"
local list = require "mutants.list"
local note = require "mutants.note"
local options_of = require "options"
local run = require "mutants.run"

local function report(records)
  return judge(records, choose.results(records))
end

local records, wanted = list.load(), options_of(arg)
local commands = {
  check = check.run,
  note = note,
  repath = check.repath,
  report = report,
  run = function()
    local done, results = run(records, wanted)
    return wanted.share and true or judge(done, results)
  end,
}
os.exit(assert(commands[arg[1]], "check, repath, note, run or report?")(records) and 0 or 1)
