--- Has an oracle whose elections are in the format of others take operators' orders: its candidates obey those that stand beside
-- an election (crown.oracle.order_book), and the verbs pause, resume and handover write them. Candidates of others do neither.
-- @internal crown.oracle.ordered

local Book = require "crown.oracle.order_book"
local candidate = require "crown.oracle.candidate"
local core = require "crown.core"
local orders = require "crown.register.orders"
local ranks = require "crown.register.ranks"
local tools = require "crown.register.tools"

local ordered = {}

local WRITE_TRIES = 5
local TTL = 15 -- seconds, where the oracle does not say it

-- --- candidates

-- @bool is_left it is only left to others for a moment
local function denied(wait, why, holder, is_left)
  return false, { retry_in = wait, error = why, node = holder and holder.node, epoch = holder and holder.epoch,
    unsure = is_left or nil }
end

-- What keeps a candidate from asking at all. What it remembers may be over, so it looks; and before its first claim, since others
-- would see it lead for a moment.
-- @return as Member:barred; who leads
local function barred(how, self, member, queues)
  if member:is_careful() or not (member.sent or how.feeds) then member:look() end
  if not member:is_careful() then return nil end
  local holder = how.holder(self)
  if holder then member.holder = holder.node or member.holder end
  local wait, why = member:barred(holder == false, queues)
  return wait, why, holder or nil
end

-- Who waits tells its level, and may ask the leader to go.
local function wait_behind(member, holder)
  local asks_in = type(holder) == "table" and holder.node and not holder.amnesia and member:ask(tostring(holder.node))
  if not asks_in or (holder.expires_in or holder.retry_in or math.huge) < asks_in then return end
  holder.expires_in, holder.retry_in = nil, asks_in
end

-- Asks and judges; an election's core may drop the call at any time, and gives back then what it may have.
local function claim_by(how, claim, abdicate, leaves)
  return function(self)
    local member = self.orders
    member:is_sent_away()
    local wait, why, holder = barred(how, self, member, leaves)
    if wait then
      if leaves then abdicate(self) elseif how.lets_go then how.lets_go(self) end
      local verdict, second = denied(wait, why, holder, not member.orders)
      if not member.orders then wait_behind(member, second) end -- its own level keeps it from the queue, and not from telling it
      return verdict, second
    end
    local sent = member.sent
    local verdict, second, third, fourth = claim(self)
    if verdict == false then wait_behind(member, second) end
    if not verdict then return verdict, second, third, fourth end
    if member.sent == sent then member:look() end
    wait, why = member:barred(true)
    if wait then
      abdicate(self)
      return denied(wait, why, nil, not member.orders)
    end
    member:won()
    return verdict, second, third
  end
end

local function hears_nothing() end

local function obeys(module, how)
  local init, refresh, handle_info = module.init, module.refresh, module.handle_info or hears_nothing
  function module.init(opts, election)
    local self, problem, code = init(opts)
    if not self or opts.checking then return self, problem, code end
    local owner, name = how.owner(self)
    local book = Book.of(owner, opts.node, function()
      return { store = how.store(self), word = how.word, leads = how.leads, patrol = how.patrol and how.patrol(self),
        looks = how.looks and how.looks(self) }
    end)
    local member = book:join(name, self, election or candidate.of(opts))
    local timing = module.timing and { module.timing(opts) } or {}
    self.orders, member.ttl, member.retry = member, timing[1] or TTL, timing[4]
    function self.prefer(_, rank) member.rank = rank end
    function self.ranked()
      if how.leads(self) then member:say_rank() else member.election:send "orders" end
    end
    return self
  end
  local claim, abdicate = module.claim, module.abdicate
  module.claim = claim_by(how, claim, abdicate, module.leaves)
  function module.abdicate(self, ...)
    self.orders:leave()
    return abdicate(self, ...)
  end
  function module.refresh(self)
    if self.orders:is_sent_away() then return false, { evicted = true } end
    return refresh(self)
  end
  function module.handle_info(self, message)
    if message ~= "orders" then return handle_info(self, message) end
    if not how.leads(self) then return module.claim(self) end
    if self.orders:is_sent_away() then return false, { evicted = true } end
  end
end

-- --- tools

