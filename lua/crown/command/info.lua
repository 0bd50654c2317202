--- Elections known to the oracle, their leaders, epochs and time left.
-- @internal crown.command.info

local console = require "crown.core.console"
local core = require "crown.core"
local figure = require "crown.check.figure"
local jobs = require "crown.command.jobs"
local kept = require "crown.command.kept"
local json = require "crown.text.json"
local listing = require "crown.command.listing"
local names = require "crown.check.names"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local tables = require "crown.command.tables"
local usage = require "crown.check.usage"
local view = require "crown.cron.view"
local watch = require "crown.command.watch"
local words_for = require "crown.command.words"

local info = {
  summary = "elections known to the oracle, their leaders, epochs, time left",
  usage = "crown-lua info [OPTIONS] [REGEX] [--sort COLUMN] [--json]",
  most_words = 1,
  options = {
    { name = "json", help = "for programs" },
    listing.option("name", "leader", "epoch", "expires"),
    { name = "watch", help = "show it again every second, in place" },
    { name = "output", value = "NAME", help = "what this job has written in its last run, where its crontab says output=keep",
      default = "the elections" },
    { name = "jobs", help = "the jobs of cron and of run --once: when they ran, where, how that ended, when they are due" },
  },
  help = [[
REGEX is a POSIX extended regular expression that election names must match. Exit code 1 when
it matches none, 3 when the oracle cannot be reached.

--jobs shows the jobs of `crown-lua cron` and of `crown-lua run --once` of which the store has marks.
It shows the last run, how often it has failed since it succeeded, and when it is due. The last
column says that a job runs, is paused, or is overdue: due for more than a minute, and neither done
nor running.

--output shows the end of what a job has written, of at most 64 KiB, from any host. Exit code 1 when
the store has nothing of it.

  crown-lua info --oracle postgres://db/app
  crown-lua info --oracle postgres://db/app --jobs
  crown-lua info --oracle postgres://db/app --output nightly
  crown-lua info --oracle postgres://db/app '^cron-' --json]],
}

local LAYOUT = { spare = { "Written", "Revision", "TTL", "Candidates", "Epoch" },
  long = { Election = 10, Leader = 10, Orders = 20, Preferred = 20, Runs = 20, Candidates = 20 } }
local SHORT, LONG = 1, 60 -- seconds of a TTL that is worth a warning

local function seconds(value)
  if value == nil then return "-" end
  return ("%.1f s"):format(value)
end

-- What the store says of itself, where it does; and what is to be said of its TTL, or of the one that the URL asks for, unless
-- that counts for nothing here.
local function health_of(word, module, opts)
  local found, problem, code
  if module.health then
    found, problem, code = store.caller(word, module, "health")(opts)
    if not found then return nil, problem, code end
  end
  found = found or {}
  local asked = not found.fixed and (tonumber(opts.ttl) or tonumber(opts.duration))
  local ttl, warnings = asked or found.ttl, found.warnings or {}
  if ttl and ttl < SHORT then
    warnings[#warnings + 1] = ("a TTL of %s s: a busy host loses leadership for nothing"):format(figure.exact(ttl))
  elseif ttl and ttl > LONG then
    warnings[#warnings + 1] = ("a TTL of %s s: for so long nobody leads when a leader's host dies"):format(figure.exact(ttl))
  end
  return { ttl = found.ttl, facts = found.facts or {}, warnings = warnings }
end

-- Columns that only some stores can fill.
local MORE = {
  { "Cooling down", "acts_in", function(value) return value and "acts in " .. seconds(value) or "-" end },
  { "TTL", "ttl", seconds },
  { "Renewed", "renewed_ago", function(value, election)
    return value and seconds(value) .. " ago" .. (election.over and ": the lease is over" or "") or "-"
  end },
  { "Revision", "revision", function(value) return value and ("%d"):format(value) or "-" end },
  { "Written", "written", function(value) return value and value:gsub("%.%d+Z$", "Z") or "-" end },
  { "Trouble", "trouble", function(value) return value or "-" end },
  { "Orders", "ordered", function(value) return value or "-" end },
  { "Preferred", "preferred", function(value) return value or "-" end },
  { "Runs", "ran", function(value) return value or "-" end },
  { "Candidates", "candidates", function(value) return table.concat(value or {}, ", ") end },
}

local function table_of(elections)
  local heading, rows, more = { "Election", "Leader", "Epoch", "Expires in" }, {}, {}
  for _, column in ipairs(MORE) do
    local there = false
    for _, election in ipairs(elections) do there = there or election[column[2]] ~= nil end
    if there then heading[#heading + 1], more[#more + 1] = column[1], column end
  end
  for i, election in ipairs(elections) do
    rows[i] = { election.name, election.node or "-", words_for.epoch(election.epoch), seconds(election.expires_in) }
    for j, column in ipairs(more) do rows[i][4 + j] = column[3](election[column[2]], election) end
  end
  return heading, rows
end

--- Lays elections out for people.
-- @string place the oracle, without its secrets
-- @tparam table found the elections, as `list` has them
-- @tparam table health `ttl`, `facts`, `warnings`
-- @number[opt] columns of the terminal; nil: none
-- @treturn string
function info.text(place, found, health, columns)
  local text = { ("%-11s%s"):format("Oracle", place) }
  if health.ttl then text[#text + 1] = ("%-11s%s s"):format("TTL", figure.exact(health.ttl)) end
  for _, fact in ipairs(health.facts) do text[#text + 1] = ("%-11s%s"):format(fact[1], printable(tostring(fact[2]))) end
  text[#text + 1] = ("%-11s%d"):format("Elections", #found)
  for _, warning in ipairs(health.warnings) do text[#text + 1] = "Warning    " .. printable(warning) end
  local heading, rows = table_of(found)
  return table.concat(text, "\n") .. "\n\n" .. tables.text(heading, rows, columns, LAYOUT)
end

local function for_programs(word, found, health)
  local facts = {}
  for _, fact in ipairs(health.facts) do facts[fact[1]:lower():gsub(" ", "_")] = fact[2] end
  return json.line({ oracle = word, ttl = health.ttl, store = next(facts) and facts or nil,
    warnings = health.warnings, elections = found }, "warnings", "elections")
end

-- @return what is shown; or nil, message, code
local function shown(options, found, opts, word, module, none_matches)
  if options.jobs then
    return options.json and jobs.for_programs(word, found) or jobs.text(found, os.time(), console.columns(1), none_matches)
  end
  local health, problem, code = health_of(word, module, opts)
  if not health then return nil, problem, code end
  found = listing.sort(found, options.sort)
  if options.json then return for_programs(word, found, health) end
  return info.text(core.redact(opts.url or word), found, health, console.columns(1))
end

--- The verb.
function info.run(options, words)
  if options.output then return kept.show(options, words) end
  if options.jobs and options.sort then usage.error "info: --jobs are shown by name: leave --sort out" end
  if options.jobs then store.expect_marks "info --jobs" end
  local list, opts, word, module = store.find("info", "list")
  local nothing = false
  local one = words[1] and not names.problem(words[1]) and words[1] or nil -- else it is a pattern
  local function make()
    local found, problem, code = list(opts, one)
    if not found then return nil, store.unreachable("info", problem, code) end
    if options.jobs then found = view.all(found, os.time()) end
    local count = #found
    found = listing.matching("info", found, words[1])
    nothing = words[1] ~= nil and #found == 0
    if nothing and not options.watch then listing.say_none("info", words[1], count) end
    local text
    text, problem, code = shown(options, found, opts, word, module, nothing and count > 0)
    if not text then return nil, store.unreachable("info", problem, code) end
    return text
  end
  if options.watch then return watch(make) end
  local text, code = make()
  if not text then return code end
  output.write(text)
  return nothing and 1 or 0
end

return info
