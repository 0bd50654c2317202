--- Who is a member of a registry, and who leads it: pure decisions. No clock, no store, nothing that waits; times are seconds
-- on the store's clock. The state is what the store's row holds:
-- `{ members = { [id] = { token, runtime, number, address, joined_at, expires_at, ttl, aside } }, leader, leader_token, epoch,
-- old_leader, epoch_floor, distrust }`; `old_leader` is the one that lets go in order, and is there to hand over.
-- See docs/registry-protocol.md.
-- @internal crown.registry.elector

local elector = {}

--- Why a second runtime is refused.
elector.TAKEN = "another runtime is a member under this node's name"

--- A member's id.
-- @string node the node's name
-- @string registry the registry's name
-- @treturn string
function elector.member_id(node, registry)
  return registry .. "@" .. node
end

--- The node that a member's id names.
-- @string id
-- @treturn string
function elector.node_of(id)
  return (id:gsub("^[^@]*@", "", 1))
end

--- How many members there are.
-- @tparam table members
-- @treturn number
function elector.size(members)
  local total = 0
  for _ in pairs(members) do total = total + 1 end
  return total
end

local function copy(state)
  local members = {}
  for id, member in pairs(state.members) do members[id] = member end
  return { members = members, leader = state.leader, leader_token = state.leader_token, epoch = state.epoch,
    old_leader = state.old_leader, epoch_floor = state.epoch_floor, distrust = state.distrust }
end

local function with(member, key, value)
  local changed = {}
  for name, one in pairs(member) do changed[name] = one end
  changed[key] = value
  return changed
end

local TTL_MOST = 86400 -- seconds

local function is_text(value) return type(value) == "string" and value ~= "" end
local function is_number(value) return type(value) == "number" and value >= 0 end
local function is_ttl(value) return is_number(value) and value > 0 and value <= TTL_MOST end

-- What a message has to bear. Whoever may write to the queue may write anything, and one that nobody can process would be its
-- head for ever.
local FIELDS = {
  join = { id = is_text, token = is_text, runtime = is_text, number = is_number, address = is_text, ttl = is_ttl },
  member_down = { id = is_text, token = is_text },
  abdicate = { id = is_text, token = is_text, epoch = is_number },
  elect = { id = is_text, token = is_text },
}

local function what_is_wrong(message)
  if type(message) ~= "table" then return ("a message that is a %s"):format(type(message)) end
  local fields = FIELDS[message.kind]
  if not fields then return ("nobody knows messages of the kind '%s'"):format(tostring(message.kind)) end
  for field, check in pairs(fields) do
    if not check(message[field]) then return ("a message '%s' whose %s is not one"):format(message.kind, field) end
  end
end

-- What the row has of each member. Whoever may write to it may write anything.
local MEMBER = { token = is_text, runtime = is_text, number = is_number, address = is_text, ttl = is_ttl, joined_at = is_number,
  expires_at = is_number }

--- Whether what the row has as its members is that.
-- @param members
-- @treturn boolean
function elector.are_members(members)
  if type(members) ~= "table" then return false end
  for id, member in pairs(members) do
    if not is_text(id) or type(member) ~= "table" then return false end
    for field, check in pairs(MEMBER) do
      if not check(member[field]) then return false end
    end
  end
  return true
end

-- Each changes the state that a message means, or returns why the message is dropped.
local apply = {}

function apply.join(state, message, now)
  local known = state.members[message.id]
  if known and known.runtime ~= message.runtime and known.expires_at > now then
    return elector.TAKEN
  end
  if known and known.runtime == message.runtime and known.number >= message.number then return "a newer join was answered" end
  if state.leader == message.id then state.old_leader = nil end
  state.members[message.id] = { token = message.token, runtime = message.runtime, number = message.number,
    address = message.address, ttl = message.ttl, joined_at = now, expires_at = now + message.ttl }
end

