--- Who led an election, for how long, and why it ended: as this host has seen it.
-- @internal crown.command.history

local console = require "crown.core.console"
local control = require "crown.control"
local json = require "crown.text.json"
local oracle = require "crown.election.contract"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local tables = require "crown.command.tables"
local terms_seen = require "crown.election.terms"
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
local LAYOUT = { spare = { "Epoch", "Lasted", "Store" }, long = { Election = 10, Leader = 10, Store = 14 } }
local WIDE = 80 -- columns of a terminal that has room for seconds and the year

local function last(terms, count)
  local kept = {}
  for i = math.max(1, #terms - count + 1), #terms do kept[#kept + 1] = terms[i] end
  return kept
end

-- Who leads each election now: what runtimes on this host say, and over that what the store does.
-- @return the leaders by election and store; the store that was asked
local function leaders_now()
  local now = {}
  for _, runtime in ipairs(control.ask_all { ask = "status" }) do
    for _, one in ipairs(runtime.elections or {}) do
      if one.leader and not one.away then
        now[terms_seen.key(one.name, one.store)] = { name = one.name, store = one.store, leader = one.leader, epoch = one.epoch }
      end
    end
  end
  local module, opts, word = store.open "history"
  local list, place = store.caller(word, module, "list"), oracle.store(opts, word)
  if not list then return now, place end
  local listed, problem = list(opts)
  if not listed then output.say("history", problem) end
  for _, one in ipairs(listed or {}) do
    now[terms_seen.key(one.name, place)] = { name = one.name, store = place, leader = one.node, epoch = one.epoch }
  end
  return now, place
end

local function same(term, leads)
  return leads.leader == term.leader and words_for.epoch(leads.epoch) == words_for.epoch(term.epoch)
end

-- Tells of each term that was not seen to end whether it goes on, and adds those of NAME that were not seen to begin.
-- @return the store that was asked
local function compare(terms, name)
  local now, place = leaders_now()
  for _, term in ipairs(terms) do
    local leads = now[terms_seen.key(term.name, term.store or place)]
    if not term.ended and leads then
      term.leads = same(term, leads)
      leads.known = leads.known or term.leads
    end
  end
  for _, leads in pairs(now) do
    if leads.name == name and leads.leader and not leads.known then
      terms[#terms + 1] = { name = name, store = leads.store, leader = leads.leader, epoch = leads.epoch, leads = true }
    end
  end
  return place
end

local function end_of(term)
  if term.reason then return term.reason end
  if term.ended then return "-" end
  if term.leads == nil then return "not seen to end" end
  return term.leads and "leads now" or "ended, not seen here"
end

-- Whether the terms are of several stores.
local function has_stores(terms)
  for _, term in ipairs(terms) do
    if term.store ~= terms[1].store then return true end
  end
  return false
end

local function rows_of(terms, name, format)
  local rows = {}
  for i, term in ipairs(terms) do
    rows[i] = { term.began and os.date(format, term.began) or "-", term.leader or "-", words_for.epoch(term.epoch),
      term.ended and (term.at_most and "< " or "") .. words_for.span(term.ended - term.began) or "-",
      end_of(term) }
    if not name then table.insert(rows[i], 2, term.name) end
    if has_stores(terms) then table.insert(rows[i], term.store or "-") end
  end
  return rows
end

--- Lays terms out for people.
-- @tparam table terms
-- @string[opt] name of the election, where it is one
-- @string place the store that was asked who leads now
-- @number[opt] columns of the terminal; nil: none
-- @treturn string
function history.text(terms, name, place, columns)
  local heading = { "Began", "Leader", "Epoch", "Lasted", "Ended" }
  if not name then table.insert(heading, 2, "Election") end
  if has_stores(terms) then heading[#heading + 1] = "Store" end
  local format = columns and columns < WIDE and "%m-%d %H:%M" or "%Y-%m-%d %H:%M:%S"
  local text = tables.text(heading, rows_of(terms, name, format), columns, LAYOUT)
  if not columns then return text end
  return ("%sterms from %s/history; who leads now from your runtimes here and %s\n"):format(text,
    table.concat(control.places(), "/history and "), printable(place))
end

--- The verb.
function history.run(options, words)
  local name = words[1]
  local terms, problems, entries = terms_seen.read(control.places(), name)
  for _, problem in ipairs(problems) do output.say("history", problem) end
  local place = compare(terms, name)
  terms = last(terms, options.last or LAST)
  if options.json then
    output.write(json.line({ terms = terms }, "terms"))
  elseif #terms == 0 then
    output.say("history", ("no runtime of yours here has seen anybody lead%s (it looks in %s; CROWN_DIRECTORY names another)%s")
      :format(name and (" '%s'"):format(name) or "", table.concat(control.places(), " and "), store.slots(entries, name or "")))
  else
    output.write(history.text(terms, name, place, (console.columns(1))))
  end
  return #terms > 0 and 0 or 1
end

return history
