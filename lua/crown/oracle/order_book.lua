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

local Book = {}
Book.__index = Book

local LOOK = 1 -- seconds at most from one look of a candidate that leaves an election to another node to its next
local UNREADABLE = "the orders of '%s' cannot be read, and nobody obeys them: crown-lua resume, or a new order, takes their place"
local UNKNOWN = "operators' orders cannot be read here, and are not obeyed until they can: %s"

local env = { now = core.now, time = function() return os.time() * 1000 end, sleep = core.sleep, detach = core.detach,
  atomic = core.atomic }

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

-- What a leader has outlived keeps it from nothing.
local function without_outlived(self, member, found)
  if not member.outlived or member.outlived ~= member.version then return found end
  local rest = orders.without(found)
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
    member.version, member.free_since = version, nil
    if version ~= member.outlived then member.outlived = nil end
    if not self:leads(member) then member.election:send "orders" end -- it may be in the queue before the node that is to lead
  end
  return { record = { orders = without_outlived(self, member, found or nil) } }
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
  if seen then core.atomic(obey.note, self.book, self, seen.record) end
end

--- Looks what stands there.
function Member:look() look_at(self.book, { self }) end

--- What keeps it from claiming.
-- @bool is_free whether nobody leads, as far as is known
-- @treturn number seconds until it asks again; or nil: nothing does
-- @treturn string why
function Member:barred(is_free)
  local found, now, time = self.orders, core.now(), os.time()
  if not found then return nil end
  self.free_since = is_free and (self.free_since or now) or nil
  local wait = orders.wait(found, self.book.node, self.free_since and now - self.free_since or 0, time)
  return wait and math.min(wait, LOOK), wait and orders.words(found, time)
end

--- What is left when its claim has ended the pause, or the hand-over, that stands there.
-- @treturn boolean whether that is another text
-- @treturn string or nil: nothing is left
function Member:rest()
  local rest = orders.without(self.orders)
  return orders.words(self.orders, -math.huge) ~= nil, text_of(rest)
end

--- Its claim has ended the pause, or the hand-over, that stood there.
function Member:won()
  if not self:rest() then return end
  local version, rest = self.version, orders.without(self.orders)
  self.outlived, self.orders = version, rest
  remove(self, version, rest)
end

--- Tells its core what speaks against its leading: see crown.register.obey.
function Member:obey(bar, why, before)
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
