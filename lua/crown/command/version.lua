--- Which version the program is, and what it is made of.
-- @internal crown.command.version

local build = require "crown.core.build"
local core = require "crown.core"
local kernel = require "crown.election.kernel"
local output = require "crown.command.output"

local version = {}

local function line(name, text)
  output.line(("  %-14s %s"):format(name, text))
end

--- Prints it.
-- @tparam boolean verbose also the compiler, the machine, and each library with its version
-- @treturn number the exit code
function version.run(verbose)
  output.line("crown-lua " .. core.version)
  if not verbose then return 0 end
  line("built by", ("%s, for %s"):format(build.compiler, jit.arch))
  line("LuaJIT", (jit.version:gsub("^LuaJIT ", "")))
  line("lua-cjson", core.json._VERSION)
  for _, library in ipairs(build.libraries()) do
    line(library[1], library[2] or ("not to be had: %s"):format(library[3]))
  end
  local given = build.kernel()
  for _, feature in ipairs(kernel.FEATURES) do line(feature[2], given[feature[1]] and "yes" or "no: " .. feature[3]) end
  line("PID namespaces", build.pid_namespaces() and "yes" or "no: isolation 'pidns' is refused")
  return 0
end

return version
