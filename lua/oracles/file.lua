--- The embedded oracle: an open-file-description lock in a directory. It elects among the processes of one host and
-- needs no server. The lock is handed on to the child's keeper, warden and child, so it is free only when nothing of
-- the child's tree is left. URL: `file:DIR`; without DIR a directory of the user's own. See docs/oracle-file.md.
-- @module crown.oracles.file

local core = require "crown.core"
local disk = require "crown.core.disk"
local epochs = require "crown.check.epoch"
local eviction = require "crown.oracle.eviction"
local files = require "crown.core.files"
local full_disk = require "crown.text.full_disk"
local json = require "crown.text.json"
local Lanes = require "crown.link.lanes"
local LeaderMark = require "crown.oracle.leader_mark"
local leftovers = require "crown.oracle.leftovers"
local lock_directory = require "crown.control.lock_directory"
local lockfile = require "crown.core.lockfile"
local old_lock = require "crown.oracle.old_lock"
local names = require "crown.check.names"
local ordered = require "crown.oracle.ordered"
local OrderFiles = require "crown.oracle.order_files"
local promise = require "crown.core.promise"
local read_file = require "crown.text.read_file"
local store_options = require "crown.oracle.options"
local usage = require "crown.check.usage"
local watch_file = require "crown.core.watch_file"

local File = {}
File.__index = File

local OLD_CHECK = 0.1 -- seconds between looks whether a lock file that was taken away is still held
local SLOW_CHECK = 5 -- seconds between claims, should an event ever be missed
local THREADS = 4 -- that change files in one directory
local MILLISECONDS = 1000 -- in a second
local PATIENCE = 10 -- seconds in which a change may wait for its turn
-- The kernel tells of a closed file just before it drops the lock, so a claim that follows the event is tried again.
local AFTER_EVENT = { 0.001, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032 }

-- The lock's files are called so; nobody gets out of the directory by it.
local NAME = names.rule()
local function dir_problem(dir) return dir == "" and "must not be empty" or nil end

local RULES = { dir = { type = "string", check = dir_problem }, lock = NAME }

-- The first candidate makes the directory. What cannot be looked at counts as there: the next call says why.
local function there_is(dir)
  local kind, problem = files.kind(dir)
  return kind ~= nil or problem ~= nil
end

-- Without waiting for the other end of a pipe in the file's place, which anybody who may write there can make.
local function read_plain(path) return files.readable(path) and read_file(path) or nil end

local function decode(text)
  local state = json.object(text or "")
  return state and (state.epoch == 0 or epochs.is(state.epoch)) and state or { epoch = 0 }
end

local function path_in(text) return decode(text).path end

--- There is no TTL, and nothing is refreshed: what holds the lock is seen at once.
function File.timing()
  return nil, math.huge
end

function File.init(opts)
  local checked = store_options.own("file", opts, RULES)
  local dir = lock_directory(opts)
  local fit, problem = true, nil
  if there_is(dir) or not opts.checking then fit, problem = lockfile.directory(dir) end -- makes it
  if not fit then return nil, full_disk.of_locks(dir, problem) end
  local name = checked.lock or opts.crown_name
  return setmetatable({ dir = dir, lock_name = name, base = dir .. "/" .. name, node = opts.node, token = opts.token,
    name = opts.crown_name, send = opts.send, emit = opts.emit, old = {}, highest = 0, changing = 0,
    mark = LeaderMark.new(opts.emit) }, File)
end

local directories = {} -- what elections in one share

function File:directory()
  directories[self.dir] = directories[self.dir] or {}
  return directories[self.dir]
end

local lanes = {} -- by directory: a disk that hangs keeps its own threads

local function on_disk(self, changes)
  lanes[self.dir] = lanes[self.dir] or Lanes.new(THREADS)
  local changed, problem, code = lanes[self.dir]:ask(function() return disk(self.dir, changes) end, PATIENCE)
  return changed, full_disk.of_locks(self.dir, problem), code == "system" and "store" or code -- the disk has answered
end

-- The following three are atomic: a task's turn may end anywhere, and a wish to leave that comes just after the last change has
-- ended would cost the next term its lock.
local function begin(self) self.changing = self.changing + 1 end

local function let_go(self)
  self.mark:release()
  if self.lock then self.lock:release() end
end

local function finish(self)
  self.changing = self.changing - 1
  if self.changing > 0 or not self.leaving then return false end
  self.leaving = false
  let_go(self)
  return self.lock ~= nil
end

local function leave(self)
  if self.changing > 0 then
    self.leaving = true
  else
    let_go(self)
  end
