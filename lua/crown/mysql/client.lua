--- A client of one MySQL server: of several hosts, of the first that can be used.
-- @internal crown.mysql.client

local Connection = require "crown.mysql.connection"
local mysql_url = require "crown.mysql.url"
local Reconnecting = require "crown.link.reconnecting"

local Client = {}
Client.__index = Client

--- Opens a connection.
-- @tparam table parsed of crown.mysql.url
-- @tparam table place one of its hosts
-- @number timeout seconds for each step
-- @tparam[opt] function setup `setup(connection, timeout)` → true; or nil, message, code
-- @param[opt] link see crown.link.reconnecting
-- @treturn Connection or nil, message, code
function Client.open(parsed, place, timeout, setup, link)
  local connection, problem, code = Connection.open(parsed, place, timeout, link)
  if not connection then return nil, problem, code end
  local fine = true
  if setup then fine, problem, code = setup(connection, timeout) end
  if fine then return connection end
  connection:close(problem)
  return nil, connection.closed, code
end

-- Each host once, the one that was good last first.
local function open(self, link)
  local hosts, problem, code = self.parsed.hosts, nil, nil
  for _ = 1, #hosts do
    local connection
    local place = hosts[self.at]
    link.server = mysql_url.label(place)
    connection, problem, code = Client.open(self.parsed, place, link:patience(self.timeout), self.setup, link)
    if connection then return connection end
    self.at = self.at % #hosts + 1
  end
  return nil, problem, code
end

--- Makes one; it connects by itself.
-- @tparam table parsed of crown.mysql.url
-- @tparam table options `timeout` in seconds; `label` for its events, nil for none; `setup` as of `open`
-- @treturn Client its `timeout` may be changed
function Client.new(parsed, options)
  local self = setmetatable({ parsed = parsed, timeout = options.timeout, setup = options.setup, at = 1 }, Client)
  self.link = Reconnecting.new { open = function(link) return open(self, link) end, label = options.label, store = "mysql",
    timeout = self.timeout, server = mysql_url.label(parsed.hosts[1]), tls = parsed.tls }
  return self
end

--- Waits until there is a connection.
-- @treturn Connection or nil, message, code
function Client:ready()
  return self.link:ready(self.timeout)
end

--- Ends it.
function Client:close()
  self.link:close()
end

return Client
