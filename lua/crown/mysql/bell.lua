--- A bell for followers, since MySQL does not notify clients of changes. Each runtime holds a lock (GET_LOCK) named after its
-- session. A follower waits for the lock of the session that leads. The leader lets its lock go when it has given an election
-- back, and the server does so when the leader's connection ends: then followers look. It is a hint and no more: without it they
-- look when it is due.
-- @internal crown.mysql.bell

local Client = require "crown.mysql.client"
local core = require "crown.core"
local retry = require "crown.core.retry"
local statements = require "crown.mysql.statements"

local Bell = {}
Bell.__index = Bell

local MOST = 3 -- leaders whose bells are heard: each costs a connection
local WAIT_MOST = 5 -- seconds that the server is asked to wait: a silent connection would be asked for a sign of life
local WANTED_LEAST = 10 -- seconds since the leader was seen last, after which its bell is not heard any more
local PAUSE = 1 -- seconds from one ring to the next at least
local BACK_FIRST, BACK_MOST = 0.1, 5 -- seconds until a connection is opened anew
local NO_LIMIT = { "SET SESSION max_statement_time = 0", "SET SESSION max_execution_time = 0" } -- of MariaDB, of MySQL

--- Makes one.
-- @tparam Client client of the store: its host is the one that the bell is heard at
-- @string place what tells the store's tables from others of the server
-- @tparam table options `timeout` of a question, `retry` from one look of a follower to the next, in seconds
-- @treturn Bell
function Bell.new(client, place, options)
  return setmetatable({ client = client, place = place, timeout = options.timeout,
    wanted_for = math.max(WANTED_LEAST, 3 * (options.retry or 0)), own = {}, leaders = {}, count = 0 }, Bell)
end

local function lock_of(self, session)
  return ("CONCAT('crown-', MD5(%s))"):format(statements.quoted(self.place .. session))
end

-- --- of a leader

-- What is asked after a write, in a task of its own: whatever becomes of it, the write was answered.
local function later(connection, timeout, sql, done)
  core.detach(function()
    local results = connection:query(timeout, sql)
    if results and done then done(results) end
  end)
end

local function hold(self, connection, session)
  connection.held = connection.held or {}
  if connection.held[session] then return end
  connection.held[session] = true
  later(connection, self.timeout, ("SELECT GET_LOCK(%s, 0)"):format(lock_of(self, session)), function(results)
    local row = results[1].rows and results[1].rows[1]
    if not row or row[1] ~= "1" then connection.held[session] = nil end -- followers have it for a moment: with the next renewal
  end)
end

local function ring(self, connection)
  for session in pairs(connection.held or {}) do
    connection.held[session] = nil
    later(connection, self.timeout, "DO RELEASE_LOCK(" .. lock_of(self, session) .. ")")
  end
end

--- Takes note of what this runtime has written.
-- @tparam Connection connection by which it was written
-- @tparam table renewed names of sessions of this runtime that were written
-- @bool is_news others may claim an election now, or a session has ended
function Bell:wrote(connection, renewed, is_news)
  for _, session in ipairs(renewed) do self.own[session] = true end
  if is_news then return core.atomic(ring, self, connection) end
  for _, session in ipairs(renewed) do core.atomic(hold, self, connection, session) end
end

--- A connection of the store has been opened: the lock of the one before went with that.
-- @tparam Connection connection
function Bell:opened(connection)
  for session in pairs(self.own) do core.atomic(hold, self, connection, session) end
end

-- --- of a follower

local function open(self)
  local parsed = self.client.parsed
  return Client.open(parsed, parsed.hosts[self.client.at], self.timeout, function(connection, timeout)
    local mariadb = connection.greeting.version:find "MariaDB"
    return connection:query(timeout, mariadb and NO_LIMIT[1] or NO_LIMIT[2])
  end)
end

-- Whether anybody holds the lock is asked first: one that is free is news once, and not each time that it is got.
local WAIT = "SELECT IS_USED_LOCK(%s) IS NULL, IF(GET_LOCK(%s, %d), RELEASE_LOCK(%s), 0)"

-- Those who are told look in tasks of their own.
local function await_ring(self, leader)
  local wait, lock = math.max(1, math.floor(math.min(WAIT_MOST, self.timeout))), lock_of(self, leader.session)
  local results = leader.connection:query(wait + self.timeout, WAIT:format(lock, lock, wait, lock))
  local row = results and results[1].rows and results[1].rows[1]
  if not row then return leader.connection:close "no answer to a wait for a lock" end
  local was_free, is_free = leader.is_free, row[1] == "1"
  leader.is_free = is_free
  if row[2] ~= "1" then return end
  if not (was_free and is_free) then self.tell() end
  core.sleep(PAUSE)
end

local function is_wanted(self, leader)
  if not self.closed and core.now() < leader.until_when then return true end
  self.leaders[leader.session], self.count = nil, self.count - 1 -- in the same step: the next look begins anew
  return false
end

local function listen(self, leader)
  local backoff = retry.new(BACK_FIRST, BACK_MOST)
  while core.atomic(is_wanted, self, leader) do
    if leader.connection and not leader.connection.closed then
      await_ring(self, leader)
    else
      if leader.connection then self.tell() end -- something may have been missed
      leader.connection = open(self)
      if leader.connection then backoff:reset() else core.sleep(backoff:next()) end
    end
  end
  if leader.connection then leader.connection:close() end
end

local function saw(self, session)
  local leader, until_when = self.leaders[session], core.now() + self.wanted_for
  if leader then leader.until_when = until_when return end
  if self.own[session] or self.count == MOST or self.closed then return end
  leader = { session = session, until_when = until_when }
  self.leaders[session], self.count = leader, self.count + 1
  core.detach(listen, self, leader)
end

--- Takes note that a session holds an election.
-- @string session its name
function Bell:saw(session)
  if self.tell then core.atomic(saw, self, session) end
end

--- From now on tells of rings.
-- @tparam function fn called without arguments; it may not wait
function Bell:hear(fn)
  self.tell = fn
end

--- Ends it.
function Bell:close()
  self.closed = true
  for _, leader in pairs(self.leaders) do
    if leader.connection then leader.connection:close() end
  end
end

return Bell
