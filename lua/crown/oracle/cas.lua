--- An oracle over any store that compares and swaps: one record an election, of which a write names the version that it
-- replaces. See docs/custom-oracles.md.
-- @module crown.oracle.cas

local candidate = require "crown.oracle.candidate"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local Oracle = require "crown.register.oracle"
local schema = require "crown.check.schema"
local store_options = require "crown.oracle.options"
local tools = require "crown.register.tools"

local cas = {}

local LEAST_TTL, MOST_TTL = 0.5, 86400
local ASK_SECONDS = 5 -- for one question of `list` and `evict`
local TURN_PAUSE = 0.001 -- seconds between two looks whether it is a question's turn

local STORE = {
  word = { type = "string", required = "what events call the store" },
  ttl = { type = "number", least = LEAST_TTL, most = MOST_TTL, default = 15 },
  read = { type = "function", required = "how the record is read" },
  write = { type = "function", required = "how the record is written" },
  names = { type = "function" },
  init = { type = "function" },
  trust_empty = { type = "boolean", default = false },
}

local OPTIONS = {
  ttl = { type = "number", least = LEAST_TTL, most = MOST_TTL },
  refresh = { type = "number", above = 0, most = MOST_TTL },
  retry = { type = "number", above = 0, most = MOST_TTL, default = 1 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(),
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = { type = "boolean" },
}

-- --- what the user's functions may return

local function show(...)
  local words = {}
  for i = 1, math.max(1, select("#", ...)) do
    local value = (select(i, ...))
    words[i] = type(value) == "string" and ("%q"):format(value:sub(1, 20)) or tostring(value)
  end
  return table.concat(words, ", ")
end

local function breach(store, fn, ...)
  return nil, ("%s: %s returned %s: see the oracle contract"):format(store.word, fn, show(...)), "store"
end

local function is_version(value)
  return type(value) == "string" or type(value) == "number" and value == value
end

local function check_read(store, text, version, code)
  if text == false then return false end
  if text == nil and type(version) == "string" then return nil, version, code end
  if type(text) == "string" and is_version(version) then return text, version end
  return breach(store, "read", text, version)
end

local function check_write(store, replaced, new, problem, code)
  if new == false or new == true then return new end
  if new == nil and type(problem) == "string" then return nil, problem, code end
  if not is_version(new) then return breach(store, "write", new, problem) end
  if new == replaced then return nil, ("%s: write returned the version that it replaced (%s): see the oracle contract")
    :format(store.word, show(new)), "store" end
  return new
end

local function settle(store, fn, fine, first, ...)
  if fine then return first, ... end
  return nil, ("%s: an error in %s: %s"):format(store.word, fn, (tostring(first):match "^[^\n]*")), "store"
end

-- The store as the register asks it: by the user's functions, which know one name at a time.
local Store = {}
Store.__index = Store

-- What the user's functions are given for another record than the election's own.
local function self_for(there, name)
  if name == there.name then return there end
  return setmetatable({ name = name }, { __index = there, __newindex = there })
end

local function passed_on(self, turn, ...)
  if self.turn == turn then self.turn = nil end
  return ...
end

-- One question at a time with each `self`, which may have a connection: the renewals of a session come beside an election's own
-- questions. One whose task was cancelled holds the next one up for no longer than its time-out.
local function alone(self, fn, name, ...)
  while self.turn and core.now() < self.turn.ends do core.sleep(TURN_PAUSE) end
  local turn = { ends = core.now() + self.there.timeout }
  self.turn = turn
  return passed_on(self, turn, pcall(fn, self_for(self.there, name), ...))
end

local function read(self, name)
  local store = self.store
  return check_read(store, settle(store, "read", alone(self, store.read, name)))
end

local function write(self, name, text, version)
  local store = self.store
  return check_write(store, version, settle(store, "write", alone(self, store.write, name, text, version)))
end

-- A store of one name at a time does not say which memory answers.
function Store:look(names)
  local answers = {}
  for _, name in ipairs(names) do
    local text, version, code = read(self, name)
    if text == nil then return nil, version, code end
    answers[name] = { text = text, version = text and version, memory = "" }
  end
  return answers
end

-- Where the store does not name the new version, it is looked up.
local function swap_one(self, one)
  local new, problem, code = write(self, one.name, one.text, one.version or nil)
  if new ~= true then return new, problem, code end
  local text, version, why = read(self, one.name)
  if text == nil then return nil, version, why end
  if text == one.text then return version end
  return nil, ("%s: the record changed as soon as it was written"):format(self.store.word), "store"
end

function Store:swap(writes)
  local results = {}
  for i, one in ipairs(writes) do
    local new, problem, code = swap_one(self, one)
    if new == nil and #writes == 1 then return nil, problem, code end
    results[i] = new
  end
  return results
end

-- --- options

local function check_options(store, opts)
  local own = {}
  for name in pairs(OPTIONS) do own[name] = opts[name] end
  return schema.check(("oracle '%s'"):format(store.word), own, OPTIONS)
end

-- What tells one store of this kind from another: the options given, but for those that say nothing of where it is.
local function place_of(store, options)
  local words = {}
  for name, value in pairs(options) do
    if not OPTIONS[name] then words[#words + 1] = ("%s=%s"):format(name, tostring(value)) end
  end
  table.sort(words)
  return store.word .. " " .. table.concat(words, " ")
end

-- Asks the user's `init`, where there is one.
local function open(store, there)
  if store.init then
    local fine, problem = store.init(there)
    if not fine then return nil, problem or store.word .. ": init returned nothing" end
  end
  return setmetatable({ store = store, there = there }, Store)
end

-- For an author alone: no candidate needs the judge.
local function try_laws(store, opts)
  local users = store_options.users(opts)
  return require("crown.laws.judge").try(function(url, timeout)
    local options = setmetatable({ url = url }, { __index = users })
    local self, problem = open(store, { name = "laws", node = core.node(), options = options, timeout = timeout,
      send = function() end })
    if self and store.names then self.names = function() return store.names(self.there) end end
    return self, problem
  end, users.url)
end

local function new_candidate(store, kinds, opts)
  local checked, options = check_options(store, opts), store_options.users(opts)
  local ttl, delay = store_options.timing(checked, store.ttl)
  local name, place, timeout = tostring(checked.lock or opts.crown_name), place_of(store, options),
    store_options.timeout(checked, ttl, delay)
  local fine, problem = candidate.enter(place, name, opts)
  if not fine then return nil, problem end
  local there
  there, problem = open(store, { name = name, node = opts.node, options = options, send = opts.send, timeout = timeout })
  if not there then return nil, problem end
  local trust_empty = checked.trust_empty
  if trust_empty == nil then trust_empty = store.trust_empty end
  return Oracle.join(kinds, there, { place = place, name = name, token = opts.token, node = opts.node, ttl = ttl, delay = delay,
    timeout = timeout, amnesia_wait = checked.amnesia_wait, trust_empty = trust_empty, retry = checked.retry,
    election = candidate.of(opts), doubts = Doubt.of(store.word, tostring(options.url or ""),
      { amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty, twice = true }) })
end

-- --- tools

local function visitor(store, opts, name)
  return open(store, { name = name, node = core.node(), options = store_options.users(opts), timeout = ASK_SECONDS,
    send = function() end })
end

local function list(store, opts)
  local there, problem = visitor(store, opts)
  if not there then return nil, problem end
  local names
  names, problem = store.names(there.there)
  if not names then return nil, problem or store.word .. ": names returned nothing" end
  return tools.list(there, names)
end

-- Looks at an election's record, where there is an election; `list` looks at all.
local function health(store, opts)
  if not opts.crown_name then return {} end
  local name = tostring(opts.lock or opts.crown_name)
  local there, problem = visitor(store, opts, name)
  if not there then return nil, problem end
  return tools.health(there, name)
end

local function evict(store, opts, name)
  local there, problem = visitor(store, opts, name)
  if not there then return nil, problem end
  return eviction.from(there, name, opts.wait)
end

local function order(store, opts, name)
  local there, problem = visitor(store, opts, name)
  if not there then return nil, problem end
  return tools.order(there, name, opts.order)
end

local function marks(store, opts, name)
  local there, problem = visitor(store, opts, name)
  if not there then return nil, problem end
  return tools.runs(there, name, opts.forget)
end

--- Makes an oracle of a store.
-- @tparam table store `word`: what events call it; `read(self)` → the record's text and its version, false (there is none),
-- or nil and a reason; `write(self, text, version)`, version being the one that was read, or nil to create → the new version
-- or true, false (it changed meanwhile), or nil and a reason. Optional: `ttl` in seconds (15); `init(self)` → true, or nil and
-- a reason; `names(self)` → the names of all elections, for `list`; `trust_empty = true` where nobody can have deleted a
-- record. `self` has `name`, `node`, `options`, `timeout` (seconds for one question) and `send`: `self.send "changed"` tells
-- that the record changed
-- @treturn table the oracle's module
-- @raise a usage error for what is missing or wrong
function cas.oracle(store)
  store = schema.check("crown.oracle.cas", store, STORE)
  local kinds = {}
  local oracle = { name = store.word, claim = Oracle.claim, refresh = Oracle.refresh, abdicate = Oracle.abdicate,
    handle_info = Oracle.handle_info }
  function oracle.init(opts) return new_candidate(store, kinds, opts) end
  function oracle.timing(opts) return store_options.timing(opts, store.ttl, OPTIONS.retry.default) end
  function oracle.failover(opts) return Oracle.failover(oracle.timing(opts)) end
  function oracle.evict(opts, name) return evict(store, opts, name) end
  function oracle.order(opts, name) return order(store, opts, name) end
  function oracle.runs(opts, name) return marks(store, opts, name) end
  function oracle.health(opts) return health(store, opts) end
  function oracle.laws(opts) return try_laws(store, opts) end
  if store.names then
    function oracle.list(opts) return list(store, opts) end
  else
    oracle.unasked = "its module gives crown.oracle.cas no function 'names'"
  end
  return oracle
end

return cas
