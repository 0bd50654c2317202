--- The public contract of an oracle, over a store with the verbs look and swap (crown.register.session).
-- @internal crown.register.oracle

local claims = require "crown.register.claims"
local core = require "crown.core"
local nonce = require "crown.text.nonce"
local obey = require "crown.register.obey"
local packed = require "crown.text.packed"
local promise = require "crown.core.promise"
local record = require "crown.register.record"
local renewals = require "crown.core.renewals"
local Session = require "crown.register.session"
local rule = require "crown.register.rule"
local runs = require "crown.register.runs"
local Seen = require "crown.register.seen"
local several = require "crown.register.several"
local terms = require "crown.register.terms"
local Watch = require "crown.register.watch"

local Oracle = { is_core = true }
Oracle.__index = Oracle

-- Of a candidate's state, which mostly is its slot (crown.register.terms) too.
local FIELDS = { "slot", "election", "leading", unpack(Seen.FIELDS) }

local PATIENCE = 4 -- questions of a renewal, each of which has its time-out
local JITTER = 1.1 -- times a pause is what the core makes of it at most
local WATCH_SECONDS = 1 -- from one look at the sessions that hold what others follow to the next
local DEAF_SECONDS = 1 -- from one look of a follower to the next, while the store cannot tell of changes
local MARK_SECONDS, MARK_PAUSE = 9, 0.05 -- for which a release is repeated that has marks of a run, and between two looks
local PATIENT_SECONDS, PATIENT_TTLS = 60, 4 -- the core asks again after so long anyway

local env = { now = core.now, time = function() return os.time() * 1000 end, wall_offset = core.wall_offset, nonce = nonce,
  random = math.random, promise = promise, detach = core.detach, sleep = core.sleep, atomic = core.atomic, renewals = renewals }

-- A session's record has one writer. Where elections of one runtime have the same TTL, and not the same place and times, each of
-- these ways has a session of its own: two places may be one server, by two of its names. Another runtime of this candidate
-- declares them in the same order.
local function number_of(kinds, options, way)
  local name = ("%s %.17g"):format(options.token, options.ttl)
  kinds.ways = kinds.ways or {}
  local ways = kinds.ways[name] or { count = 0 }
  kinds.ways[name] = ways
  if not ways[way] then ways.count, ways[way] = ways.count + 1, ways.count + 1 end
  return ways[way]
end

-- What all candidates of a session have in common, or most of them: there Lua looks for what their own state lacks.
local function kind_of(kinds, store, options)
  local part = store.part_of and store:part_of(options.name)
  local way = ("%s\n%s\n%.17g %.17g %.17g %.17g"):format(options.place, options.token, options.ttl, options.delay,
    options.timeout, options.amnesia_wait)
  local key = ("%s\n%s"):format(way, part or "")
  if not kinds[key] then
    local session = Session.new(env, { token = options.token, node = options.node, ttl = options.ttl, delay = options.delay,
      patience = PATIENCE * options.timeout, floor = options.amnesia_wait, remembers = options.remembers,
      part = part, number = number_of(kinds, options, way) })
    local common = { session = session, ttl = options.ttl, delay = options.delay, store = store, retry = options.retry,
      trusts = options.trust_empty, doubts = options.doubts }
    common.watch = store.hear and Watch.new(session, math.min(WATCH_SECONDS, options.delay))
    kinds[key] = { common = common, new = packed.kind(FIELDS, setmetatable(common, Oracle)) }
  end
  return kinds[key]
end

--- Makes a candidate's state.
-- @tparam table kinds one table for all candidates of one store's module: elections of a runtime that ask the same place with the
-- same times share a session
-- @tparam table store has `look` and `swap`, and perhaps `part_of`: see crown.register.session
-- @tparam table options `name` of the election's record; `place`, what tells one store from another; `token` and `node` of the
-- runtime; `ttl`, `delay`, `timeout` and `amnesia_wait` in seconds; `trust_empty`; `remembers`: the store loses nothing, ever;
-- `retry`: seconds after which a follower looks again; `election`: has the method `send(message)`; `doubts`: has the method
-- `denial(seconds, is_empty, holder)`, which says why nobody claims
-- @treturn table or nil and a message
function Oracle.join(kinds, store, options)
  if record.is_reserved(options.name) then
    return nil, ("'%s' is no name for an election: one that begins with '@' is a session's"):format(options.name)
  end
  local kind = core.atomic(kind_of, kinds, store, options)
  local common, self = kind.common, kind.new()
  self.slot, self.election, self.leading = core.atomic(terms.slot, common.session, options.name, self), options.election, false
  for own, value in pairs { store = store, retry = options.retry, trusts = options.trust_empty, doubts = options.doubts } do
    if common[own] ~= value then self[own] = value end -- thousands of elections mostly have the same
  end
  return self
