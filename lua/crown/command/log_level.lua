--- Changes the log level of the runtimes on this host, while they run.
-- @internal crown.command.log_level

local cli = require "crown.command.cli"
local control = require "crown.control"
local output = require "crown.command.output"
local usage = require "crown.check.usage"
local words_for = require "crown.command.words"

local log_level = {
  summary = "change the log level of your runtimes on this host",
  usage = "crown-lua log-level debug|info|warn|error",
  most_words = 1,
  help = "Talks to the runtimes of this user on this host, as status does.",
}

local LEVELS = { "debug", "info", "warn", "error" }

--- The verb.
function log_level.run(_, words)
  if not words[1] then usage.error("log-level: name a level: %s", log_level.usage) end
  local level, changed = cli.convert({ values = LEVELS }, "log-level", words[1]), 0
  local runtimes = control.ask_all { ask = "log-level", level = level }
  for _, runtime in ipairs(runtimes) do
    if runtime.set then changed = changed + 1 end
  end
  local silent = words_for.silent(runtimes)
  if silent then output.say("log-level", silent) end
  if changed == 0 and silent then return 1 end
  if changed == 0 then
    output.write(words_for.no_runtime())
    return 1
  end
  local one = changed == 1
  output.line(("%d runtime%s now log%s from %s"):format(changed, one and "" or "s", one and "s" or "", level))
  return 0
end

return log_level
