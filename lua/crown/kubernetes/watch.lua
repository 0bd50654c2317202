--- Hears of changed Leases in a namespace: one stream for all elections there that log in the same way. It is a hint and no more:
-- what is written names the version that was read, and who hears nothing asks when it is due.
-- @internal crown.kubernetes.watch

local barrier = require "crown.link.barrier"
local core = require "crown.core"
local Followers = require "crown.oracle.followers"
local json = require "crown.text.json"
local paths = require "crown.kubernetes.paths"
local retry = require "crown.core.retry"

local Watch = {}
Watch.__index = Watch

local HELD = 290 -- seconds that the server is asked to keep a stream open
local LATE = 30 -- seconds that it may do so beyond that
local LOOK = 0.25 -- seconds between two looks whether the server has begun to answer
local PAUSE_FIRST, PAUSE_MOST = 0.1, 10 -- seconds until it is opened anew
local FORBIDDEN, FORBIDDEN_PAUSE = 403, 60
local GONE = 410 -- the version that the stream began at is too old

--- The watch of a namespace.
-- @tparam Client client of crown.kubernetes.client
-- @string namespace
-- @treturn Watch the same for the same client
function Watch.of(client, namespace)
  local self = client.watches[namespace]
  if not self then
    self = setmetatable({ client = client, namespace = namespace, followers = Followers.new(), names = {},
      backoff = retry.new(PAUSE_FIRST, PAUSE_MOST) }, Watch)
    client.watches[namespace] = self
  end
  return self
end

--- Whether changes are heard right now.
-- @treturn boolean
function Watch:is_live() return self.live == true end

local function tell_all(self)
  for _, member in ipairs(self.followers:all()) do member:heard() end
end

-- Somebody whose right to watch ends with its own Lease may watch that one alone, as long as there is no other.
local function path_of(self)
  local name = not self.wide and next(self.names) or nil
  return paths.watch(self.namespace, name, self.version, HELD)
end

-- @return whether the stream goes on
local function hear(self, event)
  local object = event.object
  local meta = type(object) == "table" and type(object.metadata) == "table" and object.metadata or nil
  if event.type == "ERROR" or not meta then
    self.code = type(object) == "table" and object.code or nil
    return false
  end
  self.version = type(meta.resourceVersion) == "string" and meta.resourceVersion or self.version
  if event.type == "BOOKMARK" then return true end
  for member in self.followers:of(meta.name) do member:heard(event.type ~= "DELETED" and object or nil) end
  return true
end

-- What comes before the server answers with another status is a Status object in place of events.
local function is_refused(self, stream, line)
  if stream:status() == 200 then return false end
  local found = json.object(line or "")
  self.code = found and found.code or stream:status()
  return true
end

-- Reads events until the stream ends.
local function listen(self, stream)
  local over = core.now() + HELD + LATE
  while core.now() < over do
    local line, _, code = stream:line(LOOK)
    if stream:status() ~= 0 then
      if is_refused(self, stream, line) then return end
      self.live = true
      self.backoff:reset()
    end
    if not line and code ~= "timeout" then return end
    local event = line and json.object(line)
    if line and not (event and hear(self, event)) then return end
  end
end

local function follow(self)
  self.code = nil
  local stream = self.client:open_watch(path_of(self))
  if not stream then return end
  self.stream = stream
  local fine, problem = barrier.call(function() listen(self, stream) return true end)
  stream:close()
  self.stream, self.live = nil, false
  if not fine then error(problem, 0) end
end

local function goes_on(self)
  if #self.followers:all() > 0 then return true end
  self.running = false -- in the same step, so that whoever is added next begins another one
end

local function run(self)
  while core.atomic(goes_on, self) do
    barrier.call(follow, self)
    if self.code then self.version = nil end -- refused, or too old: what comes next begins with how things stand
    if self.code == 401 then self.client:doubt_login() end
    if self.code ~= GONE then
      core.sleep(self.code == FORBIDDEN and FORBIDDEN_PAUSE or self.backoff:next())
    end
    if not self.version then tell_all(self) end
  end
end

local function add(self, name, member)
  self.followers:add(name, member)
  if not self.names[name] and next(self.names) and not self.wide then
    self.wide = true
    if self.stream then self.stream:close() end
  end
  self.names[name] = true
  if self.running then return end
  self.running = true
  core.detach(run, self)
end

--- Adds an election's state, for as long as somebody holds it.
-- @string name of its Lease
-- @tparam table member has the method `heard(object)`: the Lease as it is now, nil where it was deleted or something may have
-- been missed; it may not wait
function Watch:add(name, member)
  core.atomic(add, self, name, member)
end

return Watch
