--- What clients of a registry asked for and were told, and what follows from that: while somebody has a name, nobody else is
-- told yes; who is told no is told who has it; what a node knows is not older than a bound, when nothing is broken.
--
-- Whether something was a breach is seen when all is well again: somebody who had been thrown out, or was another process by
-- then, learns of it late.
local crown = require "crown"

local Ledger = {}
Ledger.__index = Ledger

local OLDEST = 1.5 -- seconds that a read may lag behind, on a machine that has much else to do

--- Makes an empty one.
-- @tparam table nodes by name: `{ log = a spec/support/log_reader }`
-- @bool strict whether the registry is
function Ledger.new(nodes, strict)
  return setmetatable({ nodes = nodes, strict = strict, last = {}, doubts = {}, told = 0, reads = 0 }, Ledger)
end

-- What the logs say by now: which process a node is, how often it was thrown out, how often names were missed anywhere.
local function signs(self, node)
  local log, missed = self.nodes[node].log:look(), 0
  for _, one in pairs(self.nodes) do missed = missed + one.log:look().missed end
  return { life = log.life, thrown = log.thrown, missed = missed }
end

-- What has become of a node since it was told something, so that this holds no more.
local function is_excused(self, op)
  local now = signs(self, op.node)
  return now.life ~= op.seen.life or now.thrown > op.seen.thrown or not self.strict and now.missed > op.seen.missed
end

--- A client is about to ask. One that asks for a name at a node is the only one that does there.
-- @treturn table for `answered`
function Ledger:asks(node, name, what, value)
  local op = { node = node, name = name, what = what, value = value, from = crown.now(), seen = signs(self, node) }
  local of = self.last[name] or {}
  self.last[name] = of
  op.before = of[node]
  if op.before then op.before.before = nil end
  of[node] = op
  return op
end

-- What a node was told by which it had a name at an instant, and still has: who asks again for what he has keeps it.
local function holding(op, from)
  if op and op.what == "register" and op.told == nil then op = op.before end
  return op and op.what == "register" and op.told and op.at <= from and op or nil
end

local function doubt(self, op, text, ...)
  table.insert(self.doubts, { op = op, text = text:format(...) })
end

--- It is answered.
-- @tparam table op
-- @param told true, false, or nil where it is not known
-- @tparam[opt] table other who has the name
function Ledger:answered(op, told, other)
  op.at, op.other = crown.now(), other
  if self.nodes[op.node].log:look().life ~= op.seen.life then told = nil end -- another process has forgotten
  op.told = told
  if told == nil then return end
  self.told = self.told + 1
  if told and op.what == "register" then
    for node, last in pairs(self.last[op.name]) do
      local one = node ~= op.node and holding(last, op.from)
      if one then
        doubt(self, one, "%s was told that it has %s (%s), %.2f s after %s was (%s)", op.node, op.name, op.value, op.at - one.at, node,
          one.value)
      end
    end
  elseif told == false and op.what == "register" then
    local owner = other and self.last[op.name][other.owner]
    if owner and owner.what == "unregister" and owner.told and owner.at < op.from then
      doubt(self, owner, "%s gave %s up, and %.2f s later %s was told that it has it", other.owner, op.name, op.from - owner.at, op.node)
    end
  end
end

--- What a node has been told that it has.
-- @treturn table an array, for `misses`
function Ledger:held_by(node)
  local found = {}
  for _, of in pairs(self.last) do
    local op = holding(of[node], crown.now())
    if op then found[#found + 1] = op end
  end
  return found
end

--- A node that has begun to lead has to know what was acknowledged before.
-- @string leader
-- @tparam table ops of `held_by`, before the last one ended
-- @tparam table known the names that it knows
function Ledger:leads(leader, ops, known)
  for _, op in ipairs(ops) do
    local found, last = known[op.name], self.last[op.name][op.node]
    if last == op and not (found and found.owner == op.node and found.value == op.value) then
      doubt(self, op, "%s was told that it has %s with %s, and %s leads without", op.node, op.name, op.value, leader)
    end
  end
end

--- Compares a read, made while nothing is broken, with what was asked for.
-- @string reader the node that was asked
-- @string name
-- @number from when it was asked
-- @tparam table before what each node had asked for last, by then (`Ledger:now`)
-- @param value what it said
-- @param owner
-- @treturn string what is wrong, or nil
function Ledger:read(reader, name, from, before, value, owner)
  self.reads = self.reads + 1
  for node, op in pairs(before) do
    local settled = op.told ~= nil and op.at < from - OLDEST and self.last[name][node] == op
    if settled and not is_excused(self, op) then
      if holding(op, from) and (owner ~= node or value ~= op.value) then
        return ("%s read %s's with %s, %.1f s after %s was told that it has %s with %s"):format(reader, tostring(owner), tostring(value),
          from - op.at, node, name, op.value)
      elseif op.what == "unregister" and op.told and owner == node then
        return ("%s read that %s has %s, %.1f s after it gave it up"):format(reader, node, name, from - op.at)
      end
    end
  end
end

--- What each node has asked for last of a name.
function Ledger:now(name)
  local copy = {}
  for node, op in pairs(self.last[name] or {}) do copy[node] = op end
  return copy
end

--- What was doubted, and is a breach now that all is well again.
-- @treturn table an array of texts
function Ledger:breaches()
  local found = {}
  for _, one in ipairs(self.doubts) do
    if not is_excused(self, one.op) then found[#found + 1] = one.text end
  end
  self.doubts = {}
  return found
end

--- What is not as somebody was told, in the end.
-- @tparam table known by node: what it says about all names
-- @treturn table an array of texts
function Ledger:compare(known)
  local wrong = {}
  local function say(...) wrong[#wrong + 1] = (...):format(select(2, ...)) end
  for name, of in pairs(self.last) do
    for node, op in pairs(of) do
      for other, names in pairs(op.told and not is_excused(self, op) and known or {}) do
        local found = names[name]
        if op.what == "unregister" and found and found.owner == node then
          say("%s gave %s up, and at %s it has it", node, name, other)
        elseif op.what == "register" and not (found and found.owner == node and found.value == op.value) then
          say("%s was told that it has %s with %s, and at %s it is %s's with %s", node, name, op.value, other,
            found and found.owner or "nobody", found and tostring(found.value) or "nothing")
        end
      end
    end
    local first
    for node, names in pairs(known) do
      local owner = names[name] and names[name].owner or "nobody"
      first = first or { node = node, owner = owner }
      if owner ~= first.owner then say("%s and %s do not agree about %s", first.node, node, name) end
    end
  end
  return wrong
end

return Ledger