end

--- How long it takes at most until somebody leads after a leader that has died: a follower sees the last renewal when it looks
-- next, and from then on it has to see it stand.
-- What it is given is what `timing` of an oracle returns.
-- @number ttl in seconds, as all of these
-- @number delay from one renewal to the next
-- @param _ such an oracle has no cool-down
-- @number[opt] retry from one look of a follower to the next, where nothing tells it of changes
-- @treturn number
function Oracle.failover(ttl, delay, _, retry)
  return rule.standing_time(ttl) + (retry and retry * JITTER or math.min(WATCH_SECONDS, delay))
end

--- Tells the election that something has changed.
-- @tparam[opt] table news what stands now, as far as the store has told: see `hear` in crown.register.session
function Oracle:tell(news)
  self.slot.news = news
  obey.hear(self.session, self)
  self.election:send "changed"
end

--- Tells its core what speaks against its leading; where nothing does any more it claims: see crown.register.obey.
-- @string[opt] bar
-- @string[opt] why
-- @string[opt] before what it was told last
function Oracle:obey(bar, why, before)
  self.waits = nil
  if self.group then return self.group:obey_most() end
  if obey.tell_core(self.election, bar, why, before) then return end
  if not self.election.handle then self.is_to_go = bar and self.leading or nil end
  self.election:send "changed"
end

-- A core that nothing can be told of hears it as of an eviction.
local function sent_away(self)
  if not self.is_to_go then return false end
  self.is_to_go = nil
  return true
end

--- Says it again.
function Oracle:remind(bar, why)
  obey.remind_core((self.group or self).election, bar, why)
end

-- Whether nothing tells of changes for now.
function Oracle:is_deaf()
  return not self.watch or self.store.deaf
end

-- Has itself told when the session that holds the election may be over.
function Oracle:follow(is_unsure)
  self.watch:add(self, is_unsure)
end

--- Lets a renewal of the session refresh its term, or has that asked for here: see crown.register.terms.
-- @bool on
function Oracle:stand(on)
  local handle = self.is_core and self.election.handle
  if handle then handle:stand(on) end
end

--- When its term may not act any more, as its core has it.
-- @treturn number or nil: its core has another one
function Oracle:deadline()
  local handle = self.is_core and self.election.handle
  return handle and handle:deadline()
end

-- In a new store another candidate may lead that trusts it, while this one waits. Who hears of no changes looks for that.
local function look_out(self, retry)
  if self.looks_out or not retry then return end
  self.looks_out = true
  core.detach(function()
    core.sleep(retry)
    self.looks_out = nil
    if not self.leading then self.election:send "changed" end
  end)
end

local function contended(self, verdict, second, third)
  if verdict == nil then return nil, second, third end
  self.leading = verdict
  if verdict then return true, second, third end
  local wait, holder = second.wait, { node = second.node, epoch = second.epoch, error = second.ordered }
  local retry = self.retry or self:is_deaf() and DEAF_SECONDS
  if second.amnesia then
    holder.hears = not second.back -- the rule keeps the wait
    if holder.hears and wait > (retry or wait) then look_out(self, retry) end
    return self.doubts:denial(wait, not second.back, holder)
  end
  if retry and wait > retry then
    holder.retry_in = retry
  elseif second.ordered then
    holder.retry_in = wait
  elseif not retry and second.stands then
    self:follow(second.unsure)
    holder.retry_in = math.max(PATIENT_SECONDS, PATIENT_TTLS * self.ttl) * (1 - math.random() / 4)
  else
    holder.expires_in = wait
  end
  if second.asks_in and holder.retry_in then holder.retry_in = math.min(holder.retry_in, second.asks_in) end
  if second.unsure then holder.unsure = true end
  return false, holder
end

-- An evicted leader's lease goes on until it gives it back.
local function kept(self, verdict, second, third)
  if verdict == false and not second.evicted then self.leading = false end
  return verdict, second, third
end

function Oracle:say_rank() claims.say_rank(self.session, self) end

-- "claim", "refresh", "release" or "look".
function Oracle:ask(what)
  return terms[what](self.session, self)
end

--- Gives it its job, of which the store keeps marks.
-- @tparam Job job of crown.register.runs
function Oracle:attend(job)
  self.job = job