-- Of a member that joined again since, or that was only slow, it is stale.
function apply.member_down(state, message, now)
  local known = state.members[message.id]
  if not known or known.token ~= message.token then return "stale: another join has come since" end
  if not message.left and known.expires_at > now then return "stale: the member has been heard of since" end
  state.members[message.id] = nil
  if state.leader == message.id then state.old_leader = message.left and message.id or nil end
end

function apply.abdicate(state, message)
  if state.leader ~= message.id or state.leader_token ~= message.token or state.epoch ~= message.epoch then
    return "stale: it does not lead"
  end
  local known = state.members[message.id]
  if known then state.members[message.id] = with(known, "aside", true) end
  state.leader, state.leader_token, state.old_leader = nil, nil, message.id
end

function apply.elect(state, message)
  local known = state.members[message.id]
  if not known or known.token ~= message.token then return "stale: not a member" end
  if known.aside then state.members[message.id] = with(known, "aside", nil) end
end

local function eligible(state, id, now)
  local member = id and state.members[id]
  return member and not member.aside and member.expires_at > now
end

local function lowest(state, now)
  local least
  for id in pairs(state.members) do
    if eligible(state, id, now) and (not least or id < least) then least = id end
  end
  return least
end

-- The incumbent stays while it is a member. One whose runtime has joined anew has lost what it held, so whoever else is awake
-- comes first: taking over from its own copy takes no time.
local function elect(state, winner, now)
  local incumbent = state.leader and state.members[state.leader]
  if incumbent and incumbent.token == state.leader_token then return end
  local chosen = eligible(state, winner, now) and winner
    or eligible(state, state.leader, now) and state.leader or lowest(state, now)
  if state.distrust or not chosen then
    state.leader, state.leader_token = nil, nil
    return
  end
  state.leader, state.leader_token = chosen, state.members[chosen].token
  state.epoch = math.max(state.epoch, state.epoch_floor or 0) + 1
end

--- Processes one message of the queue.
-- @tparam table state as it is; it is not changed
-- @tparam table message `{ kind = "join" | "member_down" | "abdicate" | "elect", id =, token =, … }`
-- @string winner the id of the node that does this: its transaction counts if it wins
-- @number now seconds on the store's clock
-- @treturn table the new state; or nil where the message is dropped
-- @treturn string why it is dropped
-- @treturn boolean true where it is none that anybody should have sent
function elector.decide(state, message, winner, now)
  local wrong = what_is_wrong(message)
  if wrong then return nil, wrong, true end
  local changed = copy(state)
  local dropped = apply[message.kind](changed, message, now)
  if dropped then return nil, dropped end
  elect(changed, winner, now)
  return changed
end

--- Whether a leader has been chosen that has not taken the names over yet.
-- @tparam table view the state, and `assumed`: the last epoch that was
-- @treturn boolean
function elector.changing(view)
  return view.leader ~= nil and view.assumed < view.epoch
end

local function expired(view)
  local found, first = {}, nil
  for id, member in pairs(view.members) do
    local left = member.expires_at - view.now
    if left <= 0 then
      found[#found + 1] = { kind = "member_down", id = id, token = member.token }
    elseif not first or left < first then
      first = left
    end
  end
  table.sort(found, function(a, b) return a.id < b.id end)
  return found, first
end

--- What a node does next about a registry.
-- @tparam table view the state with `now`, `assumed`, `locked` (seconds, 0 when it is not) and `head`, the queue's first
-- message
-- @string me the node's member id
-- @string token what it joined with
-- @number let_go the epoch in which this node has begun to let go, or nil: it does not take over in that one any more
-- @return "change_over": take the names over; "decide": process the head; "report" and messages to enqueue; or "wait" and
-- seconds, nil when nothing is due
function elector.plan(view, me, token, let_go)
  local chosen = elector.changing(view) and view.leader == me and view.leader_token == token
  if chosen and let_go ~= view.epoch then return "change_over" end
  if view.locked > 0 then return "wait", view.locked end
  if view.head then return "decide" end
  local down, first = expired(view)
  if #down > 0 then return "report", down end
  return "wait", first
end

return elector
