--- The registry's row and queue as the virtual store of the simulation: each operation is atomic, as its statement is in
-- Postgres.
local Store = {}
Store.__index = Store

local function copy(value)
  if type(value) ~= "table" then return value end
  local made = {}
  for key, one in pairs(value) do made[key] = copy(one) end
  return made
end

function Store.new(now)
  local self = setmetatable({ now = now, queue = {}, trusted_at = 0 }, Store)
  self:lose_row()
  return self
end

--- Takes the row away, and leaves the queue: it is as before anybody joined.
function Store:lose_row()
  self.there = false
  self.row = { version = 0, epoch = 0, assumed = 0, members = {}, locked_until = 0, committed_epoch = 0, committed = 0,
    tail = 0, evicted = false, epoch_floor = 0 }
end

--- What a replica has at some time: for `forget`.
function Store:copy()
  return { row = copy(self.row), queue = copy(self.queue), there = self.there }
end

--- Goes on with what a replica had, and has it sat out, as crown.postgres.tables does with another place.
-- @tparam table old
-- @number ttl the longest
function Store:forget(old, ttl)
  self.row, self.queue, self.there = copy(old.row), copy(old.queue), old.there
  self.trusted_at = math.max(self.trusted_at, self.now() + ttl)
  self.row.epoch_floor = math.max(self.row.epoch_floor, self.row.epoch) + 1000000
end

function Store:view()
  local view = copy(self.row)
  view.now = self.now()
  view.locked = math.max(0, self.row.locked_until - view.now)
  view.distrust = self.trusted_at > view.now and self.trusted_at - view.now or nil
  view.head = copy(self.queue[1])
  return view
end

local ops = {}

function ops.read(self)
  return self:view()
end

function ops.enqueue(self, args)
  for _, message in ipairs(args.messages) do
    local last = self.queue[#self.queue]
    self.there = true
    self.row.tail = math.max(self.row.tail, last and last.number or 0) + 1
    self.queue[#self.queue + 1] = { number = self.row.tail, message = copy(message) }
  end
  return self.row.tail, "notify"
end

function ops.decide(self, args)
  local row = self.row
  if not self.there or row.version ~= args.version or row.locked_until > self.now() then return false end
  if self.queue[1] and self.queue[1].number == args.number then table.remove(self.queue, 1) end
  row.version = row.version + 1
  row.members, row.leader, row.leader_token = copy(args.state.members), args.state.leader, args.state.leader_token
  row.old_leader, row.epoch = args.state.old_leader, args.state.epoch
  if args.changed then
    row.locked_until = self.now() + args.lock
    row.evicted = false
  end
  return true, "notify"
end

function ops.heartbeat(self, args)
  local member = self.row.members[args.id]
  if member and member.token == args.token then
    member.expires_at = self.now() + args.ttl
    self.row.version = self.row.version + 1
  end
  return self:view()
end

local function is_leader(row, args)
  return row.leader == args.id and row.leader_token == args.token and row.epoch == args.epoch
end

function ops.assume(self, args)
  if not is_leader(self.row, args) then return self:view() end
  self.row.version, self.row.assumed, self.row.locked_until = self.row.version + 1, self.row.epoch, 0
  return self:view(), "notify"
end

function ops.commit(self, args)
  if not is_leader(self.row, args) then return false end
  local before = self.row.committed_epoch == args.epoch and self.row.committed or 0
  self.row.committed_epoch, self.row.committed = args.epoch, math.max(before, args.seq)
  return true
end

--- Performs an operation.
-- @return its result, and "notify" when the others hear of it
function Store:perform(op, args)
  return ops[op](self, args)
end

return Store
