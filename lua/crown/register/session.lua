--- A runtime's session in one store: the record that this runtime renews for all of its elections there that have the same TTL.
-- What the session does with the elections is in crown.register.terms.
--
-- `env` is all that it knows of the world: `now()` in seconds, on a clock of our own that never jumps; `time()`, the time of day
-- in ms; `wall_offset()`, by how many seconds that is ahead of our clock; `nonce()`, a text that never comes twice; `random()`;
-- `promise()`, `detach(fn)`, `sleep(seconds)` and `atomic(fn, …)` as crown.core has them; `renewals`, as crown.core.renewals:
-- what refreshes the terms by a renewal, without a question of their own.
-- A store has `look(names)` → for each name `{ text = or false, version =, memory = }`, perhaps with `age` in seconds and `time`,
-- of day in ms, both by the store's clock; and `swap(writes)`, each
-- `{ name =, version = or false, text =, memory =, frees = whether others may claim it now, quiet = whether nobody needs to hear
-- of it }` → for each the new version, false where another version stands or another memory answered, or nil where nobody knows.
-- Both return nil, message, code where nobody knows anything.
-- Optional, where the names of a store do not all stand or fall together, as in a cluster: `part_of(name)`, a text without "@",
-- which says to what part an election's name belongs. It asks nobody. A runtime has a session for each part that its elections
-- need, named `@TOKEN-TTL@PART`; the driver keeps that record where it keeps the part. Nothing else is asked of where records
-- are: each answer names its own memory.
-- Optional: `deletes`, true of one whose swap deletes a record for a write whose `text` is false.
-- Optional: `hear(fn)`: from then on fn(name) is called when a record has changed, and fn(nil) when something may have been
-- missed. Of a write that `frees` a record, fn(name, `{ text =, version = }`) says what stands there now, as a look would answer:
-- then a follower claims without a look. It may come late, twice, or never: the claim is a swap.
-- Optional: `same(names, versions, memory)` → for each name whether that version stands there, in that memory; of a store whose
-- versions never come again. What it does not confirm is looked at.
-- Optional: `tells_all`, true of one that loses nothing, and whose `hear` misses no change: then no term is looked at unasked.
-- Optional: `marks`, true of a store in which nothing vanishes unseen: a record that is deleted leaves a version without a text,
-- which a write has to name, until a record is written there; and when all is lost the memory is another one. Without that each
-- name that is missing is doubted.
-- Optional: `whole`, true of one whose answers all name one memory, of a session as of its elections.
-- Optional: `will(write)`: what is to be written when this runtime is dead and no process of its trees exists any more. It takes
-- the place of what was said before of that name.
-- @internal crown.register.session

local cleaning = require "crown.register.cleaning"
local joined = require "crown.register.joined"
local limits = require "crown.register.limits"
local place = require "crown.register.place"
local record = require "crown.register.record"
local rule = require "crown.register.rule"
local Seen = require "crown.register.seen"
local terms = require "crown.register.terms"

local Session = {}
Session.__index = Session

local MANY = 256
local STEPS_MOST = 4 -- in one renewal: looks and writes that find the record changed
local EARLY = 0.1 -- of the delay: the first refresh of many comes so much sooner, the renewal with it, and the others meanwhile
local SHARED_MOST = 0.25 -- of the delay: a renewal that is older answers no refresh
local SHORT = 0.5 -- of the TTL: a session that was renewed so long ago is renewed before a claim
local CLOCK_SET = 0.05 -- seconds: where the time of day has jumped so far, the host may have stood still, unseen by our clock

--- Makes one.
-- @tparam table env see above
-- @tparam table options `token`, `node`, `ttl`, `delay` (from one renewal to the next), `patience` (for all questions of one
-- renewal), `floor` (amnesia_wait), all in seconds; `remembers`: the store loses nothing, ever; `part` of the store, if any;
-- `number` among this runtime's sessions with that TTL (1);
-- `many`: elections that end together are given back by one write (256); `lingers`: seconds after which the record of a session
-- that has died is deleted (3600)
-- @treturn Session
function Session.new(env, options)
  local part = options.part and "@" .. options.part or ""
  local name = record.session_name(options.token, options.ttl, options.number) .. part
  local seen = Seen.new(env.now)
  local self = setmetatable({ env = env, name = name, node = options.node, ttl = options.ttl,
    delay = options.delay, patience = options.patience, floor = options.floor, remembers = options.remembers,
    seen = seen, place = seen:of(record.store_name(options.part)), at = 0, number = 0, sent = -math.huge,
    deadline = -math.huge, tries = {}, terms = {}, led = 0, most = 0, unsettled = {}, undead = {}, ends = {},
    first_end = math.huge, first_look = math.huge,
    obeying = setmetatable({}, { __mode = "k" }), dead = {}, lingers = options.lingers or cleaning.LINGERS,
    many = options.many or MANY,
    own = { session = name, node = options.node, ttl = options.ttl, floor = options.floor,
      remembers = options.remembers } }, Session)
  self.renewals = env.renewals.new { ttl = self.ttl, delay = self.delay, fresh = self.delay * SHARED_MOST,
    apart = self.delay * EARLY, patience = self.patience, clock_set = CLOCK_SET,
    renew = function() env.detach(self.renew_for_terms, self) end }
  return self