end

local function carry_out(self, fn)
  local fine, problem, code = fn()
  local is_free = core.atomic(finish, self)
  if is_free then on_disk(self, { { "touch", self.base .. ".lock" } }) end -- wakes the followers
  return fine, problem, code
end

-- Runs what changes files, off the loop: a disk may hang. It goes on also when nobody waits for it any more.
local function run(self, fn)
  local outcome = promise()
  core.atomic(begin, self)
  core.detach(function() outcome:resolve(carry_out(self, fn)) end)
  return outcome:wait(math.huge)
end

function File:change(changes)
  return run(self, function() return on_disk(self, changes) end)
end

-- Not before everything is written: what came later than the next leader's epoch would be believed.
function File:let_go()
  core.atomic(leave, self)
end

-- Tells handle_info of changes; one message is enough, however many changes there were.
function File:watch()
  if self.watches then return true end
  local function changed()
    if self.told then return end
    self.told = true
    self.send "changed"
  end
  local lock, problem = watch_file(self.base .. ".lock", changed)
  if not lock then return nil, problem end
  local evict
  evict, problem = watch_file(self.base .. ".evict", changed)
  if not evict then return nil, problem end
  local orders = watch_file(OrderFiles.path(self.dir, self.lock_name), function()
    ordered.hear(self:directory(), self.lock_name)
  end)
  self.watches = { lock, evict, orders }
  self.emit "monitor.started"
  return true
end

-- The directory may be another one as well, and who watches the old one hears nothing of it.
function File:unwatch()
  for _, watch in ipairs(self.watches or {}) do watch:cancel() end
  self.watches = nil
end

-- Keeps the file open from claim to claim: closing it would wake every other follower. One that was taken away stays open
-- while somebody holds it; a term of ours under it is over, or this would not run.
function File:open()
  if self.lock and self.lock:same(self.base .. ".lock") then return true end
  if self.lock then
    self:unwatch()
    let_go(self)
    table.insert(self.old, self.lock)
    self.lock = nil
  end
  local made, problem, code = files.kind(self.base .. ".lock"), nil, nil
  if not made then made, problem, code = self:change { { "create", self.base .. ".lock" } } end
  if not made then return nil, problem, code end
  self.lock, problem, code = lockfile.open(self.base .. ".lock")
  if not self.lock then return nil, problem, code end
  self.path, self.number = self.lock:name()
  self.place = (read_file "/proc/sys/kernel/random/boot_id" or ""):match "%S*" .. " " .. (self.lock:mount() or "")
  return true
end

-- What the records say. Older ones may be put in their place: the last epoch that was heard of is not given out again.
-- Where none of them can be read any more, the epoch goes on at the time of day, above all that were counted from 1.
function File:state()
  local copied, locked = read_plain(self.base .. ".json"), self.lock:read()
  local copy, kept = decode(copied), decode(locked)
  local damaged = copy.epoch == 0 and kept.epoch == 0 and (copied or locked ~= "")
  if damaged then self.highest = math.max(self.highest, os.time() * MILLISECONDS) end
  local state = copy.epoch >= kept.epoch and copy or kept
  self.highest = math.max(self.highest, epochs.counted(state.epoch))
  return state
end

-- The epoch is on the disk, twice, before anybody leads under it. The copy is first: a full disk refuses that, and a change
-- of the lock file would wake everybody who follows.
function File:record(epoch, leading)
  local text = json.encode { election = self.name, epoch = epoch, leading = leading,
    node = leading and self.node or nil, token = leading and self.token or nil, since = os.time(),
    file = self.number, path = self.path, place = self.place, above = lockfile.changed_above(self.dir) }
  local copy = self.base .. ".json"
  local before = read_plain(copy)
  local written, problem, code = self:change { { "replace", copy, text }, { "write", self.base .. ".lock", text, self.number } }
  if written then return true end
  self:change { before and { "replace", copy, before } or { "remove", copy } } -- nobody leads under this epoch
  return nil, problem, code
end

-- Whether nobody can lead under another file: this one was led under last, as both records say, since it was mounted, and
-- since then neither it nor its directory was moved. It may have been away, and be back while somebody leads under a newer one.
function File:led_under_last()
  local kept, copy = decode(self.lock:read()), decode(read_plain(self.base .. ".json"))
  for _, one in ipairs { kept, copy } do
    if one.file ~= self.number or one.place ~= self.place then return false end
  end
  return type(kept.since) == "number" and type(kept.above) == "string" and self.lock:stayed(self.dir, kept.since, kept.above)
