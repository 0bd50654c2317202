--- Writes of this member on their way to the leader: pure. Each is handed over again, to whoever leads by then, until it is
-- answered or its time is over. Those of one name go one after the other, so that none overtakes a later one; links keep the
-- order, and what is handed over twice comes before all that follows.
-- @internal crown.registry.writes

local Writes = {}
Writes.__index = Writes

local AGAIN = 0.02 -- seconds until a write that found no leader is tried again

--- Makes the list.
-- @tparam function try `try(request, op)` hands a write to the leader; returns whom it was sent to, or nil and why it cannot
-- be sent now
-- @tparam table effects `now()`, `after(seconds, fn)`, `fresh()`
-- @treturn Writes
function Writes.new(try, effects)
  -- An answer to a process that was here before under the same name must not be taken for one of ours.
  return setmetatable({ try = try, effects = effects, waiting = {}, lines = {}, serial = 0, session = effects.fresh() }, Writes)
end

local function attempt(self, one)
  one.next = math.huge
  local to, why = self.try(one.request, one.op)
  if self.waiting[one.request] ~= one then return end -- answered at once
  one.to = to
  if why then
    one.why = why
    one.next = self.effects.now() + AGAIN
  end
end

-- The next write of the same name gets its turn.
local function finish(self, one, ...)
  self.waiting[one.request] = nil
  local line = self.lines[one.op.name]
  local first = line[1] == one
  for i = 1, #line do
    if line[i] == one then
      table.remove(line, i)
      break
    end
  end
  if #line == 0 then
    self.lines[one.op.name] = nil
  elseif first then
    attempt(self, line[1])
  end
  one.done(...)
end

local function look(self)
  local now, due, late = self.effects.now(), {}, {}
  for _, one in pairs(self.waiting) do
    if now >= one.until_at then
      late[#late + 1] = one
    elseif now >= one.next then
      due[#due + 1] = one
    end
  end
  for _, one in ipairs(late) do
    if self.waiting[one.request] then finish(self, one, nil, one.why or "the leader has not answered", "timeout") end
  end
  for _, one in ipairs(due) do
    if self.waiting[one.request] then attempt(self, one) end
  end
end

local function watch(self)
  if self.watching or not next(self.waiting) then return end
  self.watching = true
  self.effects.after(AGAIN, function()
    self.watching = false
    look(self)
    watch(self)
  end)
end

--- Adds a write.
-- @tparam table op for crown.registry.authority
-- @number timeout seconds
-- @tparam function done called with true; false and `{ owner =, value = }`; or nil, message, code
function Writes:add(op, timeout, done)
  self.serial = self.serial + 1
  local one = { op = op, done = done, until_at = self.effects.now() + timeout, next = math.huge,
    request = ("%s:%d"):format(self.session, self.serial) }
  self.waiting[one.request] = one
  local line = self.lines[op.name] or {}
  self.lines[op.name] = line
  line[#line + 1] = one
  if #line == 1 then attempt(self, one) end
  watch(self)
end

--- Gives all that wait other numbers: this member has joined anew, and an answer to what it asked before is one about the past.
function Writes:renew()
  local waiting = {}
  self.session = self.effects.fresh()
  for _, one in pairs(self.waiting) do
    self.serial = self.serial + 1
    one.request = ("%s:%d"):format(self.session, self.serial)
    waiting[one.request] = one
  end
  self.waiting = waiting
end

--- Whether writes of a name are on their way.
-- @string name
-- @treturn boolean
function Writes:is_busy(name)
  return self.lines[name] ~= nil
end

--- Takes an answer.
-- @string request
-- @tparam table result
function Writes:answered(request, result)
  local one = self.waiting[request]
  if not one then return end
  if result.retry then
    one.why = tostring(result.retry)
    one.next = self.effects.now() + AGAIN
  elseif result.error then
    finish(self, one, nil, tostring(result.error), tostring(result.code or "refused"))
  elseif result.ok == true then
    finish(self, one, true)
  else
    finish(self, one, false, result)
  end
end

local function turn(self, one)
  return self.lines[one.op.name][1] == one
end

--- The way to a member is lost, and with it the answers that were to come by it.
-- @string id
function Writes:lost(id)
  for _, one in pairs(self.waiting) do
    if one.to == id and turn(self, one) then one.to, one.next = nil, 0 end
  end
end

--- Tries all that wait again, now: somebody else leads.
function Writes:again()
  for _, one in pairs(self.waiting) do
    if turn(self, one) then one.next = 0 end
  end
end

return Writes
