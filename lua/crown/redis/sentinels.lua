--- Who the primary is, by most of its Sentinels: those that the URL names, and those that these know of. One that was cut off
-- together with an old primary goes on naming that, so one alone does not decide. Each Sentinel counts once, by its own id,
-- however many names lead to it; one that is silent counts for nobody. What they say is never kept: who wants to know asks.
-- @internal crown.redis.sentinels

local core = require "crown.core"
local explain = require "crown.link.explain"
local promise = require "crown.core.promise"
local sentinel = require "crown.redis.sentinel"
local several = require "crown.link.several"
local slots = require "crown.redis.slots"
local together = require "crown.link.together"
local url = require "crown.text.url"

local Sentinels = {}
Sentinels.__index = Sentinels

local PLACES_MOST = 64 -- that are asked: a server that is none of ours may name any number

local name_of = slots.name

local function add(self, place)
  if self.known[name_of(place)] or #self.places >= PLACES_MOST then return end
  self.known[name_of(place)] = true
  self.places[#self.places + 1] = place
end

--- The Sentinels of a URL. They are connected to when they are asked.
-- @tparam table parsed as crown.redis.url gives it
-- @treturn Sentinels
function Sentinels.new(parsed)
  local self = setmetatable({ parsed = parsed, places = {}, known = {}, connections = {}, opening = {} }, Sentinels)
  for _, place in ipairs(parsed.hosts) do add(self, place) end
  self.named = #self.places
  return self
end

-- Of two questions that connected at once, one keeps its connection.
local function keep(self, name, connection)
  local other = self.connections[name]
  if self.closed or other and not other.closed then return other end
  self.connections[name] = connection
  return connection
end

local function open(self, place, timeout)
  local name = name_of(place)
  local connection, problem = sentinel.open(self.parsed, place, timeout)
  if not connection then return nil, problem end
  connection.id, problem = connection:call(timeout, "SENTINEL", "MYID")
  local kept = type(connection.id) == "string" and core.atomic(keep, self, name, connection)
  if kept ~= connection then connection:close() end
  return kept or nil, problem or "what it says is not a Sentinel's id"
end

-- @return the connection that there is; or nil, and whether it is ours to make: else the promise is kept for who makes it
local function look(self, name, one)
  local old = self.connections[name]
  if old and not old.closed then return old end
  local waiting = self.opening[name]
  self.opening[name] = waiting or {}
  table.insert(self.opening[name], one)
  return nil, not waiting
end

local function take_waiting(self, name)
  local waiting = self.opening[name]
  self.opening[name] = nil
  return waiting
end

-- Many may ask at once: one of them connects, so that a Sentinel that hangs sees one connection.
local function connect(self, place, timeout)
  local name, one = name_of(place), promise()
  local connection, ours = core.atomic(look, self, name, one)
  if connection then return connection end
  if ours then
    core.detach(function()
      local fine, made, problem = pcall(open, self, place, timeout)
      for _, waiting in ipairs(core.atomic(take_waiting, self, name)) do
        waiting:resolve(fine and made or nil, fine and problem or tostring(made))
      end
    end)
  end
  return one:wait(2 * timeout)
end

-- @treturn table the others' places by id, as one Sentinel tells them
local function others_of(answer)
  local others = {}
  for _, fields in ipairs(type(answer) == "table" and answer or {}) do
    local one = {}
    for i = 1, type(fields) == "table" and #fields - 1 or 0, 2 do one[tostring(fields[i])] = fields[i + 1] end
    local place = url.place(one.ip, one.port)
    local has_id = type(one.runid) == "string" and one.runid ~= ""
    if place then others[has_id and one.runid or name_of(place)] = place end
  end
  return others
end

-- @treturn table `{ id =, names = a primary, others = }`, or nil and a message
local function ask_one(self, place, timeout)
  local connection, problem = connect(self, place, timeout)
  if not connection then return nil, problem end
  local primary, others = together(function() return sentinel.ask(connection, self.parsed.master, timeout) end,
    function() return connection:call(timeout, "SENTINEL", "sentinels", self.parsed.master) end)
  if not primary[1] then return nil, primary[2] end
  if others[1] == nil then return nil, others[2] end
  return { id = connection.id, names = primary[1], others = others_of(others[1]) }
end

-- @treturn table `{ all = how many there are, needed = , most = how many name the place that most name, place = }`
local function count(self, answers)
  local all, votes, named, said = 0, {}, {}, { most = 0 }
  local function know(id)
    if votes[id] == nil then all, votes[id] = all + 1, false end
  end
  for i = 1, #self.places do
    local answer = answers[i]
    if answer and answer.id then
      know(answer.id)
      for id in pairs(answer.others) do know(id) end
      if not votes[answer.id] then
        local name = name_of(answer.names)
        votes[answer.id], named[name] = true, (named[name] or 0) + 1
        if named[name] > said.most then said.most, said.place = named[name], answer.names end
      end
    end
  end
  said.all = math.max(all, self.named)
  said.needed = math.floor(said.all / 2) + 1
  return said
end

local function learn(self, answers)
  local answered = {}
  for _, answer in pairs(answers) do
    if answer.id then answered[answer.id] = true end
  end
  for _, answer in pairs(answers) do
    for id, place in pairs(answer.others or {}) do
      if not answered[id] then add(self, place) end
    end
  end
end

local function ask_all(self, first, answers, timeout)
  local places = #self.places - first + 1
  several.ask(places, { enough = math.huge, grace = 0, most = timeout, is_decided = function()
    local said = count(self, answers)
    return said.most >= said.needed
  end }, function(i)
    local at = first + i - 1
    local answer, problem = ask_one(self, self.places[at], timeout)
    answers[at] = answer or { problem = problem or "no answer" }
    return answer
  end)
end

local function in_words(self, said, answers)
  local words = {}
  for i, place in ipairs(self.places) do
    local answer = answers[i] or { problem = "no answer" }
    local name = name_of(place)
    words[i] = name .. (answer.names and " names " .. name_of(answer.names) or ": " .. explain.bare(name, answer.problem))
  end
  return ("%d of %d Sentinels agree on a primary, %d are needed: %s"):format(said.most, said.all, said.needed,
    table.concat(words, "; "))
end

--- Asks them all at once, and those that they know of.
-- @number timeout seconds
-- @treturn table `{ host, port }`, which most of all Sentinels name; or nil and a message
function Sentinels:primary(timeout)
  local answers, first, until_when = {}, 1, core.now() + timeout
  repeat
    local last = #self.places
    ask_all(self, first, answers, math.max(0, until_when - core.now()))
    first = last + 1
    core.atomic(learn, self, answers)
    local said = count(self, answers)
    if said.most >= said.needed then return said.place end
    if first > #self.places then return nil, in_words(self, said, answers) end
  until false
end

--- Whether most of them name a place now.
-- @tparam table place
-- @number timeout seconds
-- @treturn boolean true; or nil, a message, and whether they name another
function Sentinels:confirm(place, timeout)
  local found, problem = self:primary(timeout)
  if not found then return nil, problem end
  if name_of(found) == name_of(place) then return true end
  return nil, ("most Sentinels name %s as the primary, and no more %s"):format(name_of(found), name_of(place)), true
end

--- Ends its connections.
function Sentinels:close()
  self.closed = true
  for _, connection in pairs(self.connections) do connection:close() end
end

return Sentinels
