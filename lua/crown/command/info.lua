--- Elections known to the oracle, their leaders, epochs and time left.
-- @module crown.command.info

local console = require "crown.core.console"
local core = require "crown.core"
local json = require "crown.text.json"
local listing = require "crown.command.listing"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local tables = require "crown.command.tables"
local watch = require "crown.command.watch"

local info = {
  summary = "elections known to the oracle, their leaders, epochs, time left",
  usage = "crown-lua info [OPTIONS] [REGEX] [--sort COLUMN] [--json]",
  most_words = 1,
  options = {
    { name = "json", help = "for programs" },
    listing.option("name", "leader", "epoch", "expires"),
    { name = "watch", help = "show it again every second, in place" },
  },
  help = [[
REGEX is a POSIX extended regular expression that election names must match. Exit code 3 when
the oracle cannot be reached.

  crown-lua info --oracle postgres://db/app
  crown-lua info --oracle postgres://db/app '^cron-' --json]],
}

local LAYOUT = { spare = { "Candidates", "Epoch" }, long = { Election = 10, Leader = 10, Candidates = 20 } }
local SHORT, LONG = 1, 300 -- seconds of a TTL that is worth a warning

local function seconds(value)
  if value == nil then return "-" end
  return ("%.1f s"):format(value)
end

-- What the store says of itself, where it does; and what is to be said of the options.
local function health_of(module, opts)
  local facts, warnings = {}, {}
  if module.health then
    local found, problem, code = module.health(opts)
    if not found then return nil, problem, code end
    facts, warnings = found.facts, found.warnings
  end
  local ttl = module.timing and module.timing(opts) or tonumber(opts.ttl)
  if ttl and ttl < SHORT then
    warnings[#warnings + 1] = ("a TTL of %g s: a busy host loses leadership for nothing"):format(ttl)
  elseif ttl and ttl > LONG then
    warnings[#warnings + 1] = ("a TTL of %g s: for so long nobody leads when a leader's host dies"):format(ttl)
  end
  return { ttl = ttl, facts = facts, warnings = warnings }
end

local function for_people(word, opts, found, health)
  local text = { ("%-11s%s"):format("Oracle", core.redact(opts.url or word)) }
  if health.ttl then text[#text + 1] = ("%-11s%g s"):format("TTL", health.ttl) end
  for _, fact in ipairs(health.facts) do text[#text + 1] = ("%-11s%s"):format(fact[1], printable(tostring(fact[2]))) end
  text[#text + 1] = ("%-11s%d"):format("Elections", #found)
  for _, warning in ipairs(health.warnings) do text[#text + 1] = "Warning    " .. printable(warning) end
  local rows, with_candidates = {}, false
  for _, election in ipairs(found) do with_candidates = with_candidates or election.candidates ~= nil end
  local heading = { "Election", "Leader", "Epoch", "Expires in", with_candidates and "Candidates" or nil }
  for i, election in ipairs(found) do
    rows[i] = { election.name, election.node or "-", ("%d"):format(election.epoch or 0), seconds(election.expires_in) }
    if with_candidates then rows[i][5] = table.concat(election.candidates or {}, ", ") end
  end
  return table.concat(text, "\n") .. "\n\n"
    .. tables.text(heading, rows, (console.columns(1)), LAYOUT)
end

local function for_programs(word, found, health)
  local facts = {}
  for _, fact in ipairs(health.facts) do facts[fact[1]:lower():gsub(" ", "_")] = fact[2] end
  return json.line({ oracle = word, ttl = health.ttl, store = next(facts) and facts or nil,
    warnings = health.warnings, elections = found }, "warnings", "elections")
end

--- The verb.
function info.run(options, words)
  local list, opts, word, module = store.find("info", "list")
  local function make()
    local found, problem, code = list(opts)
    local health
    if found then health, problem, code = health_of(module, opts) end
    if not health then return nil, store.unreachable("info", problem, code) end
    found = listing.sort(listing.matching("info", found, words[1]), options.sort)
    return options.json and for_programs(word, found, health) or for_people(word, opts, found, health)
  end
  if options.watch then return watch(make) end
  local text, code = make()
  if not text then return code end
  output.write(text)
  return 0
end

return info
