--- Declares an election: validates every option, then hands plain data to the C side.
-- @module crown.elect

local alike = require "crown.election.alike"
local child = require "crown.election.child"
local conditions = require "crown.link.conditions"
local control = require "crown.control"
local core = require "crown.core"
local crypto = require "crown.core.crypto"
local elections = require "crown.core.election"
local said = require "crown.link.explain"
local failover = require "crown.election.failover"
local figure = require "crown.check.figure"
local handlers = require "crown.election.handlers"
local hex = require "crown.text.hex"
local kernel = require "crown.election.kernel"
local past = require "crown.election.history"
local packed = require "crown.text.packed"
local options = require "crown.election.options"
local oracle = require "crown.election.contract"
local Pace = require "crown.election.pace"
local own_rules = require "crown.text.own_rules"
local rules = require "crown.election.rules"
local schema = require "crown.check.schema"
local settings = require "crown.election.settings"
local shares = require "crown.election.shares"
local slots = require "crown.election.slots"
local stores = require "crown.election.stores"
local Term = require "crown.election.term"
local usage = require "crown.check.usage"

--- An election, as crown.elect returns it.
-- @type Election
local Election = {}
local new_election = packed.kind({ "name", "common", "state", "handle" }, Election)

local WAIT_LEAST, WAIT_TTLS = 60, 4 -- the most that a follower waits until it asks again: seconds, and TTLs of its own
local SHORT = 0.1 -- seconds: no lease can be kept that lasts less, so what ends sooner ends once, and not time after time
local HURRY_FIRST, HURRY_MOST = 0.001, 1 -- seconds between questions where it does; they double

-- What an election has in common with those that were declared like it is one table for all of them: `module`,
-- `handlers`, `most_wait`, `verdict`. Ten thousand are mostly alike, and are declared one after the other.
local latest = {}

local function common(module, word, prepared, ttl)
  local most_wait = math.max(WAIT_LEAST, WAIT_TTLS * (ttl or 0))
  local last = latest -- which another task may replace at any time
  local known = last.handlers
  local same = known and known.functions == prepared.functions and not known.has_state and not prepared.has_state
  if same and last.module == module and last.most_wait == most_wait and last.ttl == ttl then return last end
  last = { module = module, handlers = prepared, ttl = ttl, most_wait = most_wait,
    verdict = oracle.verdicts_of(module, word), is_own = oracle.is_own(module) }
  latest = last
  return last
end

-- What an oracle says of the next question, within bounds. A follower asks again before a time that is longer than any lease
-- here: a slip in units must not mean nobody for days; what a store that may have forgotten makes everybody wait is waited for.
-- And where what is told is over at once, again and again, it does not ask without end.
function Election:within(kind, wait, amnesia)
  local most_wait = self.common.most_wait
  if wait < SHORT then
    self.hurry = math.min(HURRY_MOST, 2 * (self.hurry or HURRY_FIRST / 2))
    return math.max(wait, self.hurry)
  end
  self.hurry = nil
  if amnesia or wait <= most_wait then return wait end
  if not self.told_wait then
    elections.emit("oracle.error", { ["function"] = kind, error = ("told to wait for %.0f s: asked again after %.0f s")
      :format(wait, most_wait) }, self.handle)
  end
  self.told_wait = true
  return most_wait
end

local TOLD, LATER = math.huge, 1 -- seconds by which a lease's end has moved when it was refreshed

-- A lease under our own name whose end moves on is refreshed: by another candidate of that name, and not by what is left of an
-- earlier term of ours. Told once.
function Election:look_for_namesake(node, expires_in)
  if node ~= (self.own_node or core.node()) or not expires_in then return end
  local ends = core.now() + expires_in
  self.seen_end = self.seen_end or ends
  if ends <= self.seen_end + LATER then return end
  self.seen_end = TOLD
  elections.emit("oracle.same_node", { error = ("another candidate of this election is called '%s', too: give each a name of "
    .. "its own (--node, CROWN_NODE or node = …)"):format(node) }, self.handle)
