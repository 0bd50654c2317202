--- What Consul's servers keep, by its documentation and its sources: keys, each with the index of the write that made it and of the last
-- one, sessions, and the delays of locks whose session has ended. A key is held by one session at most.
local base64 = require "crown.text.base64"
local core = require "crown.core"
local json = require "crown.text.json"
local promise = require "crown.core.promise"
local read_file = require "crown.text.read_file"
local write_file = require "support.write_file"

local State = {}
State.__index = State

local MULTIPLIER = 2 -- as Consul's: the TTL of a session is a lower bound

--- Opens what a file has. As with a new leader, all sessions begin anew, and no lock's delay is known.
-- @string path
-- @treturn State
function State.open(path)
  local text = read_file(path)
  local kept = text and json.object(text) or { index = 10, keys_index = 10, keys = {}, sessions = {} }
  local self = setmetatable({ path = path, kept = kept, delays = {}, waiting = {}, multiplier = MULTIPLIER }, State)
  self:lead_anew()
  return self
end

--- A new leader counts all sessions anew, and knows no delay of a lock.
function State:lead_anew()
  self.delays = {}
  for _, session in pairs(self.kept.sessions) do session.over = core.now() + session.ttl * self.multiplier end
end

local function changed(self)
  write_file(self.path, json.encode(self.kept))
  local waiting = self.waiting
  self.waiting = {}
  for _, one in ipairs(waiting) do one:resolve(true) end
end

local function next_index(self)
  self.kept.index = self.kept.index + 1
  return self.kept.index
end

