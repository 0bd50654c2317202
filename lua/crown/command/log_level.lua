--- Changes the log level of the runtimes on this host, while they run.
-- @internal crown.command.log_level

local control = require "crown.control"
local output = require "crown.command.output"
local usage = require "crown.check.usage"

local log_level = {
  summary = "change the log level of your runtimes on this host",
  usage = "crown-lua log-level debug|info|warn|error",
  most_words = 1,
  help = "Talks to the runtimes of this user on this host, as status does.",
}

--- The verb.
function log_level.run(_, words)
  if not words[1] then usage.error("log-level: name a level: %s", log_level.usage) end
  local changed = 0
  for _, runtime in ipairs(control.ask_all { ask = "log-level", level = words[1] }) do
    if runtime.set then
      changed = changed + 1
    elseif runtime.set == false then
      usage.error("log-level: '%s' is not one of debug, info, warn, error", words[1])
    end
  end
  output.line(("%d runtime%s now log from %s"):format(changed, changed == 1 and "" or "s", words[1]))
  return changed > 0 and 0 or 1
end

return log_level