end

-- What an oracle of ours says of a question without an outcome names its store, whatever said it.
function Election:placed(problem, code)
  local place = self.common.is_own and self.handle and self.handle:status().store
  local is_asked = code ~= "usage" -- else no server was
  return place and is_asked and said.placed(problem, place, code == "store") or problem
end

-- Why a question was not answered in time, called by the C side, which has nobody wait for it. The place is the store's URL,
-- without its login and options, where there is one.
function Election.silence(_, place)
  local trouble = place and conditions.trouble(place)
  return trouble or said.placed("no answer in the time allowed", place or "", false)
end

function Election:bound(kind, word, expires_in, node, epoch, amnesia, retry_in, ...)
  if self.pace and word == "granted" then self.pace:won() end
  if word == "unknown" then -- by their positions: what it says, a code, and the pause that the store asks for
    expires_in = self:placed(expires_in, node)
    if epoch then epoch = self:within(kind, epoch) end
  end
  if word ~= "denied" then return word, expires_in, node, epoch, amnesia, retry_in, ... end
  if node and not amnesia then self:look_for_namesake(node, expires_in) end
  local again = self.pace and not amnesia and self.pace:again(expires_in)
  if again then expires_in, retry_in = nil, again end
  if expires_in then
    expires_in = self:within(kind, expires_in, amnesia)
  elseif retry_in and retry_in > 0 then
    retry_in = self:within(kind, retry_in, amnesia)
  end
  return word, expires_in, node, epoch, amnesia, retry_in, ...
end

--- Everything that happens in tasks of this election, called by the C side: an oracle call's results come back as a
-- verdict; errors are caught there and reported with the task's traceback.
function Election:perform(kind, argument, epoch)
  local module, verdict, state = self.common.module, self.common.verdict, self.state
  local group = self.group
  if kind == "claim" then
    if group then return self:bound(kind, verdict("claim", state, group:ask(self, module.claim))) end
    return self:bound(kind, verdict("claim", state, module.claim(state)))
  end
  if kind == "refresh" then return self:bound(kind, verdict("refresh", state, module.refresh(state))) end
  if kind == "info" then
    if group then return self:bound("handle_info", verdict("handle_info", state, group:hear(self, module, argument))) end
    if not module.handle_info then return "nothing" end
    return self:bound("handle_info", verdict("handle_info", state, module.handle_info(state, argument)))
  end
  if kind == "abdicate" then
    if group then return group:abdicate(self, argument) end
    return module.abdicate and module.abdicate(state, argument)
  end
  if kind == "won" then
    self.handle:won()
    argument = Term.new(self.handle, self.name, argument)
  end
  handlers.call(self.common.handlers, kind, argument, epoch)
end

--- What is known now: `phase`, `leader`, `epoch`, `expires_in`, `term`, `barred`, `rules`.
function Election:status()
  if not self.handle then return { phase = "finishing", epoch = 0 } end
  local status = self.handle:status()
  status.rules = self.own_rules
  if status.phase == "leading" then
    status.term = Term.new(self.handle, self.name, status.epoch)
  end
  return status
end

--- The end of what the leader's child has written to the log, as long as its option `keep_output` says. Complete from the event
-- `child.stopped` on, until the next child is started.
-- @treturn string nil: nothing is kept
-- @treturn number bytes that the child has written in all
function Election:output()
  if not self.handle then return nil end
  return self.handle:output()
end

--- Whether this candidate leads and may act, now.
function Election:is_leader()
  return self.handle ~= nil and self.handle:is_leader()
end

--- Hands a message to the oracle's handle_info.
-- @param message anything but nil
-- @return true, or nil and a message
function Election:send(message)
  if not self.handle then return nil, "this candidate takes no part" end
  return self.handle:send(message)
end

--- Steps down and lets the others try.
function Election:abdicate()
  if self.handle then self.handle:abdicate() end
end

