--- Who led an election, for how long, and why it ended: as this host has seen it.
-- @internal crown.command.history

local console = require "crown.core.console"
local control = require "crown.control"
local past = require "crown.election.history"
local json = require "crown.text.json"
local output = require "crown.command.output"
local store = require "crown.command.store"
local tables = require "crown.command.tables"
local words_for = require "crown.command.words"

local history = {
  summary = "who led an election, for how long, and why it ended",
  usage = "crown-lua history [NAME] [--last COUNT] [--json]",
  most_words = 1,
  options = {
    { name = "last", value = "COUNT", number = { integer = true, least = 1, most = 1e6 },
      help = "so many terms", default = "20" },
    { name = "json", help = "for programs" },
  },
  help = [[
Shows the terms of NAME, or of every election, that the runtimes of this user on this host have
led or seen others lead; the newest is the last. How a term of another host ended is not known
here. Stores keep only the present term: who leads now is asked of the store (--oracle), where
it can say so, and of the runtimes here. The runtimes write the terms to the file `history` in
$CROWN_DIRECTORY, at most two megabytes. Exit code 1 when there is none.]],
}

local LAST = 20
local LAYOUT = { spare = { "Epoch", "Lasted" }, long = { Election = 10, Leader = 10 } }
local WIDE = 80 -- columns of a terminal that has room for seconds and the year

local function begin(terms, open, entry)
  local before, leader = open[entry.name], entry.leader
  if before and before.leader == leader and (before.epoch == entry.epoch or entry.epoch == 0) then return end
  if before and not before.ended then before.ended = entry.time end
  local term = { name = entry.name, leader = leader, epoch = entry.epoch, began = entry.time }
  open[entry.name] = term
  terms[#terms + 1] = term
end

local function finish(open, entry)
  local term = open[entry.name]
  if not term or term.leader ~= entry.node or term.epoch ~= entry.epoch then return end
  term.ended, term.reason = entry.time, entry.reason
end

-- Several runtimes of a host tell of the same term: it counts once, from when it was first seen.
local function terms_of(entries, name)
  local terms, open = {}, {}
  for _, entry in ipairs(entries) do
    if name == nil or entry.name == name then
      if entry.event == "leadership.lost" then
        finish(open, entry)
      else
        begin(terms, open, entry)
      end
    end
  end
  return terms
end

local function read()
  local entries = {}
  for _, place in ipairs(control.places()) do
    local found, problem = past.read(place)
    if problem then output.say("history", problem) end
    for _, entry in ipairs(found) do entries[#entries + 1] = entry end
  end
  for i, entry in ipairs(entries) do entry.order = i end
  table.sort(entries, function(a, b)
    if a.time ~= b.time then return a.time < b.time end
    return a.order < b.order
  end)
  return entries
end

local function last(terms, count)
  local kept = {}
  for i = math.max(1, #terms - count + 1), #terms do kept[#kept + 1] = terms[i] end
  return kept
end

-- Who leads each election now: what runtimes on this host say, and over that what the store does.
local function leaders_now()
  local now = {}
  for _, runtime in ipairs(control.ask_all { ask = "status" }) do
    for _, one in ipairs(runtime.elections or {}) do
      if one.leader and not one.away then now[one.name] = { leader = one.leader, epoch = one.epoch } end
    end
  end
  local module, opts, word = store.open "history"
  local list = store.caller(word, module, "list")
  if not list then return now end
  local listed, problem = list(opts)
  if not listed then output.say("history", problem) end
  for _, one in ipairs(listed or {}) do now[one.name] = { leader = one.node, epoch = one.epoch } end
  return now
end

-- Tells of each term that was not seen to end whether it goes on, and adds the one of NAME that was not seen to begin.
local function compare(terms, name)
  local now, known = leaders_now(), false
  for _, term in ipairs(terms) do
    local leads = now[term.name]
    if not term.ended and leads then
      term.leads = leads.leader == term.leader and words_for.epoch(leads.epoch) == words_for.epoch(term.epoch)
    end
    known = known or term.leads
  end
  local leads = now[name]
  if leads and leads.leader and not known then
    terms[#terms + 1] = { name = name, leader = leads.leader, epoch = leads.epoch, leads = true }
  end
end

local function end_of(term)
  if term.reason then return term.reason end
  if term.ended then return "-" end
  if term.leads == nil then return "not seen to end" end
  return term.leads and "leads now" or "ended, not seen here"
end

local function rows_of(terms, name, format)
  local rows = {}
  for i, term in ipairs(terms) do
    rows[i] = { term.began and os.date(format, term.began) or "-", term.leader or "-", words_for.epoch(term.epoch),
      term.ended and words_for.span(term.ended - term.began) or "-",
      end_of(term) }
    if not name then table.insert(rows[i], 2, term.name) end
  end
  return rows
end

--- The verb.
function history.run(options, words)
  local name = words[1]
  local terms = terms_of(read(), name)
  compare(terms, name)
  terms = last(terms, options.last or LAST)
  if options.json then
    output.write(json.line({ terms = terms }, "terms"))
  elseif #terms == 0 then
    output.say("history", ("no runtime of yours here has seen anybody lead%s (it looks in %s; CROWN_DIRECTORY names another)")
      :format(name and (" '%s'"):format(name) or "", table.concat(control.places(), " and ")))
  else
    local heading = { "Began", "Leader", "Epoch", "Lasted", "Ended" }
    if not name then table.insert(heading, 2, "Election") end
    local columns = console.columns(1)
    local format = columns and columns < WIDE and "%m-%d %H:%M" or "%Y-%m-%d %H:%M:%S"
    output.write(tables.text(heading, rows_of(terms, name, format), columns, LAYOUT))
  end
  return #terms > 0 and 0 or 1
end

return history
