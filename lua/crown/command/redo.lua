--- Lets a command run again that has run in its period.
-- @internal crown.command.redo

local ordering = require "crown.command.ordering"
local output = require "crown.command.output"
local store = require "crown.command.store"

local redo = {
  summary = "let a command run again that has run, or is held",
  usage = "crown-lua redo [OPTIONS] NAME",
  most_words = 1,
  options = {},
  help = [[
Takes back the marks that `crown-lua run --once` and `crown-lua cron` leave in the store: that NAME
has run (--done-for), that it is held (--at-least), and what has failed. Nothing is started: the
next candidate that comes begins it. Exit code 1 where there is no such mark.]],
}

--- The verb.
function redo.run(_, words)
  local name = ordering.word(redo, words)
  store.expect_marks "redo"
  local forget, opts, word, module = store.find("redo", "runs")
  name = store.election(opts, name)
  opts.forget = true
  local marks, problem, code = forget(opts, name)
  if marks == nil then return store.unreachable("redo", problem, code) end
  if not marks or next(marks) == nil then
    local more = store.yet(opts, word, module, name)
    output.say("redo", ("no run of '%s' is marked in %s%s"):format(name, store.named(opts, word), more))
    return 1
  end
  output.line(("'%s' may run again"):format(name))
  return 0
end

return redo
