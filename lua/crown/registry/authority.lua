--- The leader's half of the names, for one term: pure. It orders the writes, sends them to the followers, and answers each
-- once enough members hold it *and* the store has confirmed that this leader still has the leader row.
--
-- A follower goes on where it is: if it has what the term began with, or came that far in this term, it gets what follows.
-- Else it gets all the names, in parts, with the changes that are made meanwhile between them.
--
-- What it needs of its surroundings (`effects`): `now()`; `acting()`, whether the term runs; `send(id, message)`;
-- `waiting(id)`, bytes that are still to go to somebody; `commit(seq, done)`: done(true), done(false) when the row is lost,
-- done(nil) when that is not known; `soon(fn)`; `after(seconds, fn)`; `emit(event, fields)`.
-- @internal crown.registry.authority

local elector = require "crown.registry.elector"

local Authority = {}
Authority.__index = Authority

local COMMIT_RETRY = 0.05 -- seconds until the store is asked again
local BATCH_BYTES = 25000  -- of changes in one frame
local ANSWERS = 50         -- that are given in one turn
local CHANGE_BYTES = 8     -- what a text of a change needs besides itself, about
local ROOM = 1000000       -- bytes that wait for a follower, above which the next part of the names waits too
local ROOM_PAUSE = 0.01    -- seconds until that is looked at again
-- Not even what the term begins with: it may hold more than was ever acknowledged, or other members may, so it has to be held
-- and committed itself before an answer rests on it.
local NOTHING = -1
local ABORTED = "the leader has changed meanwhile"

--- Bytes of changes that are kept for followers who come back.
Authority.LOG_BYTES = 1000000

--- Begins a term.
-- @tparam table options `epoch`, `replica`, `replicas` (members that must hold a write, the leader among them),
-- `replicate_timeout` seconds, `strict`, `most` names
-- @tparam table members the member map
-- @tparam table effects
-- @treturn Authority its `size` is how many members there are
function Authority.new(options, members, effects)
  local self = setmetatable({ epoch = options.epoch, replica = options.replica, options = options,
    effects = effects, streams = {}, pending = {}, first = 1, last = 0, seq = 0, sent = 0, batch = {}, bytes = 0,
    log = {}, log_first = 1, log_bytes = 0, base = options.replica.at, replicated = NOTHING, committed = NOTHING }, Authority)
  options.replica.epoch = options.epoch
  options.replica.at = { epoch = options.epoch, seq = 0 }
  self:set_members(members)
  return self
end

--- How many members this one can send to, itself among them: a link may outlive a membership.
-- @treturn number
function Authority:reached()
  local total = 1
  for id in pairs(self.streams) do
    if self.members[id] then total = total + 1 end
  end
  return total
end

local function send_changes(self, to, first, changes)
  local message = { kind = "append", epoch = self.epoch, first = first, changes = changes }
  for id in pairs(to) do self.effects.send(id, message) end
end

local function flush(self)
  if #self.batch == 0 then return end
  local to = {}
  for id, stream in pairs(self.streams) do to[id] = stream.begun end
  local first, batch = self.sent + 1, self.batch
  self.sent, self.batch, self.bytes = self.seq, {}, 0
  send_changes(self, to, first, batch)
end

local function bytes_of(what)
  local bytes = 0
  for i = 2, #what do bytes = bytes + #what[i] + CHANGE_BYTES end
  return bytes
end

local function keep(self, what, bytes)
  self.log[self.seq] = what
  self.log_bytes = self.log_bytes + bytes
  while self.log_bytes > Authority.LOG_BYTES do
    self.log_bytes = self.log_bytes - bytes_of(self.log[self.log_first])
    self.log[self.log_first] = nil
    self.log_first = self.log_first + 1
  end
end

