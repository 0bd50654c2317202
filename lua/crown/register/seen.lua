--- What a runtime has seen of the names in a register, and since when by its own clock. An entry is there as long as somebody
-- holds it.
-- @internal crown.register.seen

local packed = require "crown.text.packed"
local record = require "crown.register.record"

local Seen = {}
Seen.__index = Seen

--- What most entries have. `holder` and `term` are of crown.register.terms.
Seen.FIELDS = { "name", "serial", "epoch", "version", "text", "memory", "since", "holder", "term" }

local entry_of = packed.kind(Seen.FIELDS)

--- Makes one.
-- @tparam function now → seconds on a clock of our own that never jumps
-- @treturn Seen `longest`: the longest TTL of any session that was seen
function Seen.new(now)
  return setmetatable({ now = now, longest = 0, entries = setmetatable({}, { __mode = "v" }) }, Seen)
end

--- The entry of a name.
-- @string name
-- @tparam[opt] table made what is to be the entry, where there is none yet
-- @treturn table `name`; `serial` and `epoch`, the highest that were seen (-1 and 0: none); `found`, the record that was seen
-- last, where the name is a session's
function Seen:of(name, made)
  local entry = self.entries[name]
  if not entry then
    entry = made or entry_of()
    entry.name, entry.serial, entry.epoch = name, -1, 0
    self.entries[name] = entry
  end
  return entry
end

--- Notes that a record was seen or written, which no write lowers.
-- @tparam table entry
-- @tparam table found
function Seen:learn(entry, found)
  entry.serial = math.max(entry.serial, found.serial)
  if found.epoch then entry.epoch = math.max(entry.epoch, found.epoch) end
  local lasts = found.ttl or found.longest
  if lasts then self.longest = math.max(self.longest, lasts) end
end

--- Notes what stands there: since now, unless it stood there before.
-- @tparam table entry
-- @tparam table answer `text`, `version`, `memory`
function Seen:stands(entry, answer)
  local version, text, memory = answer.version, answer.text, answer.memory
  if entry.version == version and entry.text == text and entry.memory == memory and entry.since then return end
  entry.version, entry.text, entry.memory, entry.since = version, text, memory, self.now()
end

-- A session's record is read once, though all that it holds are judged by it.
local function read(entry, answer)
  if entry.found and entry.text == answer.text then return entry.found end
  local found, problem = record.read(answer, entry.name)
  if record.is_reserved(entry.name) then entry.found = found end
  return found, problem
end

--- Notes an answer, when it comes. A version stands from the answer that first showed it, in one memory, to the sending of the
-- last look that found it.
-- @tparam table entry
-- @tparam table answer `text` or false, `version`, `memory`, `peer`, `time`
-- @number sent when that was asked for
-- @treturn table `record` or false, `stood` in seconds, `back`: whether it is older than what was seen, `renewed`: whether a
-- session was since it was first seen; or nil and a message
function Seen:note(entry, answer, sent)
  local found, problem = read(entry, answer)
  if found == nil then return nil, record.unreadable(answer, entry.name, problem) end
  if found and found.ttl and entry.text and entry.text ~= answer.text then entry.renewed = true end
  self:stands(entry, answer)
  local is_back = found and (found.serial < entry.serial or (found.epoch or 0) < entry.epoch)
  local seen = { record = found, stood = sent - entry.since, epoch = entry.epoch, serial = entry.serial, memory = answer.memory,
    version = answer.version, renewed = entry.renewed, back = is_back, peer = answer.peer, time = answer.time }
  if found then self:learn(entry, found) end
  if answer.peer then entry.epoch = math.max(entry.epoch, answer.peer.epoch) end
  return seen
end

return Seen
