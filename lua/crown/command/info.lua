--- Elections known to the oracle, their leaders, epochs and time left.
-- @module crown.command.info

local core = require "crown.core"
local store = require "crown.command.store"
local tables = require "crown.command.tables"

local info = {
  summary = "elections known to the oracle, their leaders, epochs, time left",
  usage = "crown-lua info [OPTIONS] [PATTERN] [--json]",
  options = { { name = "json", help = "for programs" } },
  help = [[
PATTERN is a Lua pattern that election names must match. Exit code 3 when the oracle cannot
be reached.]],
}

local function seconds(value)
  if value == nil then return "-" end
  return ("%.1f s"):format(value)
end

local function matching(found, pattern)
  local kept = {}
  for _, election in ipairs(found) do
    if not pattern or election.name:find(pattern) then kept[#kept + 1] = election end
  end
  return kept
end

--- The verb.
function info.run(options, words)
  local list, opts, word = store.find("info", "list")
  local found, problem = list(opts)
  if not found then return store.unreachable("info", problem) end
  found = matching(found, words[1])
  if options.json then
    print(core.json.encode { oracle = word, elections = #found > 0 and found or core.json.empty_array })
    return 0
  end
  print(("Oracle     %s"):format(core.redact(opts.url or word)))
  if opts.ttl then print(("TTL        %g s"):format(opts.ttl)) end
  print(("Elections  %d\n"):format(#found))
  local rows = {}
  for _, election in ipairs(found) do
    rows[#rows + 1] = { election.name, election.node or "-", ("%d"):format(election.epoch or 0),
      seconds(election.expires_in) }
  end
  tables.print({ "Election", "Leader", "Epoch", "Expires in" }, rows)
  return 0
end

return info
