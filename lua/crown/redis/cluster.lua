--- A Redis Cluster: a client of each node that keeps slots, and the way to whoever keeps a key now. A node that says that a
-- slot is elsewhere is followed there; where a node fails, the others are asked who keeps what.
-- @internal crown.redis.cluster

local Client = require "crown.redis.client"
local Connection = require "crown.redis.connection"
local core = require "crown.core"
local explain = require "crown.link.explain"
local promise = require "crown.core.promise"
local redis_url = require "crown.redis.url"
local Shared = require "crown.link.shared"
local slots = require "crown.redis.slots"

local Cluster = {}
Cluster.__index = Cluster

local HOPS_MOST = 5 -- from one node to the next for one call

-- The node that said this may keep the slot no more, or not yet; so may one that said nothing.
local SUSPECT = { closed = true, timeout = true, CLUSTERDOWN = true, READONLY = true, LOADING = true, MASTERDOWN = true }

local function ask_one(self, place)
  local connection, problem = Connection.open(self.parsed, place, self.timeout)
  if not connection then return nil, problem end
  local answer
  answer, problem = connection:call(self.timeout, "CLUSTER", "SLOTS")
  connection:close()
  if not answer then return nil, problem end
  return slots.read(answer, place)
end

-- Keeps what is true now; a node that keeps nothing any more is let go.
local function learn(self, map)
  self.keeper, self.primaries, self.places = map.keeper, map.primaries, map.places
  for name, place in pairs(self.seeds) do self.places[name] = place end
  for name, client in pairs(self.clients) do
    if not map.primaries[name] then
      self.clients[name] = nil
      client:close()
    end
  end
end

-- Asks every node that is known, and the first answer counts: some may be silent, and a wrong one is put right by the nodes
-- that it leads to.
local function look(self)
  local first, left, problem = promise(), 0, nil
  for _, place in pairs(self.places) do
    left = left + 1
    core.detach(function()
      local map, why = ask_one(self, place)
      problem, left = why or problem, left - 1
      if map then
        first:resolve(map)
      elseif left == 0 then
        first:resolve(nil, problem)
      end
    end)
  end
  local map, why = first:wait(2 * self.timeout)
  if not map then return nil, ("no node of the cluster tells who keeps what: %s"):format(problem or why) end
  learn(self, map)
  return true
end

--- Makes one; its nodes are found when they are needed.
-- @tparam table options `url`, which names one node at least; `timeout`; `label` and `setup` as for a client
-- @treturn Cluster or nil and a message
function Cluster.new(options)
  local parsed, problem = redis_url.parse(options.url)
  if not parsed then return nil, problem end
  local self = setmetatable({ url = options.url, parsed = parsed, timeout = options.timeout, label = options.label,
    setup = options.setup, keeper = {}, primaries = {}, places = {}, seeds = {}, clients = {} }, Cluster)
  for _, place in ipairs(parsed.hosts or {}) do self.seeds[slots.name(place)] = place end
  for name, place in pairs(self.seeds) do self.places[name] = place end
  self.looking = Shared.new(function() return look(self) end)
  return self
end

local function client_of(self, name)
  local client, place, problem = self.clients[name], self.places[name], nil
  if not client then
    client, problem = Client.new(self.url, { timeout = self.timeout, label = self.label, setup = self.setup,
      choose = function() return place end })
    self.clients[name] = client
  end
  return client, problem
end

-- Asks again who keeps what, without waiting for it.
local function doubt(self)
  if self.doubting then return end
  self.doubting = true
  core.detach(function()
    self.looking:ask()
    self.doubting = false
  end)
end

-- Where a slot is kept, as far as is known; asks where nothing is. @return a name; or nil, message, code
local function keeper_of(self, slot)
  if not self.keeper[slot] then
    local looked, problem, code = self.looking:ask(2 * self.timeout)
    if not looked then return nil, problem, code or "closed" end
  end
  if self.keeper[slot] then return self.keeper[slot] end
  return nil, ("no node of the cluster keeps slot %d"):format(slot), "store"
end

-- Where a node sends us. A slot that has moved stays there; one that is being moved is asked for there this once.
local function follow(self, slot, name, problem, code)
  local place = slots.redirection(problem, self.places[name])
  if not place then return nil end
  local there = slots.name(place)
  self.places[there] = place
  if code == "MOVED" then
    self.keeper[slot], self.primaries[there] = there, place
    doubt(self)
  end
  return there
end

-- Nothing was sent to a node that cannot be reached, so another one may be asked at once if it keeps the slot by now.
local function instead_of(self, slot, name)
  local looked = self.looking:ask(2 * self.timeout)
  local other = looked and self.keeper[slot]
  return other ~= name and other or nil
end

-- @return what fn returned, and the name of the node to try next
local function try(self, slot, name, asking, fn)
  local client, problem = client_of(self, name)
  if not client then return nil, problem, "usage" end
  local ready, code
  ready, problem, code = client:ready(self.timeout)
  if not ready then return nil, problem, code, instead_of(self, slot, name) end
  local answer
  answer, problem, code = fn(asking and client:asking() or client)
  if code == "MOVED" or code == "ASK" then return nil, problem, code, follow(self, slot, name, problem, code) end
  if SUSPECT[code] then doubt(self) end
  return answer, problem, code
end

--- Runs a function with a client of the node that keeps a key; once more with another node where that one is not the one.
-- @string key
-- @tparam function fn `fn(client)` returns an answer; or nil, message, code. It may be called again only where the code
-- says that nothing was done
-- @return what it returned; or nil, message, code
function Cluster:run(key, fn)
  local slot, until_then = slots.of(key), core.now() + self.timeout
  local name, problem, code = keeper_of(self, slot)
  if not name then return nil, problem, code end
  local asking = false
  for _ = 1, HOPS_MOST do
    local answer, next_name
    answer, problem, code, next_name = try(self, slot, name, asking, fn)
    if not next_name then return answer, problem, code end
    if core.now() > until_then then break end
    name, asking = next_name, code == "ASK"
  end
  return nil, ("the nodes do not agree on who keeps slot %d: %s"):format(slot, problem), "store"
end

--- Runs a function with a client of each node that keeps slots.
-- @tparam function fn `fn(client, name)` returns true; or nil, message, code, which ends it
-- @treturn boolean true; or nil, message, code
function Cluster:each(fn)
  local looked, problem, code = self.looking:ask(2 * self.timeout)
  if not looked then return nil, problem, code end
  local names = {}
  for name in pairs(self.primaries) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local client
    client, problem = client_of(self, name)
    if not client then return nil, problem, "usage" end
    local fine
    fine, problem, code = fn(client, name)
    if not fine then return nil, ("%s: %s"):format(name, explain.bare(name, problem or "no answer")), code end
  end
  return true
end

--- A place to connect to where any node will do: another one each time.
-- @treturn table `{ host, port }`
function Cluster:any()
  local names = {}
  for name in pairs(self.places) do names[#names + 1] = name end
  return self.places[names[math.random(#names)]]
end

--- Ends it.
function Cluster:close()
  for _, client in pairs(self.clients) do client:close() end
  self.clients = {}
end

return Cluster
