--- The sessions that hold what elections of this runtime follow: one look for all of them, however many elections wait. An
-- election that follows hears from the store of changes to its own record, and that a session was ended; what nobody tells is
-- that its holder's session has stood for too long. Then, and when that says something else than before, the elections that it
-- holds are told, and claim: this permits nothing by itself.
-- @internal crown.register.watch

local record = require "crown.register.record"
local rule = require "crown.register.rule"

local Watch = {}
Watch.__index = Watch

local Weak = { __mode = "k" } -- an election that has ended is not told
local UNSURE_MOST = 16
local LEAST_PAUSE = 0.001 -- seconds
local FIRST_PAUSE = 0.1 -- seconds: who comes, sees a leader and goes writes no session

--- Makes one.
-- @tparam Session session ours, which is renewed as long as somebody follows: then a claim need not wait for that
-- @number interval in seconds, between two looks at most
-- @treturn Watch
function Watch.new(session, interval)
  return setmetatable({ session = session, interval = interval, holders = {} }, Watch)
end

local function tell_all(self, name)
  local there = self.holders[name]
  self.holders[name] = nil
  for member in pairs(there and there.members or {}) do member:tell() end
end

--- Tells all that a session holds, as its store says that it was ended.
-- @string name of the session
function Watch:hear(name)
  self.session.env.atomic(tell_all, self, name)
end

-- The holder lives. `run --once` waits for that, and is alone in its runtime: where many follow nobody needs to hear.
local function tell_unsure(there)
  local members, count = there.unsure, 0
  there.unsure = nil
  for _ in pairs(members) do count = count + 1 end
  if count > UNSURE_MOST then return end
  for member in pairs(members) do member:tell() end
end

local function is_as_before(there, seen)
  local found, before = seen.record, there.record
  return found and not seen.back and found.at == before.at and found.over == before.over and seen.memory == there.memory
end

local function judge(self, name, answer, sent)
  local there, session = self.holders[name], self.session
  if not there then return end
  local seen = session.seen:note(there.entry, answer, sent)
  if not seen or not is_as_before(there, seen) then return tell_all(self, name) end
  if seen.renewed and there.unsure then tell_unsure(there) end
  local standing = rule.standing_time(seen.record.ttl)
  if seen.stood >= standing then return tell_all(self, name) end
  there.ends = there.entry.since + standing
end

local function watched(self)
  local names = {}
  for name, there in pairs(self.holders) do
    if next(there.members) then names[#names + 1] = name else self.holders[name] = nil end
  end
  self.working = #names > 0
  return names
end

local function pause(self)
  local least, now = self.interval, self.session.env.now()
  for _, there in pairs(self.holders) do least = math.min(least, there.ends - now) end
  return math.max(LEAST_PAUSE, least)
end

local function look(self, names)
  local session = self.session
  local sent = session.env.now()
  local answers = session.store:look(names)
  for _, name in ipairs(names) do
    if answers then session.env.atomic(judge, self, name, answers[name], sent)
    else session.env.atomic(tell_all, self, name) end -- each says why it knows nothing
  end
end

local function work(self)
  local session = self.session
  local env = session.env
  local most = FIRST_PAUSE
  while true do
    env.sleep(math.min(most, env.atomic(pause, self)))
    most = math.huge
    local names = env.atomic(watched, self)
    if #names == 0 then return end
    look(self, names)
    if session:is_due() then session:renew() end
  end
end

local function add(self, member, is_unsure)
  local entry = member.slot.holder
  local there = self.holders[entry.name]
  if not there then
    local found = entry.text and record.parse(entry.text, entry.name)
    if not found then return member:tell() end
    there = { entry = entry, record = found, memory = entry.memory, members = setmetatable({}, Weak),
      ends = entry.since + rule.standing_time(found.ttl) }
    self.holders[entry.name] = there
  end
  there.members[member] = true
  if is_unsure then
    there.unsure = there.unsure or setmetatable({}, Weak)
    there.unsure[member] = true
  end
  if self.working then return end
  self.working = true
  self.session.env.detach(work, self)
end

--- Has an election told when the session that holds it may be over. It claims then, and is to be added again.
-- @tparam table member whose `slot.holder` has just been looked at, and stands; has the method `tell()`
-- @bool is_unsure it does not know yet whether that lives: it is told of a renewal too
function Watch:add(member, is_unsure)
  self.session.env.atomic(add, self, member, is_unsure)
end

return Watch