--- Waits for the next change.
-- @number seconds
function State:wait(seconds)
  local one = promise()
  self.waiting[#self.waiting + 1] = one
  one:wait(seconds)
end

-- --- keys

local function entry_of(key, one)
  return { Key = key, Value = base64.encode(one.value), Flags = one.flags, LockIndex = one.lock, CreateIndex = one.created,
    ModifyIndex = one.modified, Session = one.session }
end

--- A key, as the API has it.
-- @string key
-- @tparam[opt] table keys of an earlier time
-- @treturn table or nil
function State:get(key, keys)
  local one = (keys or self.kept.keys)[key]
  return one and entry_of(key, one)
end

--- The keys with a prefix.
-- @string prefix
-- @tparam[opt] table keys of an earlier time
-- @treturn table an array, in order
function State:list(prefix, keys)
  local found = {}
  for key in pairs(keys or self.kept.keys) do
    if key:sub(1, #prefix) == prefix then found[#found + 1] = key end
  end
  table.sort(found)
  return found
end

local function set(self, index, key, value, flags)
  local keys = self.kept.keys
  local one = keys[key] or { created = index, lock = 0 }
  one.value, one.flags, one.modified = value, flags or "0", index
  keys[key], self.kept.keys_index = one, index
  return one
end

local function drop(self, index, key)
  self.kept.keys[key], self.kept.keys_index = nil, index
end

local function stands(self, key, index)
  local one = self.kept.keys[key]
  return index == 0 and not one or one ~= nil and one.modified == index
end

local verbs = {}

function verbs.set(self, index, op) return set(self, index, op.Key, op.value, op.Flags) end

function verbs.cas(self, index, op)
  if not stands(self, op.Key, op.Index) then return nil, ('failed to set key "%s", index is stale'):format(op.Key) end
  return set(self, index, op.Key, op.value, op.Flags)
end

verbs["delete-cas"] = function(self, index, op)
  local is_there = self.kept.keys[op.Key] ~= nil
  if is_there and not stands(self, op.Key, op.Index) then return nil, ('failed to delete key "%s", index is stale'):format(op.Key) end
  drop(self, index, op.Key)
  return false
end

function verbs.lock(self, index, op)
  local id, one = op.Session, self.kept.keys[op.Key]
  if (self.delays[op.Key] or 0) > core.now() then return nil, ('failed to lock key "%s" due to lock delay'):format(op.Key) end
  if not self.kept.sessions[id] then return nil, ('invalid session "%s"'):format(tostring(id)) end
  if one and one.session and one.session ~= id then return nil, ('failed to lock key "%s", lock is already held'):format(op.Key) end
  local is_new = not (one and one.session)
  local made = set(self, index, op.Key, op.value, op.Flags)
  made.session = id
  if is_new then made.lock = made.lock + 1 end
  return made
end

verbs["check-index"] = function(self, _, op)
  local one = self.kept.keys[op.Key]
  if one and one.modified == op.Index then return one end
  return nil, ('failed index check for key "%s", current modify index %d != %d'):format(op.Key, one and one.modified or 0, op.Index)
end

--- Carries a transaction out: all of it or nothing.
-- @tparam table ops each `{ Verb =, Key =, Index =, Flags =, value = decoded }`
-- @treturn table the entries, without their values; or nil and what is wrong with each operation, as the API has it
function State:transact(ops)
  local before, index = json.encode(self.kept), self.kept.index + 1
  local results, errors = {}, {}
  for i, op in ipairs(ops) do
    local act, one, problem = verbs[op.Verb], nil, ("unknown KV verb %q"):format(op.Verb)
    if act then one, problem = act(self, index, op) end
    if problem then errors[#errors + 1] = { OpIndex = i - 1, What = problem } end
    if one then
      local entry = entry_of(op.Key, one)
      entry.Value = nil
      results[#results + 1] = { KV = entry }
    end
  end
  if errors[1] then
    self.kept = json.object(before)
    return nil, errors
  end
  next_index(self)
  changed(self)
  return results
end

--- Writes a key.
-- @string key
-- @string value
-- @number flags as text
-- @number[opt] cas the index that it has to have
-- @treturn boolean whether it was written
function State:put(key, value, flags, cas)
  if cas and not stands(self, key, cas) then return false end
  set(self, next_index(self), key, value, flags)
  changed(self)
  return true
end

--- Deletes a key.
-- @string key
-- @number[opt] cas
-- @treturn boolean whether that was done
function State:delete(key, cas)
  if cas and self.kept.keys[key] and not stands(self, key, cas) then return false end
  drop(self, next_index(self), key)
  changed(self)
  return true
end

-- --- sessions

--- Has a session hold a key.
-- @string key
-- @string value
-- @string flags
-- @string id of the session
-- @treturn boolean whether it does; nil: there is no such session
function State:acquire(key, value, flags, id)
  if not self.kept.sessions[id] then return nil end
  return self:transact { { Verb = "lock", Key = key, value = value, Flags = flags, Session = id } } ~= nil
end

--- Has a session let a key go.
-- @treturn boolean whether it held it
function State:release(key, value, flags, id)
  local one = self.kept.keys[key]
  if not one or one.session ~= id then return false end
  set(self, next_index(self), key, value, flags).session = nil
  changed(self)
  return true
end

--- Makes a session.
-- @tparam table session `name`, `ttl` and `delay` in seconds, `behavior`, `checks`
-- @treturn string its id
function State:begin(session)
  local bytes = require("crown.core.crypto").random(16)
  local id = require "crown.text.hex"(bytes):gsub("(........)(....)(....)(....)(.*)", "%1-%2-%3-%4-%5")
  session.created, session.over = next_index(self), core.now() + session.ttl * self.multiplier
  self.kept.sessions[id] = session
  changed(self)
  return id
end

--- Renews a session.
-- @treturn table it; or nil
function State:renew(id)
  local session = self.kept.sessions[id]
  if session then session.over = core.now() + session.ttl * self.multiplier end
  return session
end

--- Ends a session: what it held is let go or deleted, and nobody may have that for its delay.
-- @string id
function State:destroy(id)
  local session = self.kept.sessions[id]
  if not session then return end
  local index = next_index(self)
  self.kept.sessions[id] = nil
  for key, one in pairs(self.kept.keys) do
    if one.session == id then
      if session.behavior == "delete" then drop(self, index, key) else set(self, index, key, one.value, one.flags).session = nil end
      if session.delay > 0 then self.delays[key] = core.now() + session.delay end
    end
  end
  changed(self)
end

--- Ends the sessions whose time is over.
function State:expire()
  for id, session in pairs(self.kept.sessions) do
    if session.over <= core.now() then self:destroy(id) end
  end
end

return State
