--- The leader's half of the names, for one term: pure. It orders the writes, sends them to the followers, and answers each
-- once enough members hold it *and* the store has confirmed that this leader still has the leader row.
--
-- What it needs of its surroundings (`effects`): `now()`; `acting()`, whether the term runs; `send(id, message)`;
-- `commit(seq, done)`: done(true), done(false) when the row is lost, done(nil) when that is not known; `soon(fn)`;
-- `after(seconds, fn)`; `emit(event, fields)`.
-- @module crown.registry.authority

local Authority = {}
Authority.__index = Authority

local COMMIT_RETRY = 0.05 -- seconds until the store is asked again
local BATCH_BYTES = 200000 -- of changes in one frame
-- Not even what the term begins with: it may hold more than was ever acknowledged, or other members may, so it has to be held
-- and committed itself before an answer rests on it.
local NOTHING = -1
local ABORTED = "the leader has changed meanwhile"

--- Begins a term.
-- @tparam table options `epoch`, `replica`, `replicas` (members that must hold a write, the leader among them),
-- `replicate_timeout` seconds, `strict`, `most` names
-- @tparam table members the member map
-- @tparam table effects
-- @treturn Authority
function Authority.new(options, members, effects)
  local self = setmetatable({ epoch = options.epoch, replica = options.replica, options = options,
    effects = effects, streams = {}, pending = {}, first = 1, last = 0, seq = 0, sent = 0, batch = {}, bytes = 0,
    replicated = NOTHING, committed = NOTHING }, Authority)
  options.replica.epoch = options.epoch
  options.replica.at = { epoch = options.epoch, seq = 0 }
  self:set_members(members)
  return self
end

local function count(map)
  local total = 0
  for _ in pairs(map) do total = total + 1 end
  return total
end

local function flush(self)
  if #self.batch == 0 then return end
  local message = { kind = "append", epoch = self.epoch, first = self.sent + 1, changes = self.batch }
  self.sent, self.batch, self.bytes = self.seq, {}, 0
  for id in pairs(self.streams) do self.effects.send(id, message) end
end

local function change(self, what)
  self.replica:apply(what)
  self.seq = self.seq + 1
  self.replica.at.seq = self.seq
  self.batch[#self.batch + 1] = what
  for i = 2, #what do self.bytes = self.bytes + #what[i] + 8 end
  if self.bytes > BATCH_BYTES then
    flush(self)
  elseif #self.batch == 1 then
    self.effects.soon(function()
      if not self.over then flush(self) end
    end)
  end
end

local function settle(self, upto)
  while self.first <= self.last and self.pending[self.first].seq <= upto do
    local one = self.pending[self.first]
    self.pending[self.first] = nil
    self.first = self.first + 1
    one.answer(one.result)
  end
end

local commit

local function answered(self, seq, fine)
  self.committing = nil
  if self.over then return end
  if fine then
    self.committed = seq
    settle(self, seq)
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
  return math.min(self.options.replicas, math.max(1, self.size))
end

local function advance(self)
  local held = {}
  for _, stream in pairs(self.streams) do
    if stream.held then held[#held + 1] = stream.held end
  end
  table.sort(held, function(a, b) return a > b end)
  local others = needed(self) - 1
  local reached = others == 0 and self.seq or held[others] or NOTHING
  if others > 0 and held[others] then self.degraded = false end
  if reached > self.replicated then
    self.replicated = reached
    commit(self)
  end
end

local function is_minority(self)
  return (1 + count(self.streams)) * 2 < self.size
end

local function degrade(self, why)
  if not self.degraded then self.effects.emit("oracle.registry.degraded", { reason = why, epoch = self.epoch }) end
  self.degraded = true
end

-- A write that too few members hold in time: acknowledged all the same, unless that is not wanted.
local function overdue(self)
  local oldest = self.pending[self.first]
  if not oldest or oldest.seq <= self.replicated or is_minority(self) then return end
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
  if self.committed >= self.seq then return settle(self, self.seq) end
  advance(self)
  watch(self)
end

local function lives(self, entry)
  local owner = self.members[entry.owner]
  return owner ~= nil and owner.token == entry.token
end

local write = {}

function write.register(self, from, op)
  local entry = self.replica.names[op.name]
  if entry and lives(self, entry) and (entry.owner ~= from or entry.token ~= op.token) then
    return { ok = false, owner = entry.owner, value = entry.value }
  end
  if not entry and self.replica.count >= self.options.most then
    return { error = ("the registry is full: %d names"):format(self.replica.count), code = "full" }
  end
  if not entry or entry.owner ~= from or entry.token ~= op.token or entry.value ~= op.value then
    change(self, { "+", op.name, from, op.token, op.value })
  end
  return { ok = true }
end

function write.unregister(self, from, op)
  local entry = self.replica.names[op.name]
  if entry and lives(self, entry) and entry.owner ~= from then
    return { ok = false, owner = entry.owner, value = entry.value }
  end
  if entry then change(self, { "-", op.name }) end
  return { ok = true }
end

local function refusal(self, from, op)
  if self.over or self.closing or not self.effects.acting() then return "the leader is not acting" end
  local member = self.members[from]
  if not member or member.token ~= op.token then return "the leader does not know this member yet" end
  if is_minority(self) then
    return ("the leader reaches %d of %d members only"):format(1 + count(self.streams), self.size)
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
    local few = ("the registry has %d member%s"):format(self.size, self.size == 1 and "" or "s")
    if self.options.strict then return answer { retry = few } end
    degrade(self, few)
  end
  promise(self, answer, fn(self, from, op))
end

--- A follower can be sent to: its stream begins with all the names.
-- @string id
function Authority:linked(id)
  flush(self)
  if not self.snapshot or self.snapshot.seq ~= self.seq then
    self.snapshot = { seq = self.seq,
      parts = self.replica:parts { kind = "snapshot", epoch = self.epoch, seq = self.seq } }
  end
  self.streams[id] = {}
  for _, part in ipairs(self.snapshot.parts) do self.effects.send(id, part) end
end

--- A follower misses something: its stream begins anew, once.
-- @string id
-- @tparam boolean part whether it misses a part of the names; if not, those may be on their way already
function Authority:gap(id, part)
  local stream = self.streams[id]
  if stream and (part or stream.held) then self:linked(id) end
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
  self.snapshot = nil -- it is held: the next follower gets a new one
  stream.held = math.max(stream.held or 0, seq)
  advance(self)
end

--- Takes a new member map; names whose owners are gone go too.
-- @tparam table members
function Authority:set_members(members)
  self.members, self.size = members, count(members)
  local gone = {}
  for _, known in pairs(self.replica.owners) do
    if not lives(self, known) then gone[#gone + 1] = known end
  end
  for _, known in ipairs(gone) do change(self, { "x", known.owner, known.token }) end
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
