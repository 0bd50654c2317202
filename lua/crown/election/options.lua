--- The options of crown.elect, as schemas (see crown.check.schema).
-- @internal crown.election.options

local is_utf8 = require "crown.text.is_utf8"
local names = require "crown.check.names"
local Pace = require "crown.election.pace"
local printable = require "crown.text.printable"
local rules = require "crown.election.rules"
local schema = require "crown.check.schema"
local shares = require "crown.election.shares"
local slots = require "crown.election.slots"
local usage = require "crown.check.usage"

local options = {}

local SIGNALS = {
  HUP = 1, INT = 2, QUIT = 3, KILL = 9, USR1 = 10, USR2 = 12, TERM = 15, CONT = 18, WINCH = 28,
}

--- A signal's number.
-- @tparam string|number signal "TERM", "SIGTERM" or 15
-- @treturn number the number, or nil
function options.signal_number(signal)
  if type(signal) == "number" then
    return signal >= 1 and signal <= 64 and signal % 1 == 0 and signal or nil
  end
  return SIGNALS[(signal:upper():gsub("^SIG", ""))]
end

local function check_name(given)
  if #given > names.MOST then return ("must have at most %d characters"):format(names.MOST) end
end

--- What is wrong with a node's name: it is shown in tables and logs, and written into every store.
-- @string node
-- @treturn string words, or nil
function options.node_problem(node)
  if #node < 1 or #node > 255 then return "a name has 1 to 255 bytes" end
  if not is_utf8(node) then return "a name is UTF-8" end
  if node ~= printable(node) then return "a name has no control characters" end
end

local function check_signal(signal)
  if not options.signal_number(signal) then
    return ("'%s' is no signal%s"):format(tostring(signal), usage.suggest(tostring(signal):upper(),
      { "TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL" }))
  end
end

local function check_backoff(backoff)
  local first, most = backoff[1], backoff[2]
  if type(first) ~= "number" or type(most) ~= "number" or first <= 0 or most < first then
    return "must be { first, most } in seconds, with 0 < first ≤ most"
  end
end

-- What to write for a command that is given as one text.
local function as_table(text)
  local words = {}
  for word in text:gmatch "%S+" do words[#words + 1] = ("'%s'"):format(word) end
  if text:find "[^%w%s/._:=,@+-]" then words = { "'sh'", "'-c'", ("%q"):format(text) } end
  return (": { %s }"):format(table.concat(words, ", "))
end

--- Options of an election.
options.election = {
  name = names.rule { required = "every election has a name", check = check_name },
  node = { type = "string", check = options.node_problem },
  oracle = { type = { "string", "table" } },
  child = { type = { "table" }, instead = as_table },
  follower_child = { type = { "table" }, instead = as_table },
  handlers = { type = { "string", "table" } },
  claim_delay = { type = "number", least = 0, most = 86400, default = 0 },
  retry = { type = "number", above = 0, most = 86400, default = 1 },
  slots = slots.RULE,
  shares = shares.RULE,
  backoff = Pace.RULES.backoff,
  splay = Pace.RULES.splay,
  monitor_leader = { type = "boolean", default = true },
  lease = { type = "number", above = 0, most = 31536000 },
  cool_down = { type = "number", least = 0, most = 86400, default = 0 },
  stop_timeout = { type = "number", above = 0, most = 86400 },
  call_timeout = { type = "number", above = 0, most = 3600, default = 10 },
  lost_timeout = { type = "number", above = 0, most = 3600, default = 30 },
}

--- Options of a child.
options.child = {
  command = { type = "table" },
  lua = { type = "string" },
  env = { type = "table" },
  cwd = { type = "string" },
  user = { type = { "string", "number" } },
  group = { type = { "string", "number" } },
  log_fields = { type = "table" },
  keep_output = { type = "number", integer = true, least = 1, most = 1048576 },
  stdin = { type = "string", default = "inherit" },
  stdout = { type = "string", default = "inherit" },
  stderr = { type = "string", default = "inherit" },
  stop_signal = { type = { "string", "number" }, default = "TERM", check = check_signal },
  stop_timeout = { type = "number", above = 0, most = 86400 },
  isolation = { type = "string", values = { "tree", "pidns" }, default = "tree" },
  mode = { type = "string", values = { "stop", "interrupt", "signal" }, default = "stop" },
  told = { type = "boolean", default = false },
  watchdog = { type = "number", least = 0.1, most = 86400 },
  fence = { type = "boolean", default = false },
  terminal = { type = "boolean", default = false },
  restart = { type = "table" },
}

--- Options of a restart policy.
options.restart = {
  policy = { type = "string", values = { "permanent", "transient", "temporary", "finish" },
    default = "permanent" },
  max = { type = "number", integer = true, least = 0, most = 16, default = 3 },
  within = { type = "number", above = 0, most = 86400, default = 60 },
  backoff = { type = "table", default = { 0.1, 5 }, check = check_backoff },
}

for name, rule in pairs(rules.OPTIONS) do options.election[name] = rule end

local PAGE = "docs/app.md"
-- What an oracle may have; each has more of its own.
local ORACLES = { ttl = true, duration = true, refresh = true, timeout = true, lock = true, url = true, amnesia_wait = true,
  trust_empty = true }

schema.place(ORACLES, "it is the oracle's: oracle = { …, %s = … }, or ?%s=… in its URL",
  "the page of its store (docs/oracles.md)", "oracle '")
schema.place(options.election, "it is the election's: crown.elect { …, %s = … }", PAGE)
schema.place(options.child, "it is the child's: child = { …, %s = … }", PAGE)
schema.place(options.restart, "it is the restart policy's: child = { …, restart = { %s = … } }", PAGE)

return options
