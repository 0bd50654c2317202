--- Loads an app, validates every option, campaigns for nothing, and shows each election's timing.
-- @module crown.command.check

local app = require "crown.command.app"
local core = require "crown.core"
local files = require "crown.core.files"
local json = require "crown.text.json"
local oracle = require "crown.election.contract"
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

-- Whether the system would find a child's program: by its path, or in one of PATH's directories.
local function is_program(spec)
  local program = spec.argv[1]
  if program:sub(1, 1) == "/" then return files.executable(program) end
  if program:find("/", 1, true) then return files.executable((spec.cwd or ".") .. "/" .. program) end
  for directory in ((spec.env and spec.env.PATH or os.getenv "PATH" or "/usr/bin:/bin") .. ":"):gmatch "(.-):" do
    if files.executable((directory == "" and "." or directory) .. "/" .. program) then return true end
  end
  return false
end

local function check_programs(election)
  for _, which in ipairs { "child", "follower_child" } do
    local spec = election.options[which]
    if spec and not is_program(spec) then
      usage.error("elect '%s': %s: there is no program '%s' here that could be executed", election.name, which, spec.argv[1])
    end
  end
end

local function warnings_of(election)
  local warnings = election.module.warnings
  return warnings and election.state ~= oracle.IGNORE and warnings(election.state) or {}
end

local function describe(election)
  local spec = election.options
  local child = spec.child and table.concat(spec.child.argv, " ") or "none"
  local text = ("election       %s\noracle         %s\nchild          %s\n%s"):format(election.name, spec.oracle,
    core.redact(child), election.timing)
  for _, warning in ipairs(warnings_of(election)) do text = text .. "\nwarning        " .. warning end
  return text
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
  if #settings.declared == 0 then
    usage.error("check: %s declares no election before it waits or ends: see crown.elect", words[1])
  end
  for _, election in ipairs(settings.declared) do check_programs(election) end
  if options.json then
    local list = {}
    for _, election in ipairs(settings.declared) do
      list[#list + 1] = { name = election.name, oracle = election.options.oracle, timing = election.timing,
        warnings = warnings_of(election) }
    end
    print(json.encode(list, "warnings"))
    return 0
  end
  for _, election in ipairs(settings.declared) do io.write(indent(describe(election)), "\n") end
  print(("%s: %d election%s, nothing wrong"):format(words[1], #settings.declared,
    #settings.declared == 1 and "" or "s"))
  return 0
end

return check
