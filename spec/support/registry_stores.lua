--- The two stores of a registry behind one face: the real statements on a real Postgres, and the virtual one of the
-- simulation. What holds for one has to hold for the other, or the simulation proves things about another program.
local crown = require "crown"
local Postgres = require "support.postgres"
local Real = require "crown.registry.store"
local Virtual = require "support.registry_store"

local stores = {}

local VirtualFace = {}
VirtualFace.__index = VirtualFace

function VirtualFace:ask(op, args)
  return (self.store:perform(op, args))
end

--- Changes columns of the row behind everybody's back.
function VirtualFace:set(columns)
  for column, value in pairs(columns) do self.store.row[column] = value end
end

--- Ends the lock.
function VirtualFace:unlock()
  self.store.row.locked_until = 0
end

--- Takes the row away, and leaves the queue.
function VirtualFace:lose_row()
  self.store:lose_row()
end

--- The messages that wait, by their numbers.
function VirtualFace:queue()
  local found = {}
  for i, one in ipairs(self.store.queue) do found[i] = one.number end
  return found
end

local RealFace = {}
RealFace.__index = RealFace

function RealFace:ask(op, args)
  return self.store:ask(op, args)
end

function RealFace:set(columns)
  for column, value in pairs(columns) do
    self.server:sql(("UPDATE crown_registry_v1 SET %s = $2 WHERE registry = $1"):format(column), self.name, value)
  end
end

function RealFace:unlock()
  self.server:sql("UPDATE crown_registry_v1 SET locked_until = 'epoch' WHERE registry = $1", self.name)
end

function RealFace:lose_row()
  self.server:sql "ALTER TABLE crown_registry_v1 DISABLE TRIGGER crown_registry_v1_keep"
  self.server:sql("DELETE FROM crown_registry_v1 WHERE registry = $1", self.name)
  self.server:sql "ALTER TABLE crown_registry_v1 ENABLE TRIGGER crown_registry_v1_keep"
end

function RealFace:queue()
  local found = {}
  for i, one in ipairs(self.server:sql("SELECT number FROM crown_registry_queue_v1 WHERE registry = $1 ORDER BY number",
    self.name)) do
    found[i] = one.number
  end
  return found
end

--- The stores by name: each `{ start(), stop(), open() }`; `open` gives a registry of its own.
stores.all = {}

stores.all.virtual = {
  start = function() end,
  stop = function() end,
  open = function()
    return setmetatable({ store = Virtual.new(crown.now) }, VirtualFace)
  end,
}

local server

--- Opens a registry in a server.
-- @string url
-- @tparam table at the server that `set` and the like speak to
-- @return it, and a function that closes it
function stores.at(url, at)
  local name = ("spec-%d"):format(math.random(1e9))
  local events = {}
  local store = assert(Real.open { url = url, registry = name, ttl = 1, timeout = 5, amnesia_wait = 1,
    trust_empty = true, emit = function(event, fields) events[#events + 1] = { event = event, error = fields.error } end,
    heard = function() end })
  return setmetatable({ store = store, server = at, name = name, events = events }, RealFace), function() store:close() end
end

stores.all.real = {
  start = function() server = Postgres.start() end,
  stop = function() server:destroy() end,
  open = function() return stores.at(server.url, server) end,
}

return stores
