--- Loads an app, validates every option, campaigns for nothing, and shows each election's timing.
-- @module crown.command.check

local app = require "crown.command.app"
local core = require "crown.core"
local json = require "crown.text.json"
local settings = require "crown.election.settings"
local usage = require "crown.check.usage"

local check = {
  summary = "load an app and validate it; campaign for nothing",
  usage = "crown-lua check [OPTIONS] APP.lua [ARG...]",
  options = { { name = "json", help = "for programs" } },
  help = [[
Prints for each election its timing (TTL, refresh, stop_timeout, margin, deadline), the
worst case of a failover, and why no two leaders can overlap. Timing that could overlap is
refused with the sum shown. Exit code 2 when anything is wrong.]],
}

local function indent(text)
  return (text:gsub("([^\n]+)", "  %1"))
end

local function describe(election)
  local spec = election.options
  local child = spec.child and table.concat(spec.child.argv, " ") or "none"
  return ("election       %s\noracle         %s\nchild          %s\n%s"):format(election.name, spec.oracle,
    core.redact(child), election.timing)
end

--- The verb.
function check.run(options, words, argv)
  if not words[1] then usage.error("check: name an app: %s", check.usage) end
  local at
  for i = 1, #argv do
    if argv[i] == words[1] then at = i end
  end
  settings.checking = true
  app.run(at)
  if options.json then
    local list = {}
    for _, election in ipairs(settings.declared) do
      list[#list + 1] = { name = election.name, oracle = election.options.oracle, timing = election.timing }
    end
    print(json.encode(list))
    return 0
  end
  for _, election in ipairs(settings.declared) do io.write(indent(describe(election)), "\n") end
  print(("%s: %d election%s, nothing wrong"):format(words[1], #settings.declared,
    #settings.declared == 1 and "" or "s"))
  return 0
end

return check
