--- The servers of a NATS cluster that a bucket is reached by: those of the URL, and those that they name themselves.
--
-- A bucket with one replica is kept by one of them. When that one starts it may have lost the last writes, and only a
-- connection to it tells of its start. So such a bucket is spoken to there.
-- @internal crown.nats.servers

local explain = require "crown.link.explain"
local Connection = require "crown.nats.connection"
local core = require "crown.core"
local nats_url = require "crown.nats.url"

local Servers = {}
Servers.__index = Servers

local AGAIN = 30 -- seconds until a server that was not reached is sought again

--- Makes them; nothing is connected yet.
-- @tparam table parsed of crown.nats.url
-- @treturn Servers
function Servers.new(parsed)
  return setmetatable({ parsed = parsed, at = 1, named = {} }, Servers)
end

--- What messages name before there is a connection.
-- @treturn string `host:port`
function Servers:label()
  local place = self.parsed.hosts[self.at]
  return explain.place(place.host, place.port)
end

-- The URL's, the one that answered last time first; where one of them all is sought, also those that they name.
local function places_of(self)
  local hosts, places = self.parsed.hosts, {}
  for i = 0, #hosts - 1 do places[#places + 1] = hosts[(self.at - 1 + i) % #hosts + 1] end
  for _, place in ipairs(self.home and self.named or {}) do places[#places + 1] = place end
  return places
end

local function note(self, connection)
  local named = nats_url.hosts(table.concat(connection.others, ","))
  if named and connection.others[1] then self.named = named end
end

local function answered(self, connection, place)
  for i, host in ipairs(self.parsed.hosts) do
    if host == place then self.at = i end
  end
  note(self, connection)
  connection.opened, connection.sought, connection.began_with = core.now(), self.home, connection.others
end

--- Connects to one after the other, until one answers: the one that is sought, if that is among them.
-- @number timeout seconds for all together
-- @param link of crown.link.reconnecting
-- @treturn Connection or nil, message, code
function Servers:open(timeout, link)
  local places, home, spare, problem, code = places_of(self), self.home, nil, nil, nil
  for _, place in ipairs(places) do
    link.server = explain.place(place.host, place.port)
    local connection
    -- One that is silent leaves the others their part of the time.
    connection, problem, code = Connection.open(self.parsed, place, timeout / #places, link)
    if connection then
      answered(self, connection, place)
      if not home or connection.name == home then
        if spare then spare:close "another server was sought" end
        return connection
      end
      if spare then connection:close "another server was sought" end
      spare = spare or connection
    end
  end
  if spare then return spare end
  return nil, problem, code
end

-- Whether the server that is sought may be reached by now: others have come to the cluster, or gone, or it is long ago.
local function is_worth_a_try(self, connection)
  return connection.sought ~= self.home or connection.others ~= connection.began_with
    or core.now() - connection.opened > AGAIN
end

--- Whether a connection leads to where a bucket is kept. Else that server is sought, and the connection given up; when it cannot
-- be reached, the connection stays: who leads goes on by it.
-- @tparam Connection connection
-- @tparam table about the stream, as JetStream tells it
-- @treturn boolean true; or nil, message, code
function Servers:keep(connection, about)
  local alone = about.cluster and about.config.num_replicas == 1
  self.home = alone and about.cluster.leader or nil
  if not alone or self.home and self.home == connection.name then return true end
  if self.home and is_worth_a_try(self, connection) then
    note(self, connection)
    connection:close(("the bucket is kept by the server %s"):format(self.home))
    return nil, connection.closed, "closed"
  end
  return nil, ("the bucket has one replica, on the server %s, which is not reached: name it in the URL, or have more replicas")
    :format(self.home or "that is down"), "store"
end

return Servers
