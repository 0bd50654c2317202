--- A client of one Redis server, or of whichever its Sentinels name.
-- @module crown.redis.client

local Connection = require "crown.redis.connection"
local Reconnecting = require "crown.link.reconnecting"
local redis_url = require "crown.redis.url"
local sentinel = require "crown.redis.sentinel"

local Client = {}
Client.__index = Client

local function open(self, link)
  local place, problem = self.place or self.parsed.hosts and self.parsed.hosts[1]
  if self.parsed.master then
    place, problem = sentinel.primary(self.parsed, self.timeout)
    if not place then return nil, problem end
  end
  link.server = place and ("%s:%d"):format(place.host, place.port) or redis_url.label(self.parsed)
  local connection, why = Connection.open(self.parsed, place, self.timeout, link)
  if not connection then return nil, why end
  local fine = true
  if self.setup then fine, why = self.setup(connection) end
  if fine then return connection end
  connection:close(why)
  return nil, why
end

--- Makes a client; it connects by itself.
-- @string url
-- @tparam table options `timeout`; `label` for its events, nil for none; `store`, how it is shown ("redis");
-- `setup(connection)`, run before anything else; `place`, `{ host, port }`: another server of the same cluster
-- @treturn Client or nil and a message
function Client.new(url, options)
  local parsed, problem = redis_url.parse(url)
  if not parsed then return nil, problem end
  local self = setmetatable({ parsed = parsed, timeout = options.timeout or 5, setup = options.setup,
    place = options.place }, Client)
  self.link = Reconnecting.new { open = function(link) return open(self, link) end, label = options.label,
    store = options.store or "redis",
    timeout = self.timeout, server = redis_url.label(parsed) }
  return self
end

--- Waits until there is a connection.
-- @number[opt] timeout seconds
-- @treturn Connection or nil, message, code
function Client:ready(timeout)
  return self.link:ready(timeout)
end

-- The server is not, or not yet, one that takes writes: the next connection may lead to another.
local ELSEWHERE = { READONLY = true, LOADING = true, MASTERDOWN = true, NOAUTH = true }

--- Runs a command.
-- @param ... its words
-- @return the answer; or nil, message, code; a null is nil alone
function Client:call(...)
  local connection, problem, code = self:ready()
  if not connection then return nil, problem, code end
  local value
  value, problem, code = connection:call(self.timeout, ...)
  if ELSEWHERE[code] then connection:close(problem) end
  return value, problem, code
end

--- Ends it.
function Client:close()
  self.link:close()
end

return Client