--- Ends this election for good.
function Election:stop()
  if self.handle then self.handle:stop() end
end

local function check_children(where, checked, spec)
  local stop_timeout
  if checked.child then
    spec.child, spec.restart, stop_timeout = child.check(where .. ": child", checked.child)
    if spec.child.signalled then
      spec.child.epoch_file = control.epoch_file(checked.name, checked.node)
      spec.child.env.CROWN_EPOCH_FILE = spec.child.epoch_file
    end
  end
  if stop_timeout and checked.stop_timeout then
    usage.error("%s: child: stop_timeout has no effect beside the election's: give one of them", where)
  end
  if checked.follower_child then
    local restart, own_stop_timeout
    spec.follower_child, restart, own_stop_timeout = child.check(where .. ": follower_child", checked.follower_child)
    if own_stop_timeout or checked.child and checked.follower_child.restart then
      usage.error("%s: follower_child: %s has no effect here: %s holds for both children", where,
        own_stop_timeout and "stop_timeout" or "restart", own_stop_timeout and "the election's" or "the child's")
    end
    spec.restart = spec.restart or restart
    if spec.child and spec.child.signalled then
      usage.error("%s: a child in signal mode lives on between terms, so there is no follower_child beside it", where)
    end
  end
  spec.stop_timeout = checked.stop_timeout or stop_timeout
end

local function make_spec(where, checked, word, module, prepared, oracle_options)
  local spec = {
    name = checked.name,
    node = checked.node,
    oracle = word,
    store = oracle.store(oracle_options, word),
    claim_delay = checked.claim_delay,
    retry = checked.retry,
    monitor_leader = checked.monitor_leader,
    lease = checked.lease,
    cool_down = checked.cool_down,
    call_timeout = checked.call_timeout,
    lost_timeout = checked.lost_timeout,
    has_abdicate = module.abdicate ~= nil,
    leaves = module.leaves == true,
    has_won = prepared.functions.won ~= nil,
    has_lost = prepared.functions.lost ~= nil,
    has_leader = prepared.functions.leader ~= nil,
    has_campaign = prepared.functions.campaign ~= nil,
  }
  check_children(where, checked, spec)
  if module.hands_over and spec.child and spec.child.uid then
    usage.error("%s: child: user: with the oracle '%s' the child holds %s, which another user must not have: take a lease",
      where, word, module.hands_over)
  end
  return spec
end

local UNKNOWN_LEASE = "known at the first grant; twice the delay if none is named"
local STORES_LEASE = "the store's own, known at the first grant"

-- The timing of an election, in words and seconds; what was explained last is not explained again.
local explained = {}

local function explain(spec, ttl, refresh, cool_down)
  local isolation, last = spec.child and spec.child.isolation, explained -- which another task may replace at any time
  local same = last.ttl == ttl and last.refresh == refresh and last.lease == spec.lease
    and last.stop_timeout == spec.stop_timeout and last.isolation == isolation and last.cool_down == cool_down
  if same then return last.text, last.timing end
  local text, timing = elections.explain(spec, ttl, refresh, cool_down)
  if not text then return nil, timing end
  explained = { ttl = ttl, refresh = refresh, lease = spec.lease, stop_timeout = spec.stop_timeout, isolation = isolation,
    cool_down = cool_down, text = text, timing = timing }
  return text, timing
end

-- A TTL that has no effect would be relied on.
local function refuse_vain_ttl(where, plan, has_none, is_stores)
  local given, word = settings.ttl, plan.word
  if (has_none or is_stores) and (given or plan.spec.lease) then
    usage.error("%s: %s has no effect: with the oracle '%s' %s", where, given and "--ttl" or "lease", word,
      is_stores and "the store says how long its lease lasts" or "there is no lease that could run out")
  end
  local other = plan.oracle_options.ttl or plan.oracle_options.duration
  if given and not plan.checked.oracle and other and tonumber(other) ~= given then
    usage.error("%s: --ttl %s has no effect beside %s=%s in the oracle's URL: give one of them", where, figure.exact(given),
      plan.oracle_options.ttl and "ttl" or "duration", tostring(other))
  end
