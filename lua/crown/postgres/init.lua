--- A Postgres client for handlers and oracles: straight-line calls that suspend the task, never the loop.
-- @module crown.postgres

local bare = require "crown.core.postgres"
local conditions = require "crown.link.conditions"
local member_of_scope = require "crown.core.subscription"
local postgres_url = require "crown.postgres.url"

local postgres = {}

local DEFAULT_TIMEOUT = 5

--- A client: one connection, made anew when it breaks.
-- @type Client
local Client = {}
Client.__index = Client

--- Runs one statement.
-- @string sql with $1, $2 … for values
-- @param ... the values: strings, numbers, booleans, nil
-- @treturn table rows by column name, and `affected`; or nil, a message and the SQLSTATE, or "timeout", "closed", "protocol"
-- (more than 32 MiB; a single value that is larger may be in memory before that is seen), …
function Client:query(sql, ...)
  local rows, rest, code = self.bare:query(sql, self.timeout, 0, ...)
  if not rows then return nil, rest, code end
  while rest and rest:fill(rows) do end -- between two of them others have their turn
  return rows
end

-- The function that a notification is handed to: in a task of the term or runtime that subscribed, and no more once that is
-- over. What elections share (`background`) belongs to none of them.
local function member_of(client, subscription)
  if client.background then return end
  local member, problem, code = member_of_scope(function(fn, ...) return fn(...) end, function() subscription.cancel() end)
  if not member then return nil, problem, code end
  local fn, missed, begun = subscription.fn, subscription.missed, subscription.begun
  subscription.fn = function(payload) member:tell(fn, payload) end
  subscription.missed = missed and function() member:tell(missed) end
  subscription.begun = begun and function() member:tell(begun) end
  return member
end

--- Calls a function, in a task of its own, for each notification on a channel; inside a term until its end.
-- @string channel
-- @tparam function fn `fn(payload)`
-- @tparam[opt] function missed called after a lost connection: notifications may have been missed
-- @tparam[opt] function begun called when the server listens first: what happened before was not heard
-- @treturn table a subscription with `:cancel()`, while which the runtime runs on; or nil, message, code
function Client:listen(channel, fn, missed, begun)
  local subscription = { fn = fn, missed = missed, begun = begun }
  local member, problem, code = member_of(self, subscription)
  if problem then return nil, problem, code end
  local known = self.channels[channel] or {}
  self.channels[channel] = known
  known[subscription] = true
  if member then self.bare:hold() end
  function subscription.cancel()
    if not known[subscription] then return end
    known[subscription] = nil
    if member then
      member:close()
      self.bare:release()
    end
    if next(known) == nil then
      self.channels[channel], self.listened[channel] = nil, nil
      self.bare:unlisten(channel)
    end
  end
  local listening
  listening, problem, code = self.bare:listen(channel)
  if listening then return subscription end
  subscription.cancel()
  return nil, problem, code
end

--- Sets the time that later statements may take.
-- @number seconds 5 at first; a statement without an answer by then closes the connection, and the server is asked to cancel it
function Client:set_timeout(seconds)
  self.timeout = seconds
end

--- How it is: see crown.link.conditions.
function Client:condition()
  local state, since, heard, reconnects, server, problem, connections, limit = self.bare:condition()
  return { store = self.store, server = server ~= "" and server or self.named, state = state, since = since, heard = heard,
    reconnects = reconnects, problem = problem, connections = connections, limit = limit }
end

--- Closes the connection and ends all subscriptions.
function Client:close()
  conditions.remove(self)
  for _, known in pairs(self.channels) do
    for subscription in pairs(known) do subscription.cancel() end
  end
  self.bare:close()
end

-- Without a payload: it is listened on, on a connection that may be another one than before.
local function deliver(channels, listened, channel, payload)
  for subscription in pairs(channels[channel] or {}) do
    if payload then
      subscription.fn(payload)
    else
      local due = listened[channel] and subscription.missed or not listened[channel] and subscription.begun
      if due then due() end
    end
  end
  listened[channel] = listened[channel] or (channels[channel] and not payload)
end

-- Thousands may come together.
local function deliver_all(channels, listened, heard)
  for i = 1, #heard, 2 do deliver(channels, listened, heard[i], heard[i + 1] or nil) end
end

local function set_up(client, generation, setup)
  local fine, ready, problem = pcall(setup, client, generation)
  if not fine then ready, problem = nil, ready end
  client:admit(generation, not ready and tostring(problem or "the connection's setup failed") or nil)
end

--- Makes a client without waiting for its connection.
-- @string url
-- @tparam[opt] table options `timeout`; `background`: subscriptions do not keep the runtime running; `setup`:
-- `setup(bare, generation)` looks at each new connection before it is used and returns true, or nil and a message;
-- `on_closed(generation, message)`; `bounded`: the server ends by itself a statement that waits for a lock, or takes, too long;
-- `keep`, `label`, `silence`: see runtime/bind/bind_postgres.c
-- @treturn Client or nil, message, code
function postgres.new(url, options)
  options = options or {}
  local channels, listened = {}, {}
  local timeout = options.timeout or DEFAULT_TIMEOUT
  local plain, problem = postgres_url.check(url)
  if not plain then return nil, problem, "usage" end
  local client, message, code
  local function on_event(kind, first, second)
    if kind == "notified" then return deliver_all(channels, listened, client:heard()) end
    local generation = tonumber(first)
    if kind == "connected" then return set_up(client, generation, options.setup) end
    if options.on_closed then options.on_closed(generation, second) end
  end
  client, message, code = bare.open(plain, { connect_timeout = timeout, keep = options.keep, label = options.label,
    silence = options.silence, bounded = options.bounded, setup = options.setup ~= nil, on_event = on_event })
  if not client then return nil, message, code end
  local self = setmetatable({ bare = client, channels = channels, listened = listened, timeout = timeout,
    background = options.background, store = options.label or "postgres", named = postgres_url.label(url) }, Client)
  conditions.add(self)
  return self
end

--- Connects.
-- @string url `postgres://user:password@host:port/database?option=value`, as libpq reads it; what it leaves out comes
-- from the environment (PGHOST, PGPASSFILE, PGSERVICE, …)
-- @tparam[opt] table options `timeout` in seconds (5), for connecting and for each statement
-- @treturn Client or nil, message, code
function postgres.connect(url, options)
  local client, problem, code = postgres.new(url, options)
  if not client then return nil, problem, code end
  local generation
  generation, problem, code = client.bare:ready(client.timeout)
  if generation then return client end
  client:close()
  return nil, problem, code
end

return postgres
