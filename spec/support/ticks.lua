--- Reads the ticks of children (spec/support/ticker.c): who led when, and whether two led at once.
local eventually = require "crown.testing.eventually"
local files = require "crown.core.files"
local read_file = require "crown.text.read_file"
local signals = require "support.signals"

local ticks = {}

-- So many ticks of a new child are waited for before anybody says that the old one is silent.
local SETTLED = 20

-- What is known of each file so far: a file grows by thousands of lines a second, so each is read once.
local logs = {}

local function new_log()
  return { size = 0, ticks = {}, lives = {}, by_key = {}, sorted = true }
end

-- Keeps the ticks of one child, with all that it has started, as one life.
local function add(log, tick)
  local last = log.ticks[#log.ticks]
  if last and last.at > tick.at then log.sorted = false end
  log.ticks[#log.ticks + 1] = tick
  local key = ("%s %s %s %s"):format(tick.node, tick.epoch, tick.role, tick.life)
  local life = log.by_key[key]
  if not life then
    life = { node = tick.node, epoch = tick.epoch, role = tick.role, first = tick.at, last = tick.at, count = 0 }
    log.by_key[key], log.lives[#log.lives + 1] = life, life
  end
  life.first, life.last = math.min(life.first, tick.at), math.max(life.last, tick.at)
  life.count = life.count + 1
end

-- Takes in what was written since the last look, up to the last whole line.
local function look(path)
  local log = logs[path] or new_log()
  local file = io.open(path, "rb")
  if not file then return log end
  logs[path] = log
  file:seek("set", log.size)
  local text = file:read("*a"):match "^.*\n" or ""
  file:close()
  log.size = log.size + #text
  for at, node, epoch, role, pid, life in text:gmatch "(%d+) (%S+) (%S+) (%S+) (%d+) (%d+)\n" do
    add(log, { at = tonumber(at) / 1e9, node = node, epoch = tonumber(epoch) or 0, role = role, pid = tonumber(pid),
      life = life })
  end
  return log
end

local function by_first(a, b) return a.first < b.first end

-- The lives that match, the first to tick first.
local function lives_of(path, matches)
  local found = {}
  for _, life in ipairs(look(path).lives) do
    if matches(life) then found[#found + 1] = life end
  end
  table.sort(found, by_first)
  return found
end

local function is_leader(life) return life.role == "leader" end

--- All ticks of a file, in order of time.
-- @treturn table of `{ at = seconds, node =, epoch =, role =, pid = }`
function ticks.read(path)
  local log = look(path)
  if not log.sorted then table.sort(log.ticks, function(a, b) return a.at < b.at end) end
  log.sorted = true
  return log.ticks
end

--- The terms that ticked, the first to tick first.
-- @treturn table of `{ epoch =, node =, first =, last = }`, in seconds
function ticks.terms(path)
  local by_epoch, order = {}, {}
  for _, life in ipairs(ticks.lives(path)) do
    local term = by_epoch[life.epoch]
    if not term then
      term = { epoch = life.epoch, node = life.node, first = life.first, last = life.last }
      by_epoch[life.epoch], order[#order + 1] = term, term
    end
    term.last = math.max(term.last, life.last)
  end
  return order
end

--- The leaders' children that ticked, each with all that it started, the first to tick first.
-- @treturn table of `{ epoch =, node =, first =, last =, count = }`
function ticks.lives(path)
  return lives_of(path, is_leader)
end

-- Each pair of lives that ticked at once, and for how long.
local function overlaps(lives, tell)
  local latest = lives[1]
  for i = 2, #lives do
    if latest.last >= lives[i].first then
      tell(latest, lives[i], math.min(latest.last, lives[i].last) - lives[i].first)
    end
    if lives[i].last > latest.last then latest = lives[i] end
  end
end

--- Seconds during which two leaders' children ticked at once, those of one term included.
function ticks.overlap(path)
  local sum = 0
  overlaps(ticks.lives(path), function(_, _, seconds) sum = sum + seconds end)
  return sum
end

local function words(life)
  return ("%s of %s in epoch %d"):format(life.role, life.node, life.epoch)
end

--- What must never be seen: children that tick at once, an epoch of two nodes, an epoch that goes back.
-- @treturn table an array of what is wrong, in words
function ticks.faults(path)
  local found, nodes = {}, {}
  local function tell(one, other, seconds)
    found[#found + 1] = ("%s and %s ticked at once for %.3f ms"):format(words(one), words(other), seconds * 1000)
  end
  local leaders = ticks.lives(path)
  overlaps(leaders, tell)
  for i, life in ipairs(leaders) do
    nodes[life.node] = true
    local before = leaders[i - 1]
    if before and life.epoch < before.epoch then
      found[#found + 1] = ("%s followed %s: the epoch went back"):format(words(life), words(before))
    elseif before and life.epoch == before.epoch and life.node ~= before.node then
      found[#found + 1] = ("%s and %s share an epoch"):format(words(before), words(life))
    end
  end
  for node in pairs(nodes) do -- a candidate's own children: the follower's and the leader's
    local function is_own(life) return life.node == node and (life.role == "leader" or life.role == "follower") end
    overlaps(lives_of(path, is_own), function(one, other, seconds)
      if one.role ~= other.role then tell(one, other, seconds) end
    end)
  end
  return found
end

--- The times without a leader's tick between one life and the next.
-- @treturn table of `{ from = epoch, to = epoch, seconds = }`
function ticks.gaps(path)
  local found, lives = {}, ticks.lives(path)
  for i = 2, #lives do
    found[#found + 1] = { from = lives[i - 1].epoch, to = lives[i].epoch,
      seconds = math.max(0, lives[i].first - lives[i - 1].last) }
  end
  return found
end

--- Waits for the first tick of a term behind `epoch`.
-- @string[opt] node whose term it has to be: on a busy machine another one may have lost its short lease and won it again before
-- it was hurt
function ticks.await(path, epoch, seconds, node)
  return eventually(function()
    local terms = ticks.terms(path)
    for i = #terms, 1, -1 do
      local term = terms[i]
      if term.epoch > epoch and (not node or term.node == node) then return term end
    end
  end, seconds or 10)
end

--- Waits until the newest child has ticked for a while, so that an old one that lives on would have ticked beside it.
function ticks.settle(path, seconds)
  eventually(function()
    local lives = ticks.lives(path)
    return #lives > 0 and lives[#lives].count >= SETTLED
  end, seconds or 10)
end

--- Waits for a term behind `epoch`, lets it settle, and raises what is wrong.
-- @treturn table the term
function ticks.succeed(path, epoch, seconds, node)
  local term = ticks.await(path, epoch, seconds, node)
  ticks.settle(path, seconds)
  ticks.verify(path)
  return term
end

--- Raises what is wrong so far.
function ticks.verify(path)
  local found = ticks.faults(path)
  if #found > 0 then error(table.concat(found, "\n"), 2) end
end

--- Processes that tick into this file right now.
-- @treturn table an array of pids
function ticks.alive(path)
  local found = {}
  for _, pid in ipairs(assert(files.list "/proc")) do
    local command = pid:match "^%d+$" and read_file(("/proc/%s/cmdline"):format(pid)) or ""
    if command:find("ticker\0" .. path .. "\0", 1, true) then found[#found + 1] = tonumber(pid) end
  end
  return found
end

--- The last look, when all candidates have ended: raises what is wrong, or what ticks on, which is killed then.
-- @bool[opt] killed one had to be killed: then keepers have their time before anything counts as ticking on
function ticks.finish(path, killed)
  if killed then pcall(eventually, function() return #ticks.alive(path) == 0 end) end
  local alive = ticks.alive(path)
  signals.send_all(alive, "KILL")
  if #alive > 0 then error(("%d processes tick on when all candidates have ended"):format(#alive), 2) end
  ticks.verify(path)
end

return ticks
