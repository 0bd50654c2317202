--- Hears over HTTP what has been freed: one request for all elections that follow on one way to a server, which the server
-- holds open until there is something to tell. It is a hint and no more: who hears it claims as ever, and who hears nothing
-- claims when it is due.
-- @internal crown.oracle.long_poll

local barrier = require "crown.link.barrier"
local core = require "crown.core"
local json = require "crown.text.json"
local retry = require "crown.core.retry"

local LongPoll = {}
LongPoll.__index = LongPoll

LongPoll.PATIENCE = 60 -- seconds that the server may hold a request open

local HELD = 1 -- seconds from which on it has held it
local APART = 0.1 -- seconds from one request to the next, however much there is to tell
local PAUSE_FIRST, PAUSE_MOST = 0.05, 5 -- seconds, where it tells nothing and does not wait either
local PATH, PATH_MOST = "^/[%w/._~%%%-]*$", 255
local LAST_MOST = 2 ^ 53

--- Makes one; nothing is asked before a server has offered it.
-- @tparam function ask called with a path, its query included → `{ status =, body = }`; or nil, message, code
-- @tparam function note called after each request with whether it was answered as it should, and why not
-- @treturn LongPoll
function LongPoll.new(ask, note)
  return setmetatable({ ask = ask, note = note, members = setmetatable({}, { __mode = "k" }),
    backoff = retry.new(PAUSE_FIRST, PAUSE_MOST) }, LongPoll)
end

--- Adds an election for as long as somebody holds it.
-- @tparam table member its `name`; `waiting`, true while it wants to hear; `send`, called with "freed", which may not wait
function LongPoll:add(member)
  core.atomic(function() self.members[member] = true end)
end

local function number_of(value)
  local number = type(value) == "number" and value or nil
  return number and number >= 0 and number < LAST_MOST and number % 1 == 0 and number or nil
end

-- Ends the run in the same step, so that an offer that comes next begins another one.
local function goes_on(self)
  for member in pairs(self.members) do
    if member.waiting then return true end
  end
  self.running = false
end

local function waiting_for(self, freed)
  local found = {}
  for member in pairs(self.members) do
    if member.waiting and freed[member.name] then found[#found + 1] = member end
  end
  return found
end

local function tell(self, names)
  local freed = {}
  for _, name in ipairs(names) do freed[name] = true end
  for _, member in ipairs(core.atomic(waiting_for, self, freed)) do
    member.waiting = false -- until it has been denied again
    member.send "freed"
  end
end

local function read(answer)
  local found = json.object(answer.body)
  if not found or type(found.freed) ~= "table" then return nil end
  return number_of(found.last), found.freed
end

-- @return whether the server told something that is new; or nil and why that cannot be said
local function hear(self, answer, problem, code)
  if not answer then
    if code ~= "timeout" and code ~= "closed" then self.after = nil end -- it would be answered the same way again
    return nil, problem
  end
  if answer.status == 204 then return false end
  local last, freed
  if answer.status == 200 then last, freed = read(answer) end
  if not last then
    self.after = nil
    return nil, answer.status == 200 and "what came says nothing of what was freed" or "it answered " .. answer.status
  end
  local new = last > (self.after or -1)
  self.after = last
  tell(self, freed)
  return new
end

local function ask(self)
  local query = self.after and ("?after=%.0f"):format(self.after) or ""
  return hear(self, self.ask(self.path .. query))
end

local function run(self)
  while core.atomic(goes_on, self) do
    local sent = core.now()
    local new, problem = barrier.call(ask, self)
    local held = core.now() - sent
    self.note(new ~= nil, problem)
    if new ~= nil and (new or held >= HELD) then
      self.backoff:reset()
      core.sleep(math.max(0, APART - held))
    else
      core.sleep(self.backoff:next())
    end
  end
end

local function begin(self, path, last)
  self.path = path
  if self.running then return end
  self.running, self.after = true, last
  core.detach(run, self)
end

--- Whether what an answer offers is a path behind the server's URL.
function LongPoll.fits(path)
  return type(path) == "string" and #path <= PATH_MOST and path:find(PATH) ~= nil
end

--- Takes note of where to hear what is freed. One request at a time is made there while anybody waits.
-- @string path one that fits
-- @param last the number up to which the answer that offers it knew what was freed; without one it is heard from now on
function LongPoll:offer(path, last)
  core.atomic(begin, self, path, number_of(last))
end

return LongPoll