local function change(self, what)
  self.replica:apply(what)
  self.seq = self.seq + 1
  self.replica.at.seq = self.seq
  local bytes = bytes_of(what)
  keep(self, what, bytes)
  self.batch[#self.batch + 1] = what
  self.bytes = self.bytes + bytes
  if self.bytes > BATCH_BYTES then
    flush(self)
  elseif #self.batch == 1 then
    self.effects.soon(function()
      if not self.over then flush(self) end
    end)
  end
end

-- Answers what is committed, in the order in which it was taken.
local function settle(self)
  if self.settling then return end
  local left = ANSWERS
  while self.first <= self.last and self.pending[self.first].seq <= self.committed do
    if left == 0 then
      self.settling = true
      return self.effects.after(0, function()
        self.settling = false
        settle(self)
      end)
    end
    local one = self.pending[self.first]
    self.pending[self.first] = nil
    self.first, left = self.first + 1, left - 1
    one.answer(one.result)
  end
end

local commit

local function answered(self, seq, fine)
  self.committing = nil
  if self.over then return end
  if fine then
    self.committed = seq
    settle(self)
    return commit(self)
  elseif fine == false then
    return self:close(ABORTED)
  end
  self.effects.after(COMMIT_RETRY, function() commit(self) end)
end

-- One question to the store at a time; writes that come meanwhile share the next one.
commit = function(self)
  if self.over or self.committing or self.replicated <= self.committed then return end
  local seq = self.replicated
  self.committing = seq
  self.effects.commit(seq, function(fine) answered(self, seq, fine) end)
end

-- How many members must hold a write, of those there are.
local function needed(self)
  if self.options.strict then return self.options.replicas end
  return math.min(self.options.replicas, math.max(1, self.size))
end

local function degrade(self, why)
  if not self.degraded then self.effects.emit("oracle.registry.degraded", { reason = why, epoch = self.epoch }) end
  self.degraded = true
end

local function how_few(self)
  return ("the registry has %d member%s"):format(self.size, self.size == 1 and "" or "s")
end

local function advance(self)
  local held = {}
  for id, stream in pairs(self.streams) do
    if stream.held and self.members[id] then held[#held + 1] = stream.held end
  end
  table.sort(held, function(a, b) return a > b end)
  local others = needed(self) - 1
  local came = others == 0 and self.seq or held[others] or NOTHING
  if others > 0 and held[others] then self.degraded = false end
  if came > self.replicated then
    if others + 1 < self.options.replicas and self.first <= self.last then degrade(self, how_few(self)) end
    self.replicated = came
    commit(self)
  end
end

--- Whether the leader reaches less than half of the members.
-- @treturn boolean
function Authority:is_minority()
  return self:reached() * 2 < self.size
end

-- A write that too few members hold in time: acknowledged all the same, unless that is not wanted.
local function overdue(self)
  local oldest = self.pending[self.first]
  if not oldest or oldest.seq <= self.replicated or self:is_minority() then return end
  if self.effects.now() - oldest.at < self.options.replicate_timeout then return end
  local why = ("fewer than %d members hold what was written"):format(needed(self))
  if self.options.strict then
    while self.first <= self.last and self.pending[self.first].at <= oldest.at do
      local one = self.pending[self.first]
      self.pending[self.first], self.first = nil, self.first + 1
      one.answer { error = why .. ": it may still come to count", code = "uncertain" }
    end
    return
  end
  degrade(self, why)
  self.replicated = self.seq
  commit(self)
end

local function watch(self)
  if self.watching or self.first > self.last then return end
  self.watching = true
  self.effects.after(self.options.replicate_timeout / 2, function()
    self.watching = false
    if self.over then return end
    overdue(self)
    watch(self)
  end)
end

-- Nobody is answered, not even with a no, before all that the answer rests on is committed.
local function promise(self, answer, result)
  self.last = self.last + 1
  self.pending[self.last] = { seq = self.seq, answer = answer, result = result, at = self.effects.now() }
  if self.committed >= self.seq then return settle(self) end
  if needed(self) == 1 then advance(self) end -- nobody else will say that he holds it
  watch(self)
end

local function lives(self, id, token)
  local owner = self.members[id]
  return owner ~= nil and owner.token == token
end

local write = {}

function write.register(self, from, op)
  local value, owner, token = self.replica:find(op.name)
  local mine = owner == from and token == op.token
  if value and not mine and lives(self, owner, token) then return { ok = false, owner = owner, value = value } end
  if not value and self.replica:count() >= self.options.most then
    return { error = ("the registry is full: %d names"):format(self.replica:count()), code = "full" }
  end
  if not mine or value ~= op.value then
    change(self, { "+", op.name, from, op.token, op.value })
  end
  return { ok = true }
end

function write.unregister(self, from, op)
  local value, owner, token = self.replica:find(op.name)
  if value and owner ~= from and lives(self, owner, token) then return { ok = false, owner = owner, value = value } end
  if value then change(self, { "-", op.name }) end
  return { ok = true }
end

local function refusal(self, from, op)
  if self.over or self.closing or not self.effects.acting() then return "the leader is not acting" end
  local member = self.members[from]
  if not member or member.token ~= op.token then return "the leader does not know this member yet" end
  if self:is_minority() then
    return ("the leader reaches %d of %d members only"):format(self:reached(), self.size)
  end
end

--- Takes a write.
-- @string from the member that asks
-- @tparam table op `{ what = "register" | "unregister", name =, token =, value = }`
-- @tparam function answer called with `{ ok = true }`; `{ ok = false, owner =, value = }`, who has the name;
-- `{ retry = why }`; or `{ error =, code = }`
function Authority:write(from, op, answer)
  local fn = write[op.what]
  local why = not fn and "no such write" or refusal(self, from, op)
  if why then return answer { retry = why } end
  if self.size < self.options.replicas then
    if self.options.strict then return answer { retry = how_few(self) } end
    degrade(self, how_few(self))
  end
  promise(self, answer, fn(self, from, op))
end

-- The next part of the names, for all who walk together; it waits for the quickest of them.
local function step(self, group)
  if self.over then return end
  local least = math.huge
  for id, stream in pairs(group.streams) do
    if self.streams[id] == stream then
      least = math.min(least, self.effects.waiting(id))
    else
      group.streams[id] = nil
    end
  end
  if not next(group.streams) then return end
  if least > ROOM then return self.effects.after(ROOM_PAUSE, function() step(self, group) end) end
  flush(self)
  -- From the first part on they get what is changed, so the walk begins with that.
  group.walk = group.walk or self.replica:walk()
  local part = self.replica:part(group.walk, { kind = "snapshot", epoch = self.epoch, seq = self.seq })
  for id, stream in pairs(group.streams) do
    stream.begun = true
    self.effects.send(id, part)
  end
  if not part.last then self.effects.after(0, function() step(self, group) end) end
end

-- Who wants all the names in the same turn walks together: a part is made once.
local function send_all(self, id)
  local stream = {}
  self.streams[id] = stream
  if self.gathering then
    self.gathering.streams[id] = stream
    return
  end
  local group = { streams = { [id] = stream } }
  self.gathering = group
  self.effects.soon(function()
    self.gathering = nil
    step(self, group)
  end)
end

-- What a follower that came up to a number lacks; where that is not kept any more, all.
local function send_rest(self, id, stream, seq)
  if seq + 1 < self.log_first then return send_all(self, id) end
  flush(self)
  stream.begun = true
  local first, changes, bytes = seq + 1, {}, 0
  for i = seq + 1, self.seq do
    changes[#changes + 1] = self.log[i]
    bytes = bytes + bytes_of(self.log[i])
    if bytes > BATCH_BYTES or i == self.seq then
      send_changes(self, { [id] = true }, first, changes)
      first, changes, bytes = i + 1, {}, 0
    end
  end
end

--- A follower can be sent to.
-- @string id
function Authority:linked(id)
  self.streams[id] = { asked = true }
  self.effects.send(id, { kind = "resume", epoch = self.epoch, from = self.base })
end

--- A follower misses something: it gets all the names, once.
-- @string id
-- @tparam boolean part whether it misses a part of the names; if not, those may be on their way already
function Authority:gap(id, part)
  local stream = self.streams[id]
  if stream and (part or stream.held) then send_all(self, id) end
end

--- A follower cannot be sent to any more.
-- @string id
function Authority:unlinked(id)
  self.streams[id] = nil
end

--- A follower has all up to a number.
-- @string id
-- @number epoch
-- @number seq
function Authority:held(id, epoch, seq)
  local stream = self.streams[id]
  if not stream or epoch ~= self.epoch then return end
  if stream.asked then
    stream.asked = nil
    send_rest(self, id, stream, seq)
  end
  stream = self.streams[id]
  stream.held = math.max(stream.held or 0, seq)
  advance(self)
end

--- Takes a new member map; names whose owners are gone go too.
-- @tparam table members
function Authority:set_members(members)
  self.members, self.size = members, elector.size(members)
  for _, known in ipairs(self.replica.names:all_owners()) do
    if not lives(self, known.owner, known.token) then change(self, { "x", known.owner, known.token }) end
  end
  advance(self)
end

--- Takes no more writes, and says when all that were taken are answered.
-- @tparam function done
function Authority:drain(done)
  self.closing = true
  local function look()
    if self.over or self.first > self.last then return done() end
    self.effects.after(0.005, look)
  end
  look()
end

--- Ends the term: what was not answered is to be asked anew.
-- @string why
function Authority:close(why)
  if self.over then return end
  self.over = true
  for i = self.first, self.last do
    self.pending[i].answer { retry = why or ABORTED }
  end
  self.pending, self.first, self.last = {}, 1, 0
end

return Authority
