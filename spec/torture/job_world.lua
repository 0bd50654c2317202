--- Three hosts that run one crontab on a real store, each with a way of its own to it and a wall clock of its own. A minute of those
-- clocks takes some seconds, and no two hosts agree about it.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local ledger = require "torture.job_ledger"
local new_random = require "torture.random"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local Way = require "torture.way"
local World = require "torture.world"
local write_file = require "support.write_file"
local WrongClock = require "support.wrong_clock"

local JobWorld = setmetatable({}, { __index = World })
JobWorld.__index = JobWorld

local NODES = { "ann", "ben", "cat" }
local NAME = "spec"            -- which faults of stores mean
local MINUTE = 60
local STEP, PAUSE = 25, 2      -- so many seconds of the clocks pass in about so many
local APART = 50               -- seconds between the clocks, at most
local LOOK = 5                 -- seconds in which a host notices that its clock was set
local FIRST, PATIENCE = 60, 60 -- seconds until the first run, and until all have run when all is well again
local LOSES = { "without data", "older data", "FLUSHALL", "truncate", "dropped", "fail over", "falls behind", "crash" }

--- Stores that keep marks of runs. S3 does too, but refuses requests of hosts whose clocks are a quarter of an hour from its own.
JobWorld.STORES = { "redis", "majority", "postgres", "mysql" }

--- Clocks are set by this world alone: one that leaps over a day would have thousands of runs made up for. And of what was paused
-- nothing need run.
JobWorld.WITHOUT = { clock = true, orders = true }

local function boot()
  return tonumber(read_file "/proc/uptime":match "^[%d.]+")
end

--- Makes one; the hosts are started.
-- @tparam table store of torture.stores
function JobWorld.new(store)
  local self = setmetatable({ store = store, said = {}, intervals = {}, candidates = {}, busy = 0, faulty = {},
    elections = { NAME }, dir = tempdir() }, JobWorld)
  self.began, self.ahead = crown.now(), boot() - crown.now()
  self.random = new_random(#store.name)
  local script = write_file(self.dir .. "/job", ledger.script(self.dir))
  write_file(self.dir .. "/jobs", ("CRON_TZ=UTC\n#: name=%s retries=100 catch-up=each output=keep\n* * * * * exec sh %s\n"):format(NAME,
    script))
  for i, node in ipairs(NODES) do
    local who = { node = node, clock = WrongClock.new(self.random(APART)), ways = {} }
    for j, port in ipairs(store.ports or {}) do who.ways[j] = Way.open(port) end
    self.candidates[i] = who
    self:start(who)
  end
  return self
end

--- Starts a host.
function JobWorld:start(who)
  local numbers, env = {}, who.clock:environment()
  for i, way in ipairs(who.ways) do numbers[i] = way.port end
  env.CROWN_DIRECTORY = tempdir()
  local url = self.store.url(unpack(numbers))
  url = ("%s%sttl=%g"):format(url, url:find "?" and "&" or "?", self.store.ttl)
  who.member = Candidate.start { args = { "cron", "--oracle", url, self.dir .. "/jobs" }, node = who.node,
    log = ("%s/%s.log"):format(self.dir, who.node), env = env }
end

--- Where the job was begun last, or nil.
function JobWorld:leader()
  local lines = ledger.read(self.dir)
  for i = #lines, 1, -1 do
    for _, who in ipairs(self.candidates) do
      if lines[i].what == "begin" and who.node == lines[i].node then return who end
    end
  end
end

--- Suffers a fault. What has happened meanwhile tells whether the store may have lost records by it.
-- @tparam table fault of torture.schedule
function JobWorld:suffer(fault)
  local said, from = #self.said, crown.now()
  World.suffer(self, fault)
  local interval = { from = from + self.ahead, to = crown.now() + self.ahead + self.store.cost }
  for i = said + 1, #self.said do
    for _, words in ipairs(LOSES) do interval.loses = interval.loses or self.said[i]:find(words, 1, true) ~= nil end
  end
  table.insert(self.faulty, interval)
end

-- All clocks go on, none at the same instant.
local function move_clocks(self)
  while not self.over do
    for _, who in ipairs(self.candidates) do
      crown.sleep(self.random() * PAUSE / #self.candidates)
      who.clock:set(who.clock.seconds + STEP)
    end
    crown.sleep(PAUSE / 2)
  end
end

-- The last minute that is over by every clock.
local function last_slot(self)
  local least = math.huge
  for _, who in ipairs(self.candidates) do least = math.min(least, os.time() + who.clock.seconds) end
  return least - least % MINUTE
end

-- Where the store may have lost what it knew, what was due up to the end of that may be left out.
local function owed_from(self, lines)
  local first
  for _, one in ipairs(lines) do first = first or one.what == "begin" and one.slot end
  local lost = 0
  for _, one in ipairs(self.faulty) do lost = math.max(lost, one.loses and one.to or 0) end
  if lost == 0 then return first end
  for _, one in ipairs(lines) do
    if one.what == "begin" and one.at > lost then return one.slot end
  end
  return nil
end

--- Plays a schedule, waits until what was due has run, and judges.
-- @tparam table list of torture.schedule
-- @treturn table as torture.judge gives it
function JobWorld:play(list)
  crown.spawn(move_clocks, self)
  eventually(function() return #ledger.read(self.dir) > 0 end, FIRST)
  self:hurt_by(list)
  crown.sleep(self.store.cost + 2 * LOOK) -- with occurrences that nothing hurts
  self.over = true
  local last, until_then = last_slot(self), crown.now() + PATIENCE
  local lines, first, missing
  repeat
    crown.sleep(0.2)
    lines = ledger.read(self.dir)
    first = owed_from(self, lines)
    missing = first and ledger.missing(lines, first, last) or { "any" }
  until #missing == 0 or crown.now() > until_then
  local wrong, again = ledger.wrong(lines, self.faulty, self.store.ttl)
  if #missing > 0 then
    wrong[#wrong + 1] = ("%d occurrences from %s to %d have not run: %s"):format(#missing, tostring(first), last,
      table.concat(missing, " "))
  end
  local count = 0
  for _ in pairs(ledger.done(lines)) do count = count + 1 end
  self:say("%d occurrences have succeeded, %d runs of what had succeeded before for a reason", count, again)
  return { wrong = wrong, terms = count, overlap = 0, epochs = 0, gap = 0, unexplained = 0 }
end

--- Ends everything.
-- @treturn table which servers had ended before, in words
function JobWorld:destroy()
  self.over = true
  for _, who in ipairs(self.candidates) do
    for _, way in ipairs(who.ways) do way:close() end
    who.member:destroy()
  end
  local found = {}
  World.ended_servers(found, self.store)
  return found
end

return JobWorld