-- Adds what is ordered to elections; of those that have orders and no candidate there is no more to tell.
local function add(found, answers)
  local by_name, time = {}, os.time()
  for _, one in ipairs(found) do by_name[one.name] = one end
  for name, answer in pairs(answers) do
    local stands = Book.parse(answer)
    local words, preferred = stands and orders.words(stands, time), stands and ranks.words(stands)
    if words and not by_name[name] then
      by_name[name] = { name = name }
      found[#found + 1] = by_name[name]
    end
    local one = by_name[name]
    if one and (words or preferred) then one.orders, one.ordered, one.preferred = stands, words or nil, preferred or nil end
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

-- Who may not read orders sees elections all the same. Orders are read first: the winner takes away what it has outlived, so
-- where nothing is ordered any more who leads after that is seen.
local function list_by(how, list)
  return function(opts, name)
    local answers = how.visit(opts, function(store) return store:read() end, name)
    local found, problem, code = list(opts, name)
    if not found then return nil, problem, code end
    return add(found, answers or {})
  end
end

local function nodes_by(list)
  return function(opts)
    local found, problem, code = list(opts)
    if not found then return nil, problem, code end
    local nodes = {}
    for _, one in ipairs(found) do
      for _, node in ipairs(one.candidates or {}) do nodes[node] = true end
    end
    return nodes
  end
end

-- @return whether it is written; nil where another order came between; or nil, message, code
local function write_over(store, name, fields)
  local answers, problem, code = store:read { name }
  if not answers then return nil, problem, code end
  local answer = answers[name]
  local wanted, why, kind = tools.changed(name, { orders = Book.parse(answer) or nil }, fields)
  if wanted == nil then return nil, why, kind end
  return store:write(name, Book.text(wanted or nil), answer and answer.version)
end

-- @return true; or nil, message, code
local function write(store, name, fields)
  for _ = 1, WRITE_TRIES do
    local written, problem, code = write_over(store, name, fields)
    if written ~= false then return written, problem, code end
    core.sleep(0)
  end
  return nil, ("the orders of '%s' change faster than they can be written"):format(name)
end

-- @return what a tool knows of an election; or nil, message, code
local function election_of(how, list, opts, name)
  if how.follows then return { name = name } end -- who leads there need not be one of ours
  local found, problem, code = list(opts, name)
  if not found then return nil, problem, code end
  local before = { name = name, is_unknown = true } -- nothing may be there of an election that nobody leads
  for _, one in ipairs(found) do before = one.name == name and one or before end
  before.ends_alike = true -- in such a store a leader that has died is gone like one that has stepped down
  return before
end

local function order_by(how, list)
  return function(opts, name)
    local before, problem, code = election_of(how, list, opts, name)
    if not before then return nil, problem, code end
    local fields = opts.order
    local written, why, kind = how.visit(opts, function(store) return write(store, name, fields) end)
    if not written then return nil, why, kind end
    return before
  end
end

--- Has an oracle take orders. Its functions are replaced by some that obey.
-- @tparam table module the oracle: its states are tables with methods
-- @tparam table how `word`, what messages call the store; `owner(state)` → a table that the elections of one place share, and
-- the election's name; `store(state)` → a store of orders (crown.oracle.order_book); `leads(state)`; `holder(state)` →
-- `{ node =, epoch = }`, who leads; false: nobody; nil: that is not known; `patrol(state)` → seconds from one look to the next,
-- where `hear` may miss changes; `looks(state)` → the same of a candidate that has orders (1); `visit(opts, fn, name)` → what
-- fn(store) returns, for a tool, which asks for one election where it has a name; `lists_candidates`: whether `list` does;
-- `lets_go(state)`: frees what a term of before still holds, where an order keeps it from a claim, which would do that;
-- `feeds`: whether a claim hands Member:saw what it reads anyway; `follows`: the system whose leader these candidates follow, so
-- that a pause is all that can be ordered
-- @treturn table the oracle
function ordered.oracle(module, how)
  obeys(module, how)
  module.list = list_by(how, module.list)
  module.order, module.follows = order_by(how, module.list), how.follows
  if how.lists_candidates then module.nodes = nodes_by(module.list) end
  return module
end

--- Tells the books of a place that orders may have changed.
-- @tparam table owner as of `oracle`
-- @string[opt] name of the election; nil: any of them
function ordered.hear(owner, name)
  for _, book in pairs(owner.books or {}) do book:hear(name) end
end

return ordered