end

-- @return what a file holds that was led under before and is held still, false or nil; and what else old_lock.holder says
function File:older_holder()
  return old_lock.holder(self.lock, decode(read_plain(self.base .. ".json")).file, path_in)
end

-- Whoever leads under a file that was taken away leads until it is free. @return its state; false when there is nobody, and
-- then the highest epoch of files that were taken away; or nil and a message
function File:old_leader()
  local highest = 0
  while self.old[1] do
    local state = decode(self.old[1]:read())
    if self.old[1]:taken() then return state end
    highest = math.max(highest, state.epoch)
    table.remove(self.old, 1):close()
  end
  self.highest = math.max(self.highest, highest)
  local alone, certain = self.mark:take((self.lock:name()), (self.base:gsub("//+", "/")) .. ".lock")
  if not alone then return self.mark:leader(function() return decode(self:older_holder() or "") end) or decode "" end
  if certain and self:led_under_last() then return false end
  local text, free = self:older_holder()
  if text == nil then return nil, free end
  if text then return decode(text) end
  for _, one in ipairs(free) do self.highest = math.max(self.highest, decode(one).epoch) end
  return false
end

-- An epoch that is seen is never given out again, not even where all that records it is gone when the lock is free.
local function led_by(self, state, retry_in)
  self.highest = math.max(self.highest, epochs.counted(state.epoch))
  return false, { node = state.node, epoch = state.epoch, retry_in = retry_in }
end

-- A link there is followed, and replaced by the next record.
local function no_record(self)
  local copy = self.base .. ".json"
  local kind = files.kind(copy)
  return (kind == "directory" or kind == "other") and copy .. " is no plain file: move it away"
end

function File:claim()
  if self.changing > 0 then return nil, "the disk has not answered yet", "timeout" end
  local blocked = no_record(self)
  if blocked then return nil, blocked, "usage" end
  local opened, problem, code = self:open()
  if not opened then return nil, problem, code end
  local watched
  watched, problem = self:watch()
  if not watched then self.emit("monitor.failed", { error = problem }) end
  local taken
  taken, problem = self.lock:try()
  if taken == nil then return nil, problem end
  if not taken then return led_by(self, self:state(), SLOW_CHECK) end
  local old
  old, problem = self:old_leader()
  if old == false then return self:win() end
  self:let_go()
  if old == nil then return nil, problem end
  return led_by(self, old, OLD_CHECK)
end

function File:is_in_place()
  if self.lock:same(self.base .. ".lock") then return true end
  return nil, "the lock file was replaced while it was being locked"
end

-- Removes what was meant for a leader before us, and what was left behind.
function File:tidy_up()
  local evict = self.base .. ".evict"
  local kind = files.kind(evict)
  if kind == "directory" then -- nobody can write a wish there, so that none is read
    self.emit("oracle.file.no_eviction", { error = evict .. " is a directory, so that nobody can be evicted: remove it" })
  elseif kind then
    local removed, problem, code = self:change { { "remove", evict } }
    if not removed then return nil, problem, code end
  end
  for _, path in ipairs(leftovers.take(self.dir, self.lock_name) or {}) do self:change { { "remove", path } } end
  return true
end

-- A newcomer knows a file that was moved by what is recorded in it. So one that was moved before does not count.
function File:win()
  local epoch = math.max(self:state().epoch, self.highest) + 1
  if epoch > epochs.MOST then return nil, ("%s: %s"):format(self.base .. ".json", epochs.none_above(epochs.MOST)) end
  local won, problem, code = self:is_in_place()
  if won then
    won, problem, code = self:record(epoch, true)
    local placed, moved = self:is_in_place()
    if not placed then won, problem, code = nil, moved, nil end
  end
  if won then won, problem, code = self:tidy_up() end
  if not won then
    self:let_go()
    return nil, problem, code
  end
  self.epoch, self.highest = epoch, epoch
  return true, math.huge, { epoch = epoch, hold = self.mark:hold(self.lock:descriptor()) }
end

function File:refresh()
  if not self.epoch then return false end
  if not self.lock or not self.lock:same(self.base .. ".lock") then
    return false, { retry_in = OLD_CHECK }
  end
  return true, math.huge, { epoch = self.epoch, hold = self.mark:hold(self.lock:descriptor()) }
end

function File:handle_info(message)
  if message ~= "changed" then return end
  self.told = false
  if self.epoch then
    if not self.lock:same(self.base .. ".lock") then
      self:change { { "replace", self.base .. ".json", self.lock:read() } } -- perhaps it was taken away too, and its epoch
      self.epoch = nil
      return false, { retry_in = OLD_CHECK }
    end
    if read_plain(self.base .. ".evict") then return false, { evicted = true } end
    return
  end
  return self:claim_after_event()
