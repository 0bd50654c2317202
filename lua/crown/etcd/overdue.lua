--- Ends leases whose holders' time is over: etcd itself looks for them only twice a second.
--
-- Nobody acts on a lease of ours for the last second that it lasts (crown.etcd.keys, SPARE), and who has not kept it in the time
-- before never acts on it again (crown.etcd.session, keep). So where etcd says that less than a second is left, nobody acts on
-- it, now or later, and it may be revoked, however late that comes. When that is to be asked is guessed, by clocks of our own
-- (crown.etcd.ending): asked too early, etcd says that there is more; asked too late, the next leader begins later.
--
-- A member that was deposed, and does not know it, says what it knows: others may have kept the lease since. So a majority has
-- to answer before and after that, in one term. The member that is asked had heard of that term then: see docs/decisions.md.
-- @internal crown.etcd.overdue

local core = require "crown.core"
local Ending = require "crown.etcd.ending"
local keys = require "crown.etcd.keys"

local Overdue = {}
Overdue.__index = Overdue

local SOON = 0.003 -- seconds until what was told in another term is asked again,
local RETRY = 0.25 -- seconds until what had no answer, or what changed nothing

-- Whether a majority answered before and after what a member said, in one term, and the member had heard of that term.
local function is_believed(before, said, after)
  return before ~= nil and after ~= nil and before.raft_term == after.raft_term and before.cluster_id == after.cluster_id
    and said.member_id == before.member_id and said.cluster_id == before.cluster_id
end

-- @tparam table known `ending` of crown.etcd.ending; `before`: a majority's last answer
-- @return when to ask again
local function look(self, lease, known)
  local sent, before, ending = core.now(), known.before, known.ending
  local answer = self.client:ask("/v3/lease/timetolive", { ID = lease })
  local granted = answer and answer.ID == lease and tonumber(answer.grantedTTL)
  if not granted then return core.now() + RETRY end -- or it is gone
  local left = tonumber(answer.TTL or 0)
  if left >= keys.SPARE then
    ending:told(sent, core.now(), left, granted)
    if not is_believed(before, answer.header, answer.header) then known.before = self.majority() end -- before it is needed
    return ending:next()
  end
  known.before = self.majority()
  if known.before and not is_believed(before, answer.header, known.before) then return core.now() + SOON end
  if known.before then self.client:ask("/v3/lease/revoke", { ID = lease }) end
  return core.now() + RETRY
end

local function is_held(self, lease)
  if next(self.holders[lease]) then return true end
  self.holders[lease] = nil
  return false
end

local function run(self, lease)
  local known = { before = self.majority(), ending = Ending.new() }
  while core.atomic(is_held, self, lease) do
    local at = look(self, lease, known)
    core.sleep(math.max(0, at - core.now()))
  end
end

--- Makes one; nothing is asked yet.
-- @tparam table options `client`; `majority()`: asks what a majority has to answer → its header, or nil
-- @treturn Overdue
function Overdue.new(options)
  return setmetatable({ client = options.client, majority = options.majority, holders = {}, held = {} }, Overdue)
end

local function add(self, lease, holder)
  local first = not self.holders[lease]
  self.holders[lease] = self.holders[lease] or {}
  self.holders[lease][holder], self.held[holder] = true, lease
  if first then core.detach(run, self, lease) end
end

--- Ends a lease as soon as its time is over, for as long as somebody waits for it.
-- @string lease one that lasts for a SPARE longer than it is acted on
-- @tparam table holder waits for no other one
function Overdue:hold(lease, holder)
  core.atomic(add, self, lease, holder)
end

--- Waits for it no longer.
-- @tparam table holder
function Overdue:let_go(holder)
  local lease = self.held[holder]
  self.held[holder] = nil
  if lease and self.holders[lease] then self.holders[lease][holder] = nil end
end

return Overdue
