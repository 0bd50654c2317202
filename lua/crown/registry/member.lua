--- One node's part in a registry: pure, so that the simulation runs it as it is. It joins, processes the queue, notices who is
-- gone, takes over when it is chosen, and keeps its copy of the names.
--
-- `effects`: `now()`; `after(seconds, fn)`, not in this turn of the loop; `soon(fn)`, in this one; `ask(op, args, done)`: a
-- question to the store, of crown.registry.store; `send(id, message)`; `waiting(id)`: bytes that are still to go there;
-- `links(peers)`: whom to have a link to, ids and addresses; `acting()`: whether this node's term runs; `wanting()`: whether
-- its election is taking part; `told(what)`: "assumed", "evict", "changed"; `emit(event, fields)`; `random()`: from 0 to 1;
-- `fresh()`: a new token; `number(last)`: a number higher than any before.
-- @internal crown.registry.member

local Authority = require "crown.registry.authority"
local Changeover = require "crown.registry.changeover"
local duties = require "crown.registry.duties"
local elector = require "crown.registry.elector"
local OwnNames = require "crown.registry.own_names"
local Replica = require "crown.registry.replica"
local stepping_aside = require "crown.registry.stepping_aside"

local Member = {}
Member.__index = Member

--- Seconds after a store that did not answer.
Member.ASK_AGAIN = 0.2

local HEARTBEATS = 3    -- in a TTL
local HEAR_EACH = 0.001 -- seconds, times the number of members: within that time each of them looks at what has changed
local JOIN_AGAIN = 1    -- seconds until a join that had no effect is repeated