end

function File:claim_after_event()
  for _, pause in ipairs(AFTER_EVENT) do
    local verdict, second, third = self:claim()
    if verdict ~= false or (second and second.amnesia) then return verdict, second, third end
    if not self.mark:is_beside() and not lockfile.held(self.base .. ".lock") then pause = 0 end
    core.sleep(pause)
  end
  return self:claim()
end

-- For `info` and whoever leads next; the lock is what counts.
local function tidy(self, epoch)
  self:let_go() -- once all this is done
  self:record(epoch, false)
  if files.kind(self.base .. ".evict") then self:change { { "remove", self.base .. ".evict" } } end
end

-- To its end, also when the disk takes so long that the call is given up: the core does not ask for it again.
function File:abdicate()
  local epoch = self.epoch
  if not epoch then return self:let_go() end
  self.epoch = nil
  return run(self, function() return tidy(self, epoch) end)
end

-- Another user's candidates lock files that nobody else may open.
local function unseen(problem)
  return problem:find("Permission denied", 1, true) and problem .. ": ask as the user whose candidates lock it" or problem
end

--- Elections in the directory.
-- @tparam table opts `dir` or `path`
-- @treturn table an array of `{ name, node, epoch }`, or nil and a message
function File.list(opts)
  local dir = lock_directory(opts)
  if not there_is(dir) then return {} end
  local all, problem = files.list(dir)
  if not all then return nil, problem end
  table.sort(all)
  local found = {}
  for _, file in ipairs(all) do
    local name = file:match "^(.+)%.json$"
    if name then
      local state = decode(read_plain(dir .. "/" .. file))
      local held, why = lockfile.held(dir .. "/" .. name .. ".lock")
      found[#found + 1] = { name = name, node = held and state.node or nil, epoch = state.epoch,
        trouble = held == nil and unseen(why) or nil }
    end
  end
  return found
end

--- Asks the leader of an election to step down, and waits until it has.
-- @tparam table opts `dir` or `path`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function File.evict(opts, name)
  if not name:match(NAME.match) then usage.error("the file oracle: '%s' is no name: %s", name, NAME.match_words) end
  local base = lock_directory(opts) .. "/" .. name
  local before = decode(read_plain(base .. ".json"))
  local held, why = lockfile.held(base .. ".lock")
  if held == nil then return nil, unseen(why) end
  if not held then return eviction.nobody(name) end
  if files.kind(base .. ".evict") == "directory" then
    return nil, ("%s.evict is a directory, so that nobody can be asked to go: remove it"):format(base)
  end
  local written, problem = files.replace(base .. ".evict", core.token)
  if not written then return nil, full_disk.of_locks(base:match "^(.*)/", problem) end
  local gone, code
  gone, problem, code = eviction.await(name, opts.wait, function()
    local state = decode(read_plain(base .. ".json"))
    return state.epoch ~= before.epoch or not state.leading
  end, "the request stays")
  if not gone then return nil, problem, code end
  return { node = before.node, epoch = before.epoch }
end

--- What is to be said of the directory, for `info`.
-- @tparam table opts `dir` or `path`
-- @treturn table `{ facts =, warnings = }`
function File.health(opts)
  local dir = lock_directory(opts)
  local fit, problem = true, nil
  if there_is(dir) then fit, problem = lockfile.directory(dir) end
  return { facts = { { "Directory", dir } }, warnings = { not fit and problem or nil } }
end

local function holder_of(self)
  if not lockfile.held(self.base .. ".lock") then return false end
  local state = decode(read_plain(self.base .. ".json"))
  return { node = state.node, epoch = state.epoch }
end

-- A term under a file that was taken away is over, and others wait until that is free.
local function let_go_of_old(self)
  if self.lock and not self.lock:same(self.base .. ".lock") then self:let_go() end
end

return ordered.oracle(File, { word = "file", holder = holder_of, lets_go = let_go_of_old,
  owner = function(self) return self:directory(), self.lock_name end,
  leads = function(self) return self.epoch ~= nil end,
  patrol = function() return SLOW_CHECK end,
  store = function(self)
    return OrderFiles.new(self.dir, function(path, text) return on_disk(self, { { "replace", path, text } }) end)
  end,
  visit = function(opts, fn) return fn(OrderFiles.new(lock_directory(opts), files.replace)) end })
