--- Takes a pause back.
-- @internal crown.command.resume

local ordering = require "crown.command.ordering"
local output = require "crown.command.output"

local resume = {
  summary = "let candidates lead an election again that was paused",
  usage = "crown-lua resume [OPTIONS] NAME",
  most_words = 1,
  options = {},
  help = [[
Takes back what `crown-lua pause` has ordered, or a hand-over that nobody has come for. Exit code 1
where NAME is not paused.]],
}

--- The verb.
function resume.run(_, words)
  local name = ordering.name(resume, words)
  local before, code = ordering.write(resume, name, false)
  if not before then return code end
  output.line(("'%s' may be led again"):format(name))
  return 0
end

return resume