end

--- Whether the session stands and may be acted on.
-- @treturn boolean
function Session:is_live()
  return self.stands ~= nil and self.env.now() < self.deadline
end

--- Whether one of its candidates has a term.
-- @tparam Session _
-- @tparam table member
-- @treturn boolean
function Session.leads(_, member)
  local term = member.slot.term
  return term ~= nil and term.member == member
end

-- What of the session the rule has to know, until the next call: thousands of claims come together, and a table for each would
-- be thrown away at once.
function Session:me(trusts, member)
  local me = self.own
  me.at, me.time, me.longest, me.trusts = self.at, self.env.time(), math.max(self.ttl, self.seen.longest), trusts
  me.least, me.job, me.now = member and member.least, member and member.job, self.env.now()
  me.rank, me.retry = member and member.rank, member and member.retry
  me.marks, me.whole, me.settled = self.store.marks, self.store.whole, self.settled
  return me
end

-- --- renewals

-- S3: nothing revives a session that is over, or whose record somebody else has written or lost. Its terms are over, and a new
-- life begins.
local function end_life(self, why, is_gone)
  for _, slot in pairs(self.terms) do terms.lose(self, slot, { error = why, amnesia = is_gone }) end
  self.stands, self.begun, self.sent, self.deadline, self.tries = nil, false, -math.huge, -math.huge, {}
  self.env.renewals.forget(self.renewals)
  self.most = self.led
end

--- Ends the life of a session of which every tree has gone. A renewal that is under way revives nothing.
-- @treturn table what stands of it; or nil: it leads, or its trees may live
function Session:leave()
  local stands = self.stands
  if not stands or next(self.terms) or terms.undead(self) then return nil end
  end_life(self)
  self.run = nil
  return stands
end

-- S5: over the version that stands, so that it takes nothing from a later life.
local function leave_will(self)
  local store, stands = self.store, self.stands
  if not store.will then return end
  store:will { name = self.name, version = stands.version, memory = stands.memory,
    text = record.text(rule.over(stands.record), self.env.nonce()) }
end

-- S3: all terms count from before the renewal was sent. An answer after the old deadline comes too late.
local function adopt(self, try, version, memory)
  if self.stands and self.env.now() >= self.deadline then
    end_life(self, "the session was renewed too late")
    return false
  end
  self.moved = self.stands ~= nil and self.stands.memory ~= memory
  if not self.stands then self.first = try.sent end
  if self.moved then limits.set(self) end
  self.stands = { version = version, memory = memory, record = try.record }
  self.sent, self.number, self.tries = math.max(self.sent, try.sent), self.number + 1, {}
  self.offset = try.offset
  self.deadline = math.max(self.deadline, try.sent + self.ttl - rule.margin(self.ttl))
  leave_will(self)
  return true
end

local function written(self, run, life, try, version, memory)
  if self.run ~= run or self.at ~= life then return nil, "the renewal was given up" end
  if version and not adopt(self, try, version, memory) then return nil, "the session was renewed too late", "store" end
  return version
end

-- S3: a renewal without an answer is remembered: a look that finds it counts from its sending.
local function write(self, run, base, version, memory)
  local one, env, life = rule.renewal(self, base, memory), self.env, self.at
  local text = record.text(one, env.nonce())
  local try = { sent = env.now(), record = one, offset = env.wall_offset() }
  self.tries[one.nonce] = try
  local results, problem, code = self.store:swap { { name = self.name, version = version, text = text, memory = memory } }
  if not results then return nil, problem, code end
  if results[1] == nil then return nil, "nobody knows whether the session was renewed" end
  return env.atomic(written, self, run, life, try, results[1], memory)
end

-- S3: the number of a life never comes again, and the trees of the last one have gone or passed their deadlines before.
local function begin_life(self, answer, found, try)
  local left = terms.undead(self)
  if left then
    self.wait = left
    return nil, "waiting for this runtime's terms of its last session to end", "store"
  end
  if not self.begun then
    self.at = math.max(math.max(self.at, found and found.at or 0) + 1, self.env.time())
    self.begun, self.tries = true, {}
  elseif try and self.env.now() < try.sent + self.ttl - rule.margin(self.ttl) then
    return adopt(self, try, answer.version, answer.memory) and "renewed" or "again"
  end
  return "write", found
end

