--- A leader who was asked to go: what its oracle says, and waiting until it has gone.
-- @internal crown.oracle.eviction

local core = require "crown.core"
local tools = require "crown.register.tools"

local eviction = {}

local PAUSE = 0.02 -- seconds between two looks
local SECONDS = 10

--- What evict answers where there is nobody to evict.
-- @string name of the election
-- @treturn nil
-- @treturn string message
-- @treturn string code
function eviction.nobody(name)
  return nil, ("nobody leads '%s'"):format(name), "no_leader"
end

--- What a refresh answers where the store says that the leader is to go, once a term: while that ends, its lease is refreshed
-- like any.
-- @tparam table self the oracle's state: its `told_to_go` is true from now on, until a win makes it false
-- @treturn boolean false
-- @treturn table
function eviction.tell(self)
  self.told_to_go = true
  return false, { evicted = true }
end

--- Waits until the leader is gone.
-- @string name of the election
-- @number[opt] seconds at most (10)
-- @tparam function is_gone → a boolean; or nil, message, code, which ends the wait
-- @string[opt] after what happens to the request when the leader does not go
-- @treturn boolean true; or nil, message, code: "stays" where it did not go
function eviction.await(name, seconds, is_gone, after)
  local until_then = core.now() + (seconds or SECONDS)
  while core.now() < until_then do
    local gone, problem, code = is_gone()
    if gone == nil then return nil, problem, code end
    if gone then return true end
    core.sleep(PAUSE)
  end
  return nil, ("the leader of '%s' did not step down in time%s"):format(name, after and "; " .. after or ""), "stays"
end

--- Asks a leader in a register to go, and waits until it has gone.
-- @tparam table store see crown.register.session
-- @string name of the election
-- @number[opt] wait seconds at most (10)
-- @treturn table `{ node =, epoch = }` of the leader; or nil, message, code
function eviction.from(store, name, wait)
  local leader, problem, code = tools.ask_to_go(store, name)
  if leader == nil then return nil, problem, code end
  if not leader then return eviction.nobody(name) end
  local gone
  gone, problem, code = eviction.await(name, wait, function() return tools.has_gone(store, name, leader) end,
    "the request stays until its term ends")
  if not gone then return nil, problem, code end
  return { node = leader.node, epoch = leader.epoch }
end

return eviction
