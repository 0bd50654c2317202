--- A lease on a majority of independent servers: each is asked at once with one token, and what counts is what most
-- of them say. The core counts a lease from before it was asked for, so the time that asking took is off it already.
-- @internal crown.redis.quorum

local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local Leases = require "crown.redis.leases"
local same = require "crown.redis.same"
local several = require "crown.link.several"

local Quorum = {}
Quorum.__index = Quorum

-- Seconds until the next claim where nobody has a majority: apart, so that of several one gets ahead.
local RETRY_LEAST, RETRY_MOST = 0.2, 1
-- Seconds that a server has for its answer when a majority has answered, but not agreed.
local GRACE = 0.25

--- @tparam table urls of the servers: three or more, best an odd number
-- @tparam table options as Leases.at takes them
-- @treturn Quorum or nil and a message
function Quorum.at(urls, options)
  local self = setmetatable({ urls = urls, servers = {}, kinds = {},
    doubt = Doubt.of("most servers of redis", nil, options) }, Quorum)
  for i, url in ipairs(urls) do
    local leases, problem = Leases.at(url, options)
    if not leases then return nil, ("urls[%d]: %s"):format(i, problem) end
    self.servers[i] = leases
  end
  self.needed = math.floor(#self.servers / 2) + 1
  return self
end

--- Hands messages about a lease to an election; a server's word counts once a majority is asked.
function Quorum:join(lease)
  for _, server in ipairs(self.servers) do server:join(lease) end
end

local function copy(item)
  return { name = item.name, token = item.token, node = item.node, claim = item.claim, ttl = item.ttl,
    heard = item.heard }
end

-- @return how many granted, the highest epoch, whether the leader was evicted, and what the others say
local function count(self, answers)
  local granted, epoch, evicted, denials = 0, 0, false, {}
  for i = 1, #self.servers do
    local answer = answers[i]
    if answer and answer.epoch then
      granted, epoch, evicted = granted + 1, math.max(epoch, answer.epoch), evicted or answer.evicted
    elseif answer then
      denials[#denials + 1] = answer
    end
  end
  return granted, epoch, evicted, denials
end

-- Asks all servers at once. Who is silent is not waited for when so many granted as decide, nor for long when so many answered.
-- @return their answers, nil where there is none so far; the last failure; and `silent`, how many may still answer, which is
-- told to its `late(answer, server)`
local function ask_all(self, fn, item, ...)
  local answers, failure, later, arguments = {}, {}, {}, { ... }
  local wait = { enough = self.needed, grace = GRACE, is_decided = function() return count(self, answers) >= self.needed end }
  later.silent = several.ask(#self.servers, wait, function(i)
    local server = self.servers[i]
    local epoch, second, code = server[fn](server, copy(item), unpack(arguments))
    if epoch then
      answers[i] = { epoch = epoch, evicted = second }
    elseif epoch == false then
      answers[i] = second or {}
    else
      failure = { second, code }
    end
    if later.late and answers[i] then later.late(answers[i], server) end
    return answers[i] ~= nil
  end)
  if later.silent > 0 and not failure[1] then failure = { "one of them gives no answer", "timeout" } end
  return answers, failure, later
end

local function free_in(denial)
  return math.max(denial.left or 0, denial.distrust or 0)
end

-- Whose lease most servers hold is who leads; the others' are remnants, or claims like this one that will be given back.
local function is_leader(self, denials, one)
  local servers = 0
  for _, denial in ipairs(denials) do
    if one.mine and denial.mine == one.mine then servers = servers + 1 end
  end
  return servers >= self.needed
end

-- A claim can succeed as soon as so many servers may be free as are lacking.
local function denied(self, granted, denials)
  table.sort(denials, function(a, b) return free_in(a) < free_in(b) end)
  local last = denials[math.min(self.needed - granted, #denials)]
  if is_leader(self, denials, last) or (last.distrust or 0) > 0 then return false, last end
  return false, { node = last.node, held = last.held, mine = last.mine,
    retry_in = math.min(free_in(last), RETRY_LEAST + math.random() * (RETRY_MOST - RETRY_LEAST)) }
end

-- Two names of one server would give it two voices.
local function twice(self)
  local ids = {}
  for i, server in ipairs(self.servers) do ids[i] = server.id end
  return same.server(self.urls, ids)
end

local function verdict(self, granted, epoch, evicted, denials, failure)
  local problem = twice(self)
  if problem then return nil, problem, "usage" end
  if granted >= self.needed then return epoch, evicted end
  if #denials > #self.servers - self.needed then return denied(self, granted, denials) end
  return nil, ("%d of %d servers granted, %d are needed: %s"):format(granted, #self.servers, self.needed,
    failure[1] or "the others are held"), failure[2] or "store"
end

-- The servers count epochs each for themselves: the highest goes back to all, so that whoever asks a majority next
-- finds it.
local function level(self, item, epoch, timeout)
  local answers = ask_all(self, "raise", item, epoch, timeout)
  local raised = 0
  for i = 1, #self.servers do raised = raised + (answers[i] and answers[i].epoch and 1 or 0) end
  return raised >= self.needed
end

--- Claims: granted when a majority grants it. What a minority granted, or may still grant, is given back.
function Quorum:claim(item, timeout)
  local answers, failure, later = ask_all(self, "claim", item, timeout)
  local granted, epoch, evicted, denials = count(self, answers)
  local answer, second, code = verdict(self, granted, epoch, evicted, denials, failure)
  if answer then
    if level(self, item, epoch, timeout) then return answer end
    answer, second, code = nil, "a majority granted the lease, but not its epoch", "store"
  end
  if granted + later.silent > 0 then ask_all(self, "undo", item, timeout) end
  return answer, second, code
end

-- A server that has lost the lease, or was away, gets it again from its holder, so that the majority does not melt
-- away.
local function repair(item, answer, server, epoch, timeout)
  if answer.epoch or answer.mine and answer.mine ~= item.token then return end
  core.detach(function()
    if server:restore(copy(item), timeout) then server:raise(copy(item), epoch, timeout) end
  end)
end

local function repair_all(self, item, answers, later, epoch, timeout)
  for i, server in ipairs(self.servers) do
    if answers[i] then repair(item, answers[i], server, epoch, timeout) end
  end
  function later.late(answer, server) repair(item, answer, server, epoch, timeout) end
end

--- Refreshes: kept while a majority keeps it.
function Quorum:refresh(item, timeout)
  local answers, failure, later = ask_all(self, "refresh", item, timeout)
  local granted, epoch, evicted, denials = count(self, answers)
  if granted >= self.needed then repair_all(self, item, answers, later, epoch, timeout) end
  return verdict(self, granted, epoch, evicted, denials, failure)
end

--- Each lease is refreshed by itself: it is repaired by what the servers said of it.
-- @treturn nil
function Quorum.refresher() return nil end

--- Releases it on all servers.
function Quorum:release(item, timeout)
  ask_all(self, "release", item, timeout)
  return true
end

return Quorum
