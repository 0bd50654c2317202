--- A client of one Redis server, or of whichever its Sentinels name, or of any node of a cluster.
-- @internal crown.redis.client

local Connection = require "crown.redis.connection"
local explain = require "crown.link.explain"
local Reconnecting = require "crown.link.reconnecting"
local redis_url = require "crown.redis.url"
local sentinel = require "crown.redis.sentinel"

local Client = {}
Client.__index = Client

-- Of several hosts another one at each try.
local function choose(self, patience)
  if self.choose then
    local place, problem = self.choose(patience)
    if place or problem then return place, problem end
  end
  if self.parsed.master then return sentinel.primary(self.parsed, patience) end
  if not self.parsed.hosts then return nil end
  self.tries = (self.tries or 0) + 1
  return self.parsed.hosts[(self.tries - 1) % #self.parsed.hosts + 1]
end

local function open(self, link)
  local patience = link:patience(self.timeout)
  local place, problem = choose(self, patience)
  if not place and not self.parsed.path then return nil, problem end
  link.server = place and explain.place(place.host, place.port) or redis_url.label(self.parsed)
  local connection, why, code = Connection.open(self.parsed, place, patience, link)
  if not connection then return nil, why, code end
  connection.place = place
  local fine = true
  if self.setup then fine, why, code = self.setup(connection, patience) end
  if fine then return connection end
  connection:close(why)
  return nil, why, code
end

--- Makes a client; it connects by itself.
-- @string url
-- @tparam table options `timeout`; `label` and `quiet_label` for its events, nil for none; `store`, how it is shown ("redis");
-- `setup(connection, timeout)`, run before anything else, returns true; or nil, message, code; `choose(timeout)` →
-- `{ host, port }`, where to connect to next; nil and a message; or nil: where the URL leads
-- @treturn Client or nil and a message
function Client.new(url, options)
  local parsed, problem = redis_url.parse(url)
  if not parsed then return nil, problem end
  local self = setmetatable({ parsed = parsed, timeout = options.timeout or 5, setup = options.setup,
    choose = options.choose }, Client)
  self.link = Reconnecting.new { open = function(link) return open(self, link) end, label = options.label,
    quiet_label = options.quiet_label, store = options.store or "redis", timeout = self.timeout,
    server = redis_url.label(parsed), tls = parsed.tls }
  return self
end

--- Waits until there is a connection.
-- @number[opt] timeout seconds
-- @treturn Connection or nil, message, code
function Client:ready(timeout)
  return self.link:ready(timeout)
end

--- Why an answer did not come in time.
-- @number timeout seconds that it was waited for
-- @treturn string
function Client:late(timeout)
  return self.link:late(timeout)
end

-- The server is not, or not yet, one that takes writes: the next connection may lead to another.
local ELSEWHERE = { READONLY = true, LOADING = true, MASTERDOWN = true, NOAUTH = true }
local FULL = "OOM"
local LEADS_ON = { MOVED = true, ASK = true } -- of a cluster: read as they are

local function run(self, method, ...)
  local connection, problem, code = self:ready()
  if not connection then return nil, problem, code end
  local value
  value, problem, code = connection[method](connection, self.timeout, ...)
  if code == FULL then return nil, connection:explained(problem), code end
  if not ELSEWHERE[code] then return value, problem, code end
  connection:close(problem)
  return nil, connection:explained(problem), code
end

--- An answer that says no, in words that name the server and what to do; anything else as it is, and so is what `call` has put
-- into such words.
-- @string problem
-- @param code of `call`
-- @treturn string
function Client:answered(problem, code)
  local is_no = code and code:find "^%u+$" and not (LEADS_ON[code] or ELSEWHERE[code] or code == FULL) and self.link.server
  return is_no and explain.answer(problem, self.link.store, self.link.server) or problem
end

--- Runs a command.
-- @param ... its words
-- @return the answer; or nil, message, code; a null is nil alone
function Client:call(...)
  return run(self, "call", ...)
end

--- The same client for a slot of a cluster that is on its way to this node.
-- @treturn table with `call`, `ready` and `answered`
function Client:asking()
  return { call = function(_, ...) return run(self, "call_asking", ...) end,
    ready = function(_, timeout) return self:ready(timeout) end,
    answered = function(_, ...) return self:answered(...) end }
end

--- Ends it.
function Client:close()
  self.link:close()
end

return Client