end

-- "nan" in a URL is a number for tonumber.
local function refuse_nan(where, ...)
  for _, option in ipairs { ... } do
    if option[2] ~= option[2] then usage.error("%s: oracle: %s is not a number", where, option[1]) end
  end
end

-- Timing that the oracle's options tell is checked before anything is claimed.
local function check_timing(where, plan, oracle_options)
  local spec, module = plan.spec, plan.module
  local ttl, refresh, cool_down, asks
  if module.timing then ttl, refresh, cool_down, asks = module.timing(oracle_options) end
  local is_stores = ttl == false
  local none = not ttl and not is_stores and refresh == math.huge
  refuse_vain_ttl(where, plan, none, is_stores)
  if is_stores then
    ttl, refresh = nil, nil
  elseif not none then
    ttl = ttl or tonumber(oracle_options.ttl) or spec.lease
    refresh = refresh or tonumber(oracle_options.refresh) or (ttl and ttl / 3)
  end
  refuse_nan(where, { "ttl", ttl }, { "refresh", refresh }, { "cool_down", cool_down }, { "retry", asks })
  local text, timing = explain(spec, ttl or 0, refresh or math.huge, math.max(spec.cool_down, cool_down or 0))
  if not text then usage.error("%s: %s", where, timing) end
  if not ttl and not none then
    text = text:gsub("none: the oracle sees a loss itself", is_stores and STORES_LEASE or UNKNOWN_LEASE)
  end
  text = failover(text, module, oracle_options, timing.cool_down)
  return { text = text, seconds = timing }, ttl, asks
end

local GIVES_WAY = 1.5 -- times what the others wait between two claims: they wait up to a tenth longer, and ask then

-- How long a leader that gave its term up leaves the others the first claim. Where the store tells of releases they claim at
-- once; elsewhere when they ask again by themselves.
local function stand_back(plan, pace)
  local theirs = plan.asks and math.max(plan.asks, pace and pace:longest() or 0) or 0
  return GIVES_WAY * math.max(plan.spec.retry, theirs)
end

-- What several candidates of one election in this runtime are told apart by; the same from one runtime to the next.
local function token_of(node)
  return node and ("%s-%s"):format(core.token, hex(crypto.hmac_sha256("node", node):sub(1, 8))) or core.token
end

-- What an oracle may do with its election. Ours mostly need none of it: for them it is made when they ask.
local ABILITIES = {
  send = function(self) return function(message) return self:send(message) end end,
  leading = function(self) return function() return self:is_leader() end end,
  emit = function(self) return function(name, fields) elections.emit(name, fields or {}, self.handle) end end,
}
local When_asked = {
  __index = function(opts, key)
    local make = ABILITIES[key]
    return make and make(rawget(opts, "election"))
  end,
}

local function oracle_options_for(self, plan)
  local given, is_own, node = plan.oracle_options, plan.is_own, plan.checked.node
  local opts = { -- of the right size at once: there may be a hundred thousand
    given = given, -- also what is overridden here
    crown_name = self.name,
    node = node or core.node(),
    token = token_of(node),
    ttl = given.ttl or not given.duration and settings.ttl or nil,
    election = is_own and self or nil,
  }
  for key, value in pairs(given) do
    if opts[key] == nil and key ~= "ttl" and not ABILITIES[key] then opts[key] = value end
  end
  if is_own then return setmetatable(opts, When_asked) end
  for key, make in pairs(ABILITIES) do opts[key] = make(self) end
  return opts
end

