--- Who an election of this runtime is to its store. The runtime's token alone would make two elections on one lock one and
-- the same holder, and both would lead.
-- @internal crown.oracle.candidate

local candidate = {}

local A_SECOND = 5000 -- elections that may come at once

-- taken[store][token][lock]: the election, while anybody knows it; the name of one whose oracle knows no more
local taken = {}
local Weak = { __mode = "v" }

-- Of any length, and of any bytes, to few that every store takes.
local function digest(text)
  return require("crown.core.crypto").digest(text) -- not there on a plain LuaJIT, where nobody enters
end

local function is_over(election)
  return election.handle ~= nil and election.handle:finished()
end

--- Enters an election as a candidate for a lock.
-- @string store what names the store, as its options have it
-- @string lock the lock's name there
-- @tparam table opts what init gets: `crown_name`, `token`
-- @treturn string its token, the same from one runtime of this candidate to the next; or nil and a message: another election
-- of this runtime is on that lock
function candidate.enter(store, lock, opts)
  local tokens = taken[store] or {}
  local locks = tokens[opts.token] or setmetatable({}, Weak)
  taken[store], tokens[opts.token] = tokens, locks
  local there = locks[lock]
  local other = type(there) == "table" and not is_over(there) and there.name or type(there) == "string" and there or nil
  if other and other ~= opts.crown_name then
    return nil, ("election '%s' of this runtime is on the lock '%s' already: each needs one of its own"):format(other, lock)
  end
  locks[lock] = opts.election or opts.crown_name
  return ("%s-%s"):format(opts.token, digest(opts.crown_name))
end

--- Whom an oracle sends messages to: the election itself, where `init` is told of it. A function for each of a hundred thousand
-- would cost more memory than all else that a lease needs besides its name.
-- @tparam table opts what init gets
-- @treturn table has the method `send(message)`
function candidate.of(opts)
  return opts.election or { send = function(_, message) return opts.send(message) end }
end

--- Where all elections of this runtime wait for one instant, each comes a little after it: nobody notices with a few of them,
-- and thousands do not all come at once.
-- @treturn number seconds
function candidate.apart()
  return math.random() * require("crown.core.election").count() / A_SECOND -- not there on a plain LuaJIT
end

return candidate