-- S3, S9: our last write, also in another memory, is written over there; a later one without an answer counts.
local function judge(self, run, answer)
  if self.run ~= run then return nil, "the renewal was given up" end
  local found, problem = record.read(answer, self.name)
  if found == nil then return nil, problem, "store" end
  local try = found and self.tries[found.nonce]
  if not self.stands then return begin_life(self, answer, found, try) end
  if self.env.now() >= self.deadline then
    end_life(self, "the session was not renewed in time")
    return "again"
  end
  if found and answer.version == self.stands.version and found.nonce == self.stands.record.nonce then return "write", found end
  if try and found.serial > self.stands.record.serial then
    return adopt(self, try, answer.version, answer.memory) and "renewed" or "again"
  end
  if found and found.serial < self.stands.record.serial then
    end_life(self, "the store has gone back: its record of this session is older than the last one", true)
  elseif found then
    end_life(self, "another runtime writes the record of this session")
  else
    end_life(self, "the store has no record of this session any more", true)
  end
  return "again"
end

local function look_and_write(self, run)
  local answers, problem, code = self.store:look { self.name }
  if not answers then return nil, problem, code end
  local answer = answers[self.name]
  local what, base, kind = self.env.atomic(judge, self, run, answer)
  if not what then return nil, base, kind end
  if what == "renewed" then return true end
  if what == "again" then return false end
  return write(self, run, base, answer.version, answer.memory)
end

local function renew(self, run)
  for _ = 1, STEPS_MOST do
    if self.stands and self.env.now() >= self.deadline then
      self.env.atomic(end_life, self, "the session was not renewed in time")
    end
    local stands, done, problem, code = self.stands, false, nil, nil
    if stands then done, problem, code = write(self, run, stands.record, stands.version, stands.memory) end
    if done == false then done, problem, code = look_and_write(self, run) end
    if done == nil then return nil, problem, code end
    if done then return true end
  end
  return nil, "the record of the session changes faster than it can be written", "store"
end

-- Whether the renewal counts for all terms alike; else each is told for itself what it may have (S6).
local function share(self)
  if self:is_live() and terms.are_seen(self, self.sent + self.ttl - rule.patrol_time(self.ttl)) then
    self.env.renewals.count(self.renewals, self.sent, self.offset, self.first)
  else
    self.env.renewals.forget(self.renewals)
  end
end

local function round(self, run)
  terms.end_overdue(self)
  local fine, problem, code = renew(self, run)
  if not fine then return nil, problem, code end
  self.env.atomic(share, self) -- what the patrol finds later takes the term out of it
  terms.patrol(self, run)
  if self.moved and self.store.marks then self.tends = true end
  if self.tends and place.settle(self) then self.tends = false end -- so that newcomers need not wait
  cleaning.sweep(self)
  return true
end

--- Renews the session now, or waits for the renewal that is under way.
-- @treturn boolean true; or nil, message, code
function Session:renew()
  return joined(self.env, self, self.patience, function(run) return round(self, run) end)
end

--- Renews it for terms whose refreshes wait for that. A renewal under way may be looking at terms for long by then.
function Session:renew_for_terms()
  local fine, problem, code = self:renew()
  if fine and self:is_due() then fine, problem, code = self:renew() end
  if fine then self.env.atomic(share, self) else self.env.renewals.fail(self.renewals, problem, code) end
end

local function is_set(self)
  return math.abs(self.env.wall_offset() - self.offset) > CLOCK_SET
end

--- Whether a renewal counts for a term that was granted by an earlier one, and nothing is to be asked.
-- @number number of the renewal by which the term was granted
-- @treturn boolean
function Session:is_newer(number)
  return self.number > number and self:is_live() and self.env.now() - self.sent <= self.delay * SHARED_MOST and not is_set(self)
end

--- Whether it is time for the next renewal.
-- @treturn boolean
function Session:is_due()
  return not self:is_live() or self.env.now() - self.sent >= self.delay * (1 - EARLY)
end

--- Whether a claim has to renew it first: what is left would be a short term.
-- @treturn boolean
function Session:is_short()
  return self:is_due() and (not self:is_live() or self.env.now() - self.sent >= self.ttl * SHORT)
end

--- Seconds until the next refresh of a term. They come in rounds that begin with the session's life: all terms of one a little
-- apart, whenever each was granted, and the first one renews.
-- @number began when this grant was asked for
-- @treturn number from then on: no later than a delay after the last renewal, or soon
function Session:next_refresh(began)
  local apart, rounds = self.delay * EARLY, self.delay * (1 - EARLY)
  local next_round = math.ceil((began + apart - self.first) / rounds) * rounds + self.first
  local most = self.delay - math.max(0, began - self.sent)
  return math.min(next_round + apart * self.env.random() - began, math.max(apart, most))
end

--- Sees to what the session still owes the store, by whichever store answers: an election's own may have ended with it.
-- @tparam table store the one that an election of ours uses now
function Session:use(store)
  self.store = store
end

return Session