--- Makes one; nothing happens before `start`.
-- @tparam table options `registry`, `node`, `runtime` (the candidate's token), `address`, `ttl`, `replicas`,
-- `replicate_timeout`, `snapshot_timeout`, `strict`, `most`, `watchers` of the names
-- @tparam table effects
-- @treturn Member `own` are the names of this node; `trouble` is why the store gave no answer last; `view`, `joined`, `token`,
-- `leaving`, `linked`, `replica` and `authority` tell where it stands
function Member.new(options, effects)
  local self = setmetatable({ options = options, effects = effects, id = elector.member_id(options.node, options.registry),
    replica = Replica.new(options.watchers), linked = {}, dialled_by = {}, number = 0, timer = 0, asked = 0, seen = 0 }, Member)
  self.own = OwnNames.new(self)
  return self
end

--- Whether this member is the leader that the store has chosen.
-- @tparam table view what the store says, or nil
-- @treturn boolean
function Member:is_chosen(view)
  return view ~= nil and self.token ~= nil and view.leader == self.id and view.leader_token == self.token
end

--- Whether the store says that this member leads and has taken the names over.
-- @treturn boolean
function Member:leads()
  return self:is_chosen(self.view) and not elector.changing(self.view)
end

--- The runtime of a member, as far as this one knows.
-- @string id
-- @treturn string or nil
function Member:runtime_of(id)
  local member = self.view and self.view.members[id]
  return member and member.runtime
end

--- Whether this member leads and has not begun to let go.
-- @treturn boolean
function Member:able()
  return self:leads() and self.authority ~= nil and not self.authority.closing
end

local function end_authority(self, why)
  if self.authority then self.authority:close(why) end
  self.authority = nil
end

-- Who is no member dials nobody.
local function set_links(self, view)
  local peers = {}
  for id, member in pairs(self.joined and view.members or {}) do
    if id ~= self.id then peers[id] = member.address end
  end
  self.effects.links(peers)
end

-- Asks for a view. The store takes the questions in their order, but their answers may overtake each other: the one to the
-- later question says more.
local function ask_view(self, op, args, done)
  self.asked = self.asked + 1
  local number = self.asked
  self.effects.ask(op, args, function(view, problem)
    self.trouble = not view and problem or nil
    if view and number < self.seen then
      view = self.view
    elseif view then
      self.seen = number
    end
    done(view, problem)
  end)
end

local function authority_effects(self, epoch)
  local effects = self.effects
  return setmetatable({
    commit = function(seq, done)
      effects.ask("commit", { id = self.id, token = self.token, epoch = epoch, seq = seq }, function(fine, problem)
        if fine == false then self:wake() end
        -- A store that may have forgotten an election confirms to those only whose lease cannot have been given away.
        if fine and self.view.distrust and not effects.acting() then fine = nil end
        done(fine, problem)
      end)
    end,
  }, { __index = effects })
end

local SWEPT = 1000 -- rows that are looked at in a turn

--- Takes what is nobody's any more away, some in each turn.
function Member:tidy()
  if self.tidying or not self.replica:is_untidy() then return end
  self.tidying = true
  self.effects.after(0, function()
    self.tidying = false
    if self.replica:sweep(SWEPT) then self:tidy() end
  end)
end

-- The names are this member's now; the followers get them first, and from the same stream all that is written later.
local function begin(self, view)
  local options = self.options
  if self.changeover then self.changeover:close() end -- the store had taken an earlier word for it
  self.changeover = nil
  self.authority = Authority.new({ epoch = view.epoch, replica = self.replica, replicas = options.replicas,
    replicate_timeout = options.replicate_timeout, strict = options.strict, most = options.most }, view.members,
    authority_effects(self, view.epoch))
  for id in pairs(self.linked) do self.authority:linked(id) end
  self:tidy()
  self.effects.told "assumed"
end

local function end_terms(self, view)
  local held = self:is_chosen(view)
  if self.authority and not (held and view.epoch == self.authority.epoch) then end_authority(self) end
  if self.changeover and not (held and view.epoch == self.changeover.epoch) then
    self.changeover:close()
    self.changeover = nil
  end
end

--- This member's join was refused: told once. It asks again all the same, until the other one is gone.
-- @string why
function Member:refuse(why)
  if self.refused ~= why then self.effects.emit("oracle.error", { error = why, member = self.id }) end
  self.refused = why
end

-- Whether this member is one still, and whether it has become one just now.
local function see_membership(self, view)
  local mine = view.members[self.id]
  local joined = self.token ~= nil and mine ~= nil and mine.token == self.token
  local joins = joined and not self.joined
  if self.joined and not joined and not self.leaving then
    self.token = nil
    self.effects.emit("oracle.registry.thrown_out", { member = self.id })
    self.effects.soon(function() self:ensure() end)
  end
  self.joined = joined
  if joins then self.own.writes:renew() end
  if joined then self.refused = nil end
  local processed = self.queued and self.queued < math.huge and not (view.head and view.head.number <= self.queued)
  if processed and not joined and mine and mine.runtime ~= self.options.runtime then self:refuse(elector.TAKEN) end
  if joined or processed then self.queued = nil end
  return joins
end

--- Takes what the store says.
-- @tparam table view
function Member:see(view)
  local before = self.view
  self.view = view
  local joins = see_membership(self, view)
  self.replica:promise(view.epoch)
  end_terms(self, view)
  set_links(self, view)
  if self.changeover then self.changeover:set_members(view.members) end
  if self.authority then
    self.authority:set_members(view.members)
  elseif self:leads() and self.ready == view.epoch and self.replica.epoch == view.epoch and not self.leaving then
    begin(self, view)
    joins = true
  end
  self:tidy() -- somebody may have compared the last copy since it was taken
  local moved = not before or before.leader ~= view.leader or before.epoch ~= view.epoch or before.assumed ~= view.assumed
  if moved or joins then
    self.own.writes:again()
    self.effects.told "changed"
  end
  if view.evicted and self:leads() then self.effects.told "evict" end
  if joins then self.own:restore() end
end

--- Looks at the store a while later, unless something else leads to a look before.
-- @number seconds
function Member:wake_in(seconds)
  self.timer = self.timer + 1
  local timer = self.timer
  self.effects.after(seconds, function()
    if timer == self.timer then self:wake() end
  end)
end

--- Hears that something has changed in the store: what others change one after the other is looked at once.
function Member:heard()
  if self.hearing then return end
  self.hearing = true
  local members = self.view and elector.size(self.view.members) or 0
  self.effects.after(self.effects.random() * HEAR_EACH * members, function()
    self.hearing = false
    self:wake()
  end)
end

--- Looks at the store, and does what is due. Called when something may have changed there.
function Member:wake()
  if self.over then return end
  if self.reading then
    self.again = true
    return
  end
  self.reading = true
  ask_view(self, "read", {}, function(view)
    self.reading = false
    if self.over then return end
    if not view then return self:wake_in(Member.ASK_AGAIN) end
    self:see(view)
    if self.again then
      self.again = false
      return self:wake()
    end
    duties.act(self, view)
  end)
end

local function assume(self, epoch)
  self.ready = epoch -- the replica holds what this epoch begins with
  ask_view(self, "assume", { id = self.id, token = self.token, epoch = epoch }, function(view)
    if self.over then return end
    self.changeover = nil
    if not view then return self:wake_in(Member.ASK_AGAIN) end
    self:see(view)
    self:wake()
  end)
end

--- Takes the names over for the epoch that the store has given this member.
-- @tparam table view
function Member:change_over(view)
  if self.changeover then return end
  local options = self.options
  self.changeover = Changeover.new({ me = self.id, epoch = view.epoch, replica = self.replica, members = view.members,
    committed = { epoch = view.committed_epoch, seq = view.committed }, from = view.old_leader,
    timeout = options.snapshot_timeout, strict = options.strict }, self.linked, self.effects,
    function() assume(self, view.epoch) end)
end

--- Whether this member gives way in its epoch: it is not to go on leading, nor to lead again.
-- @treturn boolean
function Member:is_unfit()
  return self.unfit ~= nil and self.unfit == self.view.epoch
end

--- Keeps this member's lease.
-- @tparam[opt] function done called with the view; or nil and a message
function Member:heartbeat(done)
  done = done or function() end
  if not self.joined then return done(nil, self.refused or "not a member yet") end
  self.beaten = self.effects.now()
  ask_view(self, "heartbeat", { id = self.id, token = self.token, ttl = self.options.ttl }, function(view, problem)
    if self.over then return done(nil, "over") end
    if view then
      self:see(view)
      if view.head or elector.changing(view) then self:wake() end -- nobody may have told of it
    end
    done(view, problem)
  end)
end

local function join(self)
  self.join_again = self.effects.now() + JOIN_AGAIN
  self.number = self.effects.number(self.number)
  self.token = self.effects.fresh()
  self.queued = math.huge
  self.effects.ask("enqueue", { messages = { { kind = "join", id = self.id, token = self.token, number = self.number,
    runtime = self.options.runtime, address = self.options.address, ttl = self.options.ttl } } }, function(number, problem)
      self.queued, self.trouble = number, not number and problem or nil
      self:wake()
    end)
end

--- Joins under a fresh token, unless it is a member, or its last join is still to be processed.
function Member:ensure()
  if self.over or self.joined or self.leaving or self.queued or self.effects.now() < (self.join_again or 0) then return end
  join(self)
end

local function beat(self)
  if self.over then return end
  local now, pause = self.effects.now(), self.options.ttl / HEARTBEATS
  local late = now - (self.due or now)
  self.due = now + pause
  self.effects.after(pause, function() beat(self) end)
  if self.joined and not self.leaving then
    local recent = self.beaten and now - self.beaten < pause / 2
    if not recent then self:heartbeat() end -- a leader's refresh is one too
    stepping_aside.look(self, late)
  else
    self:ensure()
  end
end

--- Begins: joins, and keeps the lease from now on.
function Member:start()
  beat(self)
end

--- Enqueues a message of this member.
-- @string kind
-- @tparam table fields what it bears besides the member's id and token
-- @tparam[opt] function done called with whether the store has it
function Member:enqueue(kind, fields, done)
  local message = { kind = kind, id = self.id, token = self.token }
  for key, value in pairs(fields) do message[key] = value end
  self.effects.ask("enqueue", { messages = { message } }, function(stored)
    self:wake()
    if done then done(stored) end
  end)
end

--- Lets go of leading, and stays a member.
function Member:abdicate()
  if not self:is_chosen(self.view) then return end
  self.ready, self.let_go = nil, self.view.epoch -- whatever becomes of the message, it does not act in this epoch again
  end_authority(self, "the leader lets go")
  if self.changeover then self.changeover:close() end
  self.changeover = nil
  self:enqueue("abdicate", { epoch = self.view.epoch })
end

--- Ends the term's part in the names: nothing more is acknowledged.
-- @string why
function Member:relinquish(why)
  end_authority(self, why)
end

--- Another member can be sent to.
-- @string id
function Member:link_up(id)
  self.linked[id] = true
  if self.authority then self.authority:linked(id) end
  if self.changeover then self.changeover:linked(id) end
  stepping_aside.linked(self)
  self.own.writes:again()
end

--- Another member cannot be sent to any more.
-- @string id
function Member:link_down(id)
  self.linked[id] = nil
  self.own.writes:lost(id)
  if self.authority then self.authority:unlinked(id) end
  if self.changeover then self.changeover:unlinked(id) end
end

--- Another member has a link to this one, or none any more.
-- @string id
-- @tparam boolean there
function Member:dialled(id, there)
  self.dialled_by[id] = there or nil
  stepping_aside.linked(self)
end

--- How many members have a link to this one, itself among them: the others cannot write to it.
-- @treturn number
function Member:reached_by()
  local total = 1
  for id in pairs(self.view.members) do
    if self.dialled_by[id] then total = total + 1 end
  end
  return total
end

--- Ends everything at once, as a killed process does.
function Member:close()
  self.over = true
  end_authority(self, "closing")
  if self.changeover then self.changeover:close() end
end

return Member
