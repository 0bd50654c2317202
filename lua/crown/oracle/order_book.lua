--- What a runtime knows of operators' orders in a store whose elections are in the format of others. There each election's orders
-- are a record of their own beside it, which those others do not know. Candidates obey them as in a register (S15): by the same
-- rules, crown.register.orders and crown.register.obey. Nothing here makes a leader: an order only keeps one from leading.
--
-- A store of orders: `read(names)` → for each name `{ text =, version = }`, or false where there are none; of all elections that
-- have some where `names` is nil. `write(name, text, version)` → true, or false where another version stands; `text` is nil for
-- none any more, `version` false for none yet. Both return nil, message, code where nobody knows anything.
-- @internal crown.oracle.order_book

local core = require "crown.core"
local elections = require "crown.core.election"
local json = require "crown.text.json"
local obey = require "crown.register.obey"
local orders = require "crown.register.orders"
local printable = require "crown.text.printable"
local promise = require "crown.core.promise"
local ranks = require "crown.register.ranks"

local Book = {}
Book.__index = Book

local LOOK = 1 -- seconds at most from one look of a candidate that leaves an election to another node to its next
local UNREADABLE = "the orders of '%s' cannot be read, and nobody obeys them: crown-lua resume, or a new order, takes their place"
local UNKNOWN = "operators' orders cannot be read here, and are not obeyed until they can: %s"

local env = { now = core.now, time = function() return os.time() * 1000 end, sleep = core.sleep, detach = core.detach,
  atomic = core.atomic }

local WRITES = 5 -- tries, where others write at the same time
local LEAVES = 1 -- seconds at most until its own level is removed, before it gives back

-- --- what stands there

local function tell(self, text)
  elections.emit("oracle.error", { store = self.word, error = text })
end

--- What orders a record has.
-- @tparam table|boolean answer of a store of orders
-- @treturn table of crown.register.orders; false: there are none; nil: it is no such record
function Book.parse(answer)
  if not answer then return false end
  local found = #answer.text <= 2 * orders.MOST and json.object(answer.text)
  if not found or not orders.is(found) then return nil end
  return found
end

local function text_of(found) return found and json.ordered(found) or nil end

--- The text of a record.
-- @tparam[opt] table found of crown.register.orders
-- @treturn string or nil: nothing is to stand there
Book.text = text_of

local function remove(member, version, rest)
  member.book.store:write(member.name, text_of(rest), version)
end

-- What crown.register.ranks has to know of a candidate.
local function me_of(member)
  local now, rank = core.now(), member.rank
  return { node = member.book.node, rank = rank, retry = member.retry, time = env.time(),
    waited = now - math.max(member.waits or now, rank and rank.since or -math.huge),
    asked_ago = now - (member.asked or -math.huge), told_ago = ranks.told_ago(member.level_told, rank, now),
    within = ranks.within(member.ttl, member.retry) }
end

-- What a leader has outlived keeps it from nothing.
local function without_outlived(self, member, found)
  if not member.outlived or member.outlived ~= member.version then return found end
  local rest = ranks.claimed(orders.without(found), me_of(member))
  if self:leads(member) then core.detach(remove, member, member.version, rest) end
  return rest
end

--- Notes an answer: see crown.register.obey.
-- @tparam table member
-- @tparam table|boolean answer of a store of orders
-- @number sent when it was asked for
-- @treturn table `{ record = { orders = } }`; or nil: more is known
function Book:note(member, answer, sent)
  if member.sent and sent < member.sent then return nil end
  local found, version = Book.parse(answer), answer and answer.version or false
  member.sent = sent
  if version ~= (member.version or false) then
    if found == nil then tell(self, UNREADABLE:format(printable(member.name))) end
    member.version = version
    if orders.binding(found) or orders.binding(member.found) then member.free_since = nil end
    if version ~= member.outlived then member.outlived = nil end
    if not self:leads(member) then member.election:send "orders" end -- it may be in the queue before the node that is to lead
  end
  member.found = without_outlived(self, member, found or nil)
  return { record = { orders = member.found } }
