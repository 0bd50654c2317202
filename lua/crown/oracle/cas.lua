--- An oracle over any store that compares and swaps: one record an election, of which a write names the version that it
-- replaces. See docs/custom-oracles.md.
-- @module crown.oracle.cas

local candidate = require "crown.oracle.candidate"
local claim_number = require "crown.oracle.claim_number"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local epochs = require "crown.check.epoch"
local eviction = require "crown.oracle.eviction"
local record = require "crown.oracle.record"
local RecordLease = require "crown.oracle.record_lease"
local schema = require "crown.check.schema"
local store_options = require "crown.oracle.options"

local cas = {}

local LEAST_TTL, MOST_TTL = 0.5, 86400
local EVICT_TRIES = 5
local ASK_SECONDS = 5 -- for one question of `list` and `evict`

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

-- The user's functions, as the lease calls them.
local function asking(store, there)
  local function read()
    return check_read(store, settle(store, "read", pcall(store.read, there)))
  end
  local function write(text, version)
    return check_write(store, version, settle(store, "write", pcall(store.write, there, text, version)))
  end
  return read, write
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

-- What `read`, `write`, `names` and `init` are given.
local function open(store, there)
  if store.init then
    local fine, problem = store.init(there)
    if not fine then return nil, problem or store.word .. ": init returned nothing" end
  end
  return there
end

local function new_candidate(store, opts)
  local checked, options = check_options(store, opts), store_options.users(opts)
  local ttl, delay = store_options.timing(checked, store.ttl)
  local name = tostring(checked.lock or opts.crown_name)
  local token, problem = candidate.enter(place_of(store, options), name, opts)
  if not token then return nil, problem end
  local there
  there, problem = open(store, { name = name, node = opts.node, options = options, send = opts.send,
    timeout = store_options.timeout(checked, ttl, delay) })
  if not there then return nil, problem end
  local read, write = asking(store, there)
  if checked.trust_empty == nil then checked.trust_empty = store.trust_empty end
  return RecordLease.new { read = read, write = write, now = core.now, token = token, node = opts.node, ttl = ttl,
    delay = delay, retry = checked.retry, trust_empty = checked.trust_empty, floor = checked.amnesia_wait,
    clock = os.time, doubts = Doubt.of(store.word, tostring(options.url or ""), checked) }
end

-- --- tools

local function visitor(store, opts, name)
  return open(store, { name = name, node = core.node(), options = store_options.users(opts), timeout = ASK_SECONDS,
    send = function() end })
end

local function read_record(read)
  local text, version, code = read()
  if not text then return text, version, code end
  local found, problem = record.parse(text)
  if not found then return nil, problem end
  return found, version
end

local function list(store, opts)
  local there, problem = visitor(store, opts)
  if not there then return nil, problem end
  local names
  names, problem = store.names(there)
  if not names then return nil, problem or store.word .. ": names returned nothing" end
  local found = {}
  for i, name in ipairs(names) do
    there.name = name
    local one
    one, problem = read_record((asking(store, there)))
    if one == nil then return nil, problem end
    if one then found[#found + 1] = { name = names[i], node = one.node, epoch = one.epoch } end
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

-- Looks at an election's record, where there is an election; `list` looks at all.
local function health(store, opts)
  if not opts.crown_name then return {} end
  local there, problem = visitor(store, opts, tostring(opts.lock or opts.crown_name))
  if not there then return nil, problem end
  local found
  found, problem = read_record((asking(store, there)))
  if found == nil then return nil, problem end
  local leads = found and found.token and ("%s, epoch %s"):format(found.node, epochs.text(found.epoch))
  return { facts = { { "Record", leads or found and "nobody leads" or "none yet" } } }
end

-- Marks the record of whoever holds it. @return the record, or nil and a message
local function mark(name, read, write)
  for _ = 1, EVICT_TRIES do
    local found, version = read_record(read)
    if found == nil then return nil, version end
    if not found or not found.token then return eviction.nobody(name) end
    local text = record.text(record.evicted(found), found.serial, core.token, claim_number(0))
    local wrote, problem = write(text, version)
    if wrote == nil then return nil, problem end
    if wrote then return found end
  end
  return nil, ("the record of '%s' changes faster than it can be written"):format(name)
end

local function evict(store, opts, name)
  local there, problem = visitor(store, opts, name)
  if not there then return nil, problem end
  local read, write = asking(store, there)
  local leader, code
  leader, problem, code = mark(name, read, write)
  if not leader then return nil, problem, code end
  local gone
  -- The leader hears of it with its next refresh.
  gone, problem = eviction.await(name, opts.wait or math.max(10, leader.ttl), function()
    local now, why = read_record(read)
    if now == nil then return nil, why end
    return not now or now.token ~= leader.token or now.claim ~= leader.claim
  end)
  if not gone then return nil, problem end
  return { node = leader.node, epoch = leader.epoch }
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
  local oracle = { name = store.word }
  function oracle.init(opts) return new_candidate(store, opts) end
  function oracle.timing(opts) return store_options.timing(opts, store.ttl) end
  function oracle.claim(self) return self:claim() end
  function oracle.refresh(self) return self:refresh() end
  function oracle.abdicate(self) return self:abdicate() end
  function oracle.handle_info(self, message) return self:handle_info(message) end
  function oracle.evict(opts, name) return evict(store, opts, name) end
  function oracle.health(opts) return health(store, opts) end
  if store.names then
    function oracle.list(opts) return list(store, opts) end
  end
  return oracle
end

return cas
