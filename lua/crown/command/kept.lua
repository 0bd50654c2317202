--- Shows the end of the output of a job, as the store keeps it, for `crown-lua info` with its option output.
-- @internal crown.command.kept

local console = require "crown.core.console"
local json = require "crown.text.json"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local usage = require "crown.check.usage"

local kept = {}

-- A terminal would obey what is in there.
local function shown(bytes)
  if not console.columns(1) then return bytes end
  local lines = {}
  for line in bytes:gmatch "([^\n]*)\n?" do lines[#lines + 1] = printable(line) end
  if lines[#lines] == "" then lines[#lines] = nil end
  return table.concat(lines, "\n") .. "\n"
end

local ROUNDED = 1 -- seconds between what two looks at the wall clock say of one moment

-- A run that was not begun as a job of cron, or could not be started, leaves nothing.
local function say_whose(name, found, marks)
  local last = 0
  for _, mark in ipairs { "done", "failed" } do last = math.max(last, type(marks[mark]) == "table" and marks[mark].at or 0) end
  if last <= found.began + ROUNDED then return end
  output.say("info", ("the last run of '%s' has left nothing here; this is of the run of %s on %s"):format(name,
    os.date("%Y-%m-%d %H:%M:%S %z", found.began), printable(found.node)))
end

--- Shows what is kept of one job.
-- @tparam table options of the command line
-- @tparam table words of the command line
-- @treturn number the exit code
function kept.show(options, words)
  for _, other in ipairs { "jobs", "sort", "watch" } do
    if options[other] then usage.error("info: --output shows one job: leave --%s out", other) end
  end
  if words[1] then usage.error("info: --output shows one job: leave '%s' out", words[1]) end
  store.expect_marks "info --output"
  local read, opts, word, module = store.find("info", "output")
  local name = store.election(opts, options.output)
  local found, problem, code = read(opts, name)
  if found == nil then return store.unreachable("info", problem, code) end
  if not found then
    output.say("info", ("nothing is kept of what '%s' has written in %s; 'output=keep' in its crontab keeps it"):format(name,
      store.named(opts, word)))
    return 1
  end
  if options.json then
    output.write(json.line { name = name, node = found.node, at = found.began, slot = found.slot, written = found.written,
      output = found.bytes })
    return 0
  end
  say_whose(name, found, store.caller(word, module, "runs")(opts, name) or {})
  if found.written > #found.bytes then
    output.say("info", ("these are the last %d of %d bytes"):format(#found.bytes, found.written))
  end
  output.write(shown(found.bytes))
  return 0
end

return kept
