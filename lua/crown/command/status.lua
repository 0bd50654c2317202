--- The elections of the runtimes on this host.
-- @internal crown.command.status

local barred = require "crown.text.barred"
local console = require "crown.core.console"
local control = require "crown.control"
local core = require "crown.core"
local json = require "crown.text.json"
local known_leader = require "crown.text.known_leader"
local listing = require "crown.command.listing"
local output = require "crown.command.output"
local own_rules = require "crown.text.own_rules"
local stores = require "crown.command.stores"
local tables = require "crown.command.tables"
local usage = require "crown.check.usage"
local watch = require "crown.command.watch"
local words_for = require "crown.command.words"

local status = {
  summary = "the elections of your runtimes on this host",
  usage = "crown-lua status [REGEX] [--sort COLUMN] [--json] [--watch]\n  crown-lua status --stores [--json] [--watch]",
  most_words = 1,
  options = {
    { name = "stores", help = "their connections to stores instead" },
    { name = "json", help = "for programs" },
    listing.option("name", "phase", "leader", "epoch", "expires", "since"),
    { name = "watch", help = "show it again every second, in place" },
  },
  help = [[
Asks each runtime of this user by its socket in $CROWN_DIRECTORY. Without that variable it is
/var/lib/crown-lua for root, else ~/.local/state/crown-lua. Root sees the runtimes of units too.
Exit code 1 when no runtime answers, and when REGEX, a POSIX extended regular expression, matches no
election's name.

Where candidates here have several nodes' names, a column says which is whose. Where one has rules
of its own of who leads and when (--prefer, --healthy, --window and others), another column says
which. Where one may not lead just now, a third one says why, and for how long.

With --stores, a line for each connection to a store:

  State        resolving, dialling, connecting, handshaking, logging in, open, proven or broken
  Last answer  how long ago the server answered
  Reconnects   how often the connection was lost
  Connections  how many the server may see of this client, and at most

"redis channels" and "etcd watch" are a client's second connection, by which it hears of changes.]],
}

local HEADING = { "Election", "Phase", "Leader", "Epoch", "Expires in", "Since", "Child", "Oracle", "Runtime" }
-- `crown-lua cron` has one for each job that is due.
local NO_ELECTION = "your runtimes here take part in no election now; crown-lua info asks the store\n"
local NODE_AT = 2 -- the column that tells candidates of one host apart
local LAYOUT = { spare = { "Runtime", "Oracle", "Since", "Child", "Epoch" },
  long = { Election = 10, Node = 10, Leader = 11, Child = 10, Oracle = 14, Rules = 20 } }

local function seconds(value)
  return value and ("%.1f s"):format(value) or "-"
end

local function child_of(one)
  if one.child then
    return ("%d%s"):format(one.child, one.child_unfenced and " unfenced" or one.child_lives_on and " lives on" or "")
  end
  if one.child_signal then return ("ended by signal %d"):format(one.child_signal) end
  return one.child_code and ("ended with %d"):format(one.child_code) or "-"
end

-- The oracle, and why its store is not to be relied on.
local function store_of(one)
  local doubted = one.amnesia and one.next_claim_in and not one.away
  if doubted then return ("%s: amnesia, claims in %s"):format(one.oracle, words_for.span(one.next_claim_in)) end
  if not one.away then return one.oracle end
  if one.answers then
    return ("%s: answers, but for %s: %s"):format(one.oracle, words_for.span(one.away), core.redact(one.failure))
  end
  return ("%s: %s %s"):format(one.oracle, one.answered and "away for" or "never reached, tried for", words_for.span(one.away))
end

local function row_of(one)
  local leader = known_leader(one, words_for.span) or one.away and (one.answers and "?" or "? no answer") or "-"
  return { one.name, words_for.phase(one), leader, words_for.epoch(one.epoch), seconds(one.expires_in),
    one.since and words_for.span(one.since) or "-", child_of(one), store_of(one), ("%d"):format(one.runtime) }
end

-- The elections of all runtimes, each with its runtime's pid; and the runtimes that gave no answer.
local function gather(runtimes)
  local elections, silent = {}, {}
  for _, runtime in ipairs(runtimes) do
    if runtime.error then silent[#silent + 1] = runtime end
    for _, one in ipairs(runtime.elections or {}) do
      one.runtime = runtime.pid
      elections[#elections + 1] = one
    end
  end
  return elections, silent
end

-- A line that says at a glance whether anything is wrong.
local function summary(elections)
  local led, away, refused, unfenced = 0, 0, 0, 0
  for _, one in ipairs(elections) do
    if one.phase == "leading" then led = led + 1 end
    if one.answers then refused = refused + 1 elseif one.away then away = away + 1 end
    if one.child_unfenced then unfenced = unfenced + 1 end
  end
  local text = ("%d election%s, %d led here"):format(#elections, #elections == 1 and "" or "s", led)
  if away > 0 then text = text .. ("; %d whose store gives no answer"):format(away) end
  if refused > 0 then text = text .. ("; %d whose store answers with a failure"):format(refused) end
  if unfenced > 0 then text = text .. ("; %d with a command that works on without leading"):format(unfenced) end
  return text .. "\n"
end

-- A column that most hosts need not.
local function add_column(heading, rows, at, name, value_of)
  table.insert(heading, at, name)
  for i, row in ipairs(rows) do table.insert(row, at, value_of(i) or "-") end
end

local function some_have(elections, field)
  for _, one in ipairs(elections) do
    if one[field] then return true end
  end
  return false
end

-- Whether candidates under several names run here.
local function has_nodes(elections)
  for _, one in ipairs(elections) do
    if one.node ~= elections[1].node then return true end
  end
  return false
end

--- Lays elections out for people.
-- @tparam table runtimes what they answered
-- @string[opt] pattern a POSIX regular expression for names
-- @string[opt] column to sort by
-- @number[opt] columns of the terminal; nil: none
-- @treturn string
function status.text(runtimes, pattern, column, columns)
  local elections, silent = gather(runtimes)
  if not elections[1] and not silent[1] then return NO_ELECTION end
  elections = listing.sort(listing.matching("status", elections, pattern), column)
  local rows, heading = {}, { unpack(HEADING) }
  for i, one in ipairs(elections) do rows[i] = row_of(one) end
  for _, one in ipairs(silent) do
    local why = words_for.is_denied(one) and "not allowed to ask" or "no answer"
    rows[#rows + 1] = { "-", why, "-", "-", "-", "-", "-", "-", ("%d"):format(one.pid) }
  end
  if some_have(elections, "rules") then
    add_column(heading, rows, #heading + 1, "Rules", function(i) return elections[i] and own_rules.words(elections[i]) end)
  end
  if some_have(elections, "barred") then
    add_column(heading, rows, #heading + 1, "May not lead", function(i)
      return elections[i] and barred(elections[i], words_for.span)
    end)
  end
  if has_nodes(elections) then
    add_column(heading, rows, NODE_AT, "Node", function(i) return elections[i] and elections[i].node end)
  end
  return (columns and summary(elections) or "") .. tables.text(heading, rows, columns, LAYOUT)
end

local function for_programs(runtimes, list, pattern, column)
  for _, runtime in ipairs(runtimes) do
    if runtime.elections then
      runtime.elections = listing.sort(listing.matching("status", runtime.elections, pattern), column)
    end
  end
  return json.line({ runtimes = runtimes }, "runtimes", list)
end

-- @return how many elections there are, and how many are shown
local function counts_of(runtimes, pattern)
  local all, shown = 0, 0
  for _, runtime in ipairs(runtimes) do
    local elections = runtime.elections or {}
    all, shown = all + #elections, shown + #listing.matching("status", elections, pattern)
  end
  return all, shown
end

--- The verb.
function status.run(options, words)
  if options.stores and (words[1] or options.sort) then
    usage.error "status: a REGEX and --sort have no effect here: --stores shows connections, not elections"
  end
  local count, all, shown = 0, 0, 0
  local list = options.stores and "stores" or "elections"
  local function make()
    local runtimes = control.ask_all { ask = options.stores and "stores" or "status" }
    count = #runtimes
    all, shown = counts_of(runtimes, words[1])
    if options.json then return for_programs(runtimes, list, words[1], options.sort) end
    if count == 0 then return words_for.no_runtime() end
    local columns = console.columns(1)
    return options.stores and stores.text(runtimes, columns) or status.text(runtimes, words[1], options.sort, columns)
  end
  if options.watch then return watch(make) end
  output.write((make()))
  if count > 0 and words[1] and shown == 0 then
    listing.say_none("status", words[1], all)
    return 1
  end
  return count > 0 and 0 or 1
end

return status
