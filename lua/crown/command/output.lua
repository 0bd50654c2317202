--- What a verb prints: gathered, and written in one place that notices a full disk.
-- @internal crown.command.output

local console = require "crown.core.console"
local printable = require "crown.text.printable"
local usage = require "crown.check.usage"

local output = {}

local gathered = {}

--- Prints text as it is.
-- @string text
function output.write(text)
  gathered[#gathered + 1] = text
end

--- Prints a line.
-- @string text without its end
function output.line(text)
  output.write(text .. "\n")
end

--- Says on standard error what a verb has to say to its user.
-- @string verb
-- @param text anything, of which the first line is said: a password in it is blotted out, a control character shown
function output.say(verb, text)
  console.say(("crown-lua: %s: %s"):format(verb, printable(usage.one_line(text))))
end

--- Writes what was printed. A full disk fails whoever prints to it; a reader that has seen enough does not.
-- @number code the exit code when all is well
-- @treturn number the exit code: 1 where standard output could not be written, which is said on standard error
-- @treturn boolean whether nobody takes more
function output.finish(code)
  local text = table.concat(gathered)
  gathered = {}
  local printed, problem = console.print(text)
  if printed ~= nil then return code, not printed end
  console.say(("crown-lua: %s"):format(problem))
  return 1, true
end

return output