-- What an election's options come to.
local function plan_of(where, checked)
  if checked.oracle then oracle.expect(where, settings.oracle) end
  local module, oracle_options, word, pace = oracle.find(where, checked.oracle or settings.oracle)
  local prepared = handlers.check(where, checked.handlers, { crown_name = checked.name, node = checked.node or core.node() })
  if not settings.checking then stores.note(module, oracle_options, word) end
  return { checked = checked, module = module, oracle_options = oracle_options, word = word, pace = pace, handlers = prepared,
    is_own = pace ~= nil and not settings.checking, rules = rules.make(where, checked), own_rules = own_rules.of(checked),
    spec = make_spec(where, checked, word, module, prepared, oracle_options) }
end

local function settle_timing(where, plan, opts)
  local timing, ttl, asks = check_timing(where, plan, opts)
  plan.timing, plan.spec.ttl, plan.asks = timing, ttl, asks
  plan.common = common(plan.module, plan.word, plan.handlers, ttl)
end

-- @return the election's name among those declared; raises what is wrong with it
local function name_of(where, name, node)
  local candidate = settings.key(name, node)
  if elections.declared(name, node) or settings.ignored[candidate] then
    usage.error("%s: name: there is already an election of this name; for several candidates of one, give each a node of "
      .. "its own: node = 'w2'", where)
  end
  return candidate
end

local function check_options(where, given, plan)
  if not plan then return schema.check(where, given, options.election) end
  schema.check_value(where, "name", given.name, options.election.name)
  return plan.checked
end

local function begin(self, where, spec, made)
  local handle, problem = elections.new(self, spec)
  if not handle then usage.error("%s: %s", where, problem) end
  self.handle = handle
  if settings.checking then return end
  kernel.say_missing()
  if control.open() then past.start() end
  if made then
    rules.begin(made, handle, { name = spec.name, node = spec.node or core.node(), state = self.state })
  end
  handle:start()
end

-- Declares one; with a group it is a slot of that: see crown.election.slots; with a rank a share: see crown.election.shares.
local function declare(given, group, rank)
  if core.lua_child then usage.error("crown.elect: a child process holds no elections") end
  local name = type(given) == "table" and type(given.name) == "string" and given.name or "?"
  local where = ("elect '%s'"):format(name)
  local known = name ~= "?" and alike.find(given) or nil
  local checked = check_options(where, given, known)
  local candidate = name_of(where, name, checked.node)
  local plan = known or plan_of(where, checked)
  local spec = plan.spec
  local self = new_election()
  self.name = name
  if group then self.group, spec.has_abdicate = group, true end
  local opts = oracle_options_for(self, plan)
  if not known then settle_timing(where, plan, opts) end
  self.common, spec.name = plan.common, name
  if settings.checking then
    self.options, self.timing, self.oracle_options, self.rules = spec, plan.timing, opts, plan.rules
    opts.send, opts.checking = function() end, true -- a message makes an oracle claim
  end
  local pace = Pace.new(where, checked, plan.pace)
  self.own_node, self.pace, self.own_rules = checked.node, pace, plan.own_rules
  spec.stand_back = stand_back(plan, pace)
  if pace then spec.claim_delay = spec.claim_delay + pace:apart()
  elseif plan.is_own and not known then alike.keep(given, plan) end
  self.state = oracle.init(where, plan.word, plan.module, opts, self)
  if settings.checking then settings.declared[#settings.declared + 1] = self end
  if self.state ~= oracle.IGNORE then
    rules.expect(where, plan.rules, plan.module, self.state, plan.word, rank and "shares")
    if rank and not settings.checking then self.state:prefer(rank) end
  end
  if self.state == oracle.IGNORE then settings.ignored[candidate] = self else begin(self, where, spec, plan.rules) end
  return self
end

--- Declares an election; it starts when the script waits or ends.
-- @tparam table given the options: docs/app.md
-- @treturn Election; with `slots` an object with its methods, and `elections`, one for each slot
-- @raise a usage error that names the option
local function elect(given)
  local many = type(given) == "table" and (given.shares ~= nil and shares or given.slots ~= nil and slots)
  if not many then return declare(given) end
  return many.elect(declare, ("elect '%s'"):format(type(given.name) == "string" and given.name or "?"), given)
end

return elect