end

--- Looks at the records of elections.
-- @tparam table names
-- @treturn table by name; or nil, message, code
function Book:look(names)
  local answers, problem, code = self.store:read(names)
  local lacks = code == "store" and problem or nil -- of a store that gives no answer its elections tell
  if lacks and lacks ~= self.lacks then tell(self, UNKNOWN:format(problem)) end
  if answers or lacks then self.lacks = lacks end
  return answers, problem, code
end

--- Whether a candidate leads.
function Book:leads(member) return self.leads_by(member.state) == true end

local function look_at(self, members)
  local names, sent = {}, core.now()
  for i, member in ipairs(members) do names[i] = member.name end
  local answers = #names > 0 and self:look(names)
  for i, member in ipairs(answers and members or {}) do member:saw(answers[names[i]], sent) end
end

local function all(self)
  local list = {}
  for _, member in pairs(self.members) do list[#list + 1] = member end
  return list
end

--- Looks, when the store tells of a change.
-- @string[opt] name of the election; nil: any may have changed
function Book:hear(name)
  local members = name and { self.members[name] } or core.atomic(all, self)
  if #members > 0 then core.detach(look_at, self, members) end
end

local function patrol(self)
  while next(self.members) do
    core.sleep(self.patrol)
    look_at(self, core.atomic(all, self))
  end
  self.patrols = false
end

-- --- candidates

local Member = {}
Member.__index = Member

--- Takes in what stands there.
-- @tparam table|boolean answer of a store of orders
-- @number sent when it was asked for
function Member:saw(answer, sent)
  local seen = core.atomic(self.book.note, self.book, self, answer, sent)
  if not seen then return end
  core.atomic(obey.note, self.book, self, seen.record)
  local is_told = ranks.of(self.found, self.book.node) == ranks.level(self.rank)
  if not is_told and self.book:leads(self) then self:say_rank() end
end

--- Looks what stands there.
function Member:look() look_at(self.book, { self }) end

--- Whether what stands there may keep it from claiming.
-- @treturn boolean
function Member:is_careful()
  return self.orders ~= nil or ranks.wait(self.found, me_of(self), self.holder, 0) ~= nil
end

--- What keeps it from claiming.
-- @bool is_free whether nobody leads, as far as is known
-- @tparam[opt] boolean queues whether it would stand in a queue of the store's by its claim, before others
-- @treturn number seconds until it asks again; or nil: nothing does
-- @treturn string why
function Member:barred(is_free, queues)
  local found, now, time = self.orders, core.now(), os.time()
  if not self:is_careful() then return nil end
  self.free_since = is_free and (self.free_since or now) or nil
  local free = self.free_since and now - self.free_since or 0
  local wait = orders.wait(found, self.book.node, free, time)
  if wait then return math.min(wait, LOOK), orders.words(found, time) end
  if found and found.to == self.book.node or not (is_free or queues) then return nil end
  free = orders.open_for(found, self.book.node, free, time)
  local left, why = ranks.wait(self.found, me_of(self), self.holder, free)
  return left and math.min(left, LOOK), why
end

--- What is left when its claim has ended the pause, or the hand-over, that stands there, with its own level.
-- @treturn boolean whether that is another text
-- @treturn string or nil: nothing is left
-- @treturn table the orders, or nil
function Member:rest()
  local rest = ranks.claimed(orders.without(self.found), me_of(self))
  local text = text_of(rest)
  return text ~= text_of(self.found), text, rest
end

--- Its claim has ended the pause, or the hand-over, that stood there.
function Member:won()
  self.waits, self.level_told = nil, nil
  local is_other, _, rest = self:rest()
  if not is_other then return end
  local version = self.version or false
  self.outlived, self.orders, self.found = version, nil, rest
  remove(self, version, rest)
end

-- Writes what `change` makes of what stands there, as of the last look; nil: nothing.
local function write_over(self, change)
  for _ = 1, WRITES do
    local wanted = change()
    if not wanted then return end
    local written = self.book.store:write(self.name, text_of(next(wanted) and wanted or nil), self.version or false)
    if written == nil then return end
    self:look()
    if written then return end
  end
end

--- While it waits: tells its level, and asks the leader to go where that is due (crown.register.ranks).
-- @string holder the node that leads
-- @treturn number seconds until it will ask, or nil
function Member:ask(holder)
  self.holder = holder
  if not self.rank and not (self.found and self.found.ranks) then return nil end
  self.waits = self.waits or core.now()
  local left, tells
  write_over(self, function()
    local wanted, asks
    wanted, asks, left = ranks.asked(self.found, me_of(self), holder)
    if asks then self.asked = core.now() end
    tells = wanted ~= nil
    return wanted
  end)
  if tells then self.level_told = ranks.telling(self.rank, core.now()) end
  return left
end

local function say(self, level)
  write_over(self, function()
    local wanted = ranks.with(self.found, self.book.node, level)
    return wanted ~= self.found and (wanted or {}) or nil
  end)
end

--- Tells the level that it has now, where it leads.
function Member:say_rank()
  if self.saying then return end
  self.saying = true
  core.detach(function()
    if self.book:leads(self) then say(self, ranks.level(self.rank)) end
    self.saying = nil
  end)
end

--- Who gives back does not wait: its level goes before that.
function Member:leave()
  if not self.book:leads(self) or ranks.of(self.found, self.book.node) == 0 then return end
  local done = promise()
  self.saying = true
  core.detach(function()
    say(self, 0)
    self.saying = nil
    done:resolve()
  end)
  done:wait(LEAVES)
end

--- Tells its core what speaks against its leading: see crown.register.obey.
function Member:obey(bar, why, before)
  self.waits = nil
  if obey.tell_core(self.election, bar, why, before) then return end
  if not self.election.handle then self.is_to_go = bar and self.book:leads(self) or nil end
  self.election:send "orders"
end

--- Says it again.
function Member:remind(bar, why) obey.remind_core(self.election, bar, why) end

--- Whether it is to go, of one without a core that could be told: once.
-- @treturn boolean
function Member:is_sent_away()
  local is_to_go = self.is_to_go == true
  self.is_to_go = nil
  return is_to_go
end

-- --- books

--- The book of a runtime's node in a place.
-- @tparam table owner what its elections in that place share; its field `books` is used here
-- @string node
-- @tparam function make called for the first of them → `store`; `word`, what messages call it; `leads(state)`: whether an
-- oracle's state leads; `patrol`: seconds from one look to the next, where the store does not tell of changes;
-- `looks`: the same of those that have orders, where it may not be a second
-- @treturn Book
function Book.of(owner, node, make)
  owner.books = owner.books or {}
  local self = owner.books[node]
  if self then return self end
  local options = make()
  self = setmetatable({ node = node, env = env, word = options.word, leads_by = options.leads, patrol = options.patrol,
    looks = options.looks, members = setmetatable({}, { __mode = "v" }), obeying = setmetatable({}, { __mode = "k" }) }, Book)
  self.seen = self -- and its store's `look` is its own: see crown.register.obey
  self.store = setmetatable({ look = function(_, names) return self:look(names) end }, { __index = options.store })
  owner.books[node] = self
  return self
end

local function enter(self, name, member)
  self.members[name] = member
  if self.patrol and not self.patrols then
    self.patrols = true
    core.detach(patrol, self)
  end
end

--- Enters a candidate.
-- @string name of the election, as the store of orders knows it
-- @param state of its oracle
-- @tparam table election of crown.oracle.candidate
-- @treturn Member
function Book:join(name, state, election)
  local member = setmetatable({ book = self, name = name, state = state, election = election }, Member)
  member.slot = member
  core.atomic(enter, self, name, member)
  return member
end

return Book
