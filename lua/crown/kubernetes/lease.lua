--- A Lease (coordination.k8s.io/v1) as an election's record: what it says, and what a candidate writes into it. Without input or
-- output. All that is not the election's stays as it was read.
-- @internal crown.kubernetes.lease

local calendar = require "crown.text.calendar"

local lease = {}

local EVICT = "crown-lua/evict" -- the annotation by which somebody asks a leader to go
local ORDERS = "crown-lua/orders" -- and what operators order of its candidates
local NAME_MOST, NAMESPACE_MOST = 253, 63
local RELEASED_SECONDS = 1 -- what client-go writes when it gives back
local EPOCH_STEPS = 2 ^ 20 -- epochs for each second in which a Lease may have been made

--- What is said of an answer that is none.
lease.STRANGE = "unexpected reply: not a Lease"

--- Whether an object is a Lease that a server has stored.
-- @param found
-- @treturn boolean
function lease.is(found)
  local meta = type(found) == "table" and found.metadata
  return type(meta) == "table" and found.kind == "Lease" and type(meta.resourceVersion) == "string" and type(meta.uid) == "string"
    and (found.spec == nil or type(found.spec) == "table")
end

-- cjson has null as a userdata.
local function text(value) return type(value) == "string" and value or nil end
local function number(value) return type(value) == "number" and value or nil end

--- What a Lease says of its election.
-- @tparam table found the object
-- @treturn table `holder`: nil where nobody holds it; `duration` in seconds, nil where it has none; `transitions`; `epoch`: rises
-- from holder to holder, also where the Lease was deleted and made anew in another second; `mark`: the same as long as nobody has
-- written to the election; `uid`; `version`; `strategy`; `evict`: whom somebody asks to go;
-- `orders`: what operators order
function lease.read(found)
  local spec, meta = found.spec or {}, found.metadata
  local annotations = type(meta.annotations) == "table" and meta.annotations or {}
  local holder, duration = text(spec.holderIdentity), number(spec.leaseDurationSeconds)
  local transitions = number(spec.leaseTransitions) or 0
  local strategy = text(spec.strategy)
  local made = math.floor(calendar.seconds(text(meta.creationTimestamp)) or 0)
  return { holder = holder ~= "" and holder or nil, duration = duration and duration > 0 and duration or nil,
    transitions = transitions, epoch = made * EPOCH_STEPS + transitions + 1, uid = meta.uid,
    version = meta.resourceVersion, strategy = strategy ~= "" and strategy or nil, evict = text(annotations[EVICT]),
    orders = text(annotations[ORDERS]),
    mark = table.concat({ meta.uid, holder or "", tostring(duration), tostring(spec.acquireTime), tostring(spec.renewTime),
      transitions }, " ") }
end

-- With six decimals, or the server refuses it.
local function stamp(seconds) return os.date("!%Y-%m-%dT%H:%M:%S", seconds) .. ".000000Z" end

-- A copy, so that nothing is lost when the server refuses what is written. What lies deeper is shared and not changed.
local function copy(found)
  local made = {}
  for key, value in pairs(found) do made[key] = value end
  return made
end

local function written(found, spec)
  local made, meta = copy(found), copy(found.metadata)
  made.spec, made.metadata = copy(found.spec or {}), meta
  for key, value in pairs(spec) do made.spec[key] = value end
  return made
end

-- @string[opt] value nil: it is taken away
local function annotated(made, name, value)
  local meta = made.metadata
  local annotations = type(meta.annotations) == "table" and copy(meta.annotations) or {}
  annotations[name] = value
  meta.annotations = next(annotations) ~= nil and annotations or nil
  return made
end

local function without_evict(made) return annotated(made, EVICT, nil) end

--- A Lease that nobody has written yet, held.
-- @tparam table term `namespace`, `name`, `identity`, `seconds` (how long it lasts, whole), `transitions`
-- @number at the time of the host, whole seconds
-- @treturn table the object
function lease.created(term, at)
  return { apiVersion = "coordination.k8s.io/v1", kind = "Lease", metadata = { name = term.name, namespace = term.namespace },
    spec = { holderIdentity = term.identity, leaseDurationSeconds = term.seconds, acquireTime = stamp(at), renewTime = stamp(at),
      leaseTransitions = term.transitions } }
end

--- The same Lease taken over. A wish that somebody go is over by that.
-- @tparam table found the object
-- @tparam table term as `created`
-- @number at
-- @treturn table
function lease.taken(found, term, at)
  return without_evict(written(found, { holderIdentity = term.identity, leaseDurationSeconds = term.seconds,
    acquireTime = stamp(at), renewTime = stamp(at), leaseTransitions = term.transitions }))
end

--- The same Lease renewed. client-go compares times in whole seconds, so `at` has to be another second each time.
-- @tparam table found
-- @number seconds how long it lasts, whole
-- @number at
-- @treturn table
function lease.renewed(found, seconds, at)
  return written(found, { renewTime = stamp(at), leaseDurationSeconds = seconds })
end

--- The same Lease given back, as client-go gives back.
-- @tparam table found
-- @number at
-- @treturn table
function lease.released(found, at)
  return without_evict(written(found, { holderIdentity = "", leaseDurationSeconds = RELEASED_SECONDS, acquireTime = stamp(at),
    renewTime = stamp(at) }))
end

--- The same Lease with a wish that its holder go.
-- @tparam table found
-- @string wish as `read` gives it back
-- @treturn table
function lease.evicting(found, wish)
  return annotated(written(found, {}), EVICT, wish)
end

--- The same Lease with what operators order.
-- @tparam table found
-- @string[opt] wanted nil: nothing any more
-- @treturn table
function lease.ordering(found, wanted)
  return annotated(written(found, {}), ORDERS, wanted)
end

--- A holder's term, as a wish names it.
-- @tparam table record as `read` gives it
-- @treturn string
function lease.wish(record) return ("%s %d"):format(record.holder, record.transitions) end

--- Whether one version of the API server's memory lies before another: etcd counts them.
-- @string one
-- @string other
-- @treturn boolean false also where they are no numbers
function lease.is_before(one, other)
  local a, b = tonumber(one), tonumber(other)
  return a ~= nil and b ~= nil and a < b
end

--- Who a candidate is: the node, and what tells it from all others.
-- @string node
-- @string token
-- @treturn string
function lease.identity(node, token) return ("%s_%s"):format(node, token) end

--- The node in an identity, as client-go's controllers write it, too: NODE_UNIQUE.
-- @string holder
-- @treturn string
function lease.node(holder) return holder:match "^(.+)_[^_]*$" or holder end

local LABEL = "^[%l%d]$"
local LONG = "^[%l%d][%l%d-]*[%l%d]$"

local function is_label(one) return one:find(LABEL) ~= nil or one:find(LONG) ~= nil end

--- What is wrong with a Lease's name, a DNS name in small letters.
-- @string name
-- @treturn string words that follow the name; or nil
function lease.name_problem(name)
  local fine = #name <= NAME_MOST
  for label in (name .. "."):gmatch "([^.]*)%." do fine = fine and is_label(label) end
  if not fine then
    return "is no name of a Lease: small letters, digits, '-' and '.', at most 253 characters; give another by lock=NAME"
  end
end

--- What is wrong with a namespace's name.
-- @string name
-- @treturn string words that follow it; or nil
function lease.namespace_problem(name)
  if #name > NAMESPACE_MOST or not is_label(name) then
    return "is no name of a namespace: small letters, digits and '-', at most 63 characters"
  end
end

return lease