end

--- Gives it its rank among those that wait.
-- @tparam table rank of crown.register.ranks
function Oracle:prefer(rank)
  self.rank = rank
end

--- Its rank has changed. Where it leads, others are told of its level; else it asks, as that has it.
function Oracle:ranked() self.election:send "ranked" end

-- Whether it still owes the store what became of its term.
function Oracle:owes()
  return self.session.unsettled[self.slot] ~= nil
end

-- S16: what is not written is run again, so it is worth a while: as long as the core waits for a release. It may also be that
-- nothing is there any more to write it to.
local function wait_for_marks(self)
  local parts = self.parts or { self }
  local text = ("'%s' has ended, and the store has not noted that: "):format(parts[1].slot.name)
  if self:owes() then core.log("info", text .. "it is asked again") end
  local ends = core.now() + MARK_SECONDS
  while self:owes() and core.now() < ends do core.sleep(MARK_PAUSE) end
  local is_marked = not runs.expects_mark(self.job) or (self.job.marked or 0) > #parts / 2
  if self:owes() or not is_marked then core.log("warn", text .. "it may be run again") end
end

--- As in the oracle's contract, and so refresh, abdicate and handle_info.
function Oracle:claim()
  self.leading = false
  local job = self.job
  if job then job.ran, job.defers, job.held = nil, nil, nil end
  sent_away(self)
  return contended(self, self:ask "claim")
end

function Oracle:refresh()
  if not self.leading then return false end
  if sent_away(self) then return false, { evicted = true } end
  return kept(self, self:ask "refresh")
end

function Oracle:abdicate()
  self.leading = false
  self:ask "release"
  if self.job and self.job.result then wait_for_marks(self) end
end

function Oracle:handle_info(message)
  if message == "ranked" and self.leading then self:say_rank() end
  if message == "ranked" and not self.leading then return self:claim() end
  if message ~= "changed" then return end
  if not self.leading then return self:claim() end
  if sent_away(self) then return false, { evicted = true } end
  return kept(self, self:ask "look")
end

-- --- several registers

local Several = setmetatable({}, { __index = Oracle })
Several.__index = Several

-- Two names that lead to one server would give that two voices.
function Several:ask(what)
  local verdict, second, third = several[what](env, self)
  local problem = what ~= "release" and self.twice()
  if not problem then return verdict, second, third end
  if what == "claim" then several.release(env, self) end
  return nil, problem, "usage"
end

function Several:attend(job)
  self.job = job
  for _, part in ipairs(self.parts) do part:attend(job) end
end

function Several:prefer(rank)
  for _, part in ipairs(self.parts) do part:prefer(rank) end
end

function Several:say_rank()
  for _, part in ipairs(self.parts) do part:say_rank() end
end

function Several:owes()
  local count = 0
  for _, part in ipairs(self.parts) do
    if part:owes() then count = count + 1 end
  end
  return count > #self.parts / 2
end

function Several:is_deaf()
  for _, part in ipairs(self.parts) do
    if part:is_deaf() then return true end
  end
end

function Several:follow(is_unsure)
  for _, part in ipairs(self.parts) do
    if part.slot.holder then part:follow(is_unsure) end
  end
end

-- Its core is told what those parts say that leave too few of them to lead by. What is not known yet says nothing, unless others
-- do.
function Several:obey_most()
  local first, free = nil, 0
  for _, part in ipairs(self.parts) do
    if part.bar then first = first or part elseif part.slot.since then free = free + 1 end
  end
  local is_barred = first and free < math.floor(#self.parts / 2) + 1
  local bar, why = is_barred and first.bar or nil, is_barred and first.why or nil
  local before = self.bar
  if bar == before and why == self.why then return end
  self.bar, self.why = bar, why
  Oracle.obey(self, bar, why, before)
end

--- Makes the state of a candidate on several registers, of which most decide.
-- @tparam table parts its states on each of them, which tell the same election
-- @tparam table options `ttl`, `retry`, `election` and `doubts` as of `join`; `twice`: a function that returns what to say where
-- two of the registers are one, or nil
-- @treturn table
function Oracle.join_several(parts, options)
  local self = setmetatable({ parts = parts, retry = options.retry, election = options.election, doubts = options.doubts,
    ttl = options.ttl, twice = options.twice, leading = false }, Several)
  for _, part in ipairs(parts) do part.is_core, part.group = false, self end -- the core's deadline is that of most of them
  return self
end

return Oracle
