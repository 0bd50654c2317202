--- Makes an oracle of a driver: all that stands between a store with the verbs look and swap and the contract of an oracle.
-- CONTRIBUTING.md tells how a driver is written.
--
-- A driver: `word`, what messages call the store; `options`, the schema of its own options, with `url` where it has a server;
-- `ttl`, the default, and `least`, the shortest, in seconds; `open(place)` → a store, which asks nobody yet; or nil, a message.
-- Optional: `schemes`, of the URLs that it takes; `clients`, options that its client reads from the URL, as keys;
-- `check(opts, rules)` → as crown.oracle.options.check, or nil and a message; `trusts_empty`: whether `trust_empty` is true where
-- it is not given; `unasked`: why tools cannot ask; `servers(checked)` → an array of URLs where most of several servers decide,
-- or nil, and `label(url)`, a server's name in messages.
-- A place: `word`, `url`, `options` (checked), `timeout` in seconds for one question (the shortest of those who share the store,
-- so it may change), `node`, `emit`, `only_looks`: it is a tool's, so that a look should leave nothing in a new store.
-- A store: see crown.register.session; and where it can, `hear(fn)`: fn(name, news, is_own) when an election's record has changed
-- or a session was ended, is_own where this store has written that; fn(nil) when something may have been missed; `names()` → an
-- array; `health()` and `rights(patience, name)` as an oracle has them, of the seconds that a candidate waits for an answer and
-- the election whose record is tried; `close()`; `id`, how a server that was asked calls itself: two names that lead to one are
-- found by it.
-- @internal crown.oracle.driven

local candidate = require "crown.oracle.candidate"
local core = require "crown.core"
local Crowd = require "crown.link.crowd"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local Followers = require "crown.oracle.followers"
local outputs = require "crown.register.outputs"
local majority = require "crown.oracle.majority"
local Oracle = require "crown.register.oracle"
local record = require "crown.register.record"
local schema = require "crown.check.schema"
local store_options = require "crown.oracle.options"
local tools = require "crown.register.tools"
local usage = require "crown.check.usage"

local driven = {}

local Driven = {}
Driven.__index = Driven

local RETRY = 1 -- seconds between two looks of a follower, where nothing tells it of changes
local ASK_SECONDS = 5 -- for one question of a tool
local TTL_MOST = 86400
local TWICE = 2 * 1.01 -- crown.register.rule: twice the longest lease, for clocks that run differently

-- --- options

local DRIVER = {
  word = { type = "string", required = "what messages call the store" },
  ttl = { type = "number", above = 0, most = TTL_MOST, required = "the default, in seconds" },
  least = { type = "number", above = 0, most = TTL_MOST },
  options = { type = "table", required = "the rules of its own options, { url = { type = \"string\" } }" },
  open = { type = "function", required = "how a store is opened" },
  schemes = { type = { "table", "boolean" } }, clients = { type = "table" }, check = { type = "function" },
  trusts_empty = { type = "boolean" },
  unasked = { type = "string" }, servers = { type = "function" }, label = { type = "function" },
}

-- @raise a usage error for what an author has left out, or written otherwise
local function check_driver(driver)
  local own = {}
  for name in pairs(DRIVER) do own[name] = driver[name] end
  schema.check("crown.oracle.driven", own, DRIVER)
  for name, rule in pairs(driver.options) do
    if type(rule) ~= "table" or not rule.type then
      usage.error("crown.oracle.driven: options.%s: a rule such as { type = \"string\" } expected", tostring(name))
    end
  end
end

local function ttl_rule(driver, other)
  local rule = store_options.short_ttl(other)
  rule.least = driver.least or rule.least
  return rule
end

local function rules_of(driver)
  local rules = { ttl = ttl_rule(driver), refresh = { type = "number", above = 0, most = TTL_MOST }, lock = store_options.lock() }
  if driver.options.url then
    rules.duration = ttl_rule(driver, "ttl")
    rules.retry = { type = "number", above = 0, most = TTL_MOST }
    rules.timeout = { type = "number", above = 0, most = 3600 }
    rules.amnesia_wait = store_options.AMNESIA_WAIT
    rules.trust_empty = store_options.trust_empty(driver.trusts_empty or false)
  end
  for name, rule in pairs(driver.options) do rules[name] = rule end
  return rules
end

local function check_scheme(driver, url)
  local scheme = url:match "^[%w+.-]+"
  for _, one in ipairs(driver.schemes) do
    if one == scheme then return end
  end
  usage.error("oracle '%s': its URL begins with %s://", driver.word, table.concat(driver.schemes, ":// or "))
end

function Driven:check(opts)
  local driver = self.driver
  if driver.check then return driver.check(opts, self.rules) end
  if not driver.options.url then
    local checked = store_options.own(driver.word, opts, self.rules)
    checked.url = opts.path or ""
    return checked
  end
  local checked = store_options.check(driver.word, opts, self.rules, driver.clients)
  if driver.schemes then check_scheme(driver, checked.url) end
  return checked
end

-- --- one store for each place

-- Two elections share a store where their URL and the driver's own options are the same.
local function place_of(driver, checked)
  local words = { checked.url }
  for _, name in ipairs(usage.names(driver.options)) do
    local value = checked[name]
    if type(value) == "table" then value = table.concat(value, " ") end
    if name ~= "url" then words[#words + 1] = ("%s=%s"):format(name, tostring(value)) end
  end
  return table.concat(words, " ")
end

-- Those who are told of changes: elections of their own records, and watches of the sessions that those name.
local function hear(there)
  there.followers, there.watches = Followers.new(), setmetatable({}, { __mode = "k" })
  there.store:hear(function(name, news, is_own)
    if not name then
      for _, member in ipairs(there.followers:all()) do member:tell() end
    elseif record.is_reserved(name) then
      for watch in pairs(there.watches) do watch:hear(name) end
    else
      for member in there.followers:of(name) do
        if not is_own or member.several then member:tell(news) end -- who is alone here knows what it has written
      end
    end
  end)
end

-- @return `{ store =, place =, followers = }`; or nil and a message
function Driven:at(key, checked, opts, timeout)
  local stores = opts.only_looks and self.looked_at or self.stores
  local there = stores[key]
  if there then
    there.place.timeout = math.min(there.place.timeout, timeout)
    return there
  end
  local place = { word = self.driver.word, url = checked.url, options = checked, timeout = timeout, node = opts.node,
    emit = opts.emit, only_looks = opts.only_looks }
  local store, problem = self.driver.open(place)
  if not store then return nil, problem end
  if self.driver.options.url then store = Crowd.new(store, record.is_reserved) end
  there = { key = key, store = store, place = place, label = self.driver.label and self.driver.label(checked.url) }
  if store.hear and not opts.only_looks then hear(there) end
  stores[key] = there
  return there
end

-- @return as `at`; of several servers `{ servers = an array of those }`
function Driven:find(checked, opts, timeout)
  local urls = self.driver.servers and self.driver.servers(checked)
  if not urls then return self:at(place_of(self.driver, checked), checked, opts, timeout) end
  local found = { servers = {}, followers = true }
  for i, url in ipairs(urls) do
    local one = setmetatable({ url = url, urls = false }, { __index = checked })
    local there, problem = self:at(place_of(self.driver, one), one, opts, timeout)
    if not there then return nil, ("urls[%d]: %s"):format(i, problem) end
    found.servers[i], found.followers = there, found.followers and there.followers
  end
  function found.twice() return majority.twice(found.servers) end
  return found
end

-- --- candidates

-- Checks the user's options and opens their store. Thousands of elections are mostly alike, and declared one after the other: an
-- election whose options are those of the last one is not checked again.
local function settle(self, opts)
  local last = self.latest -- which another task may replace at any time
  if last and store_options.same(opts, last.users) and opts.path == last.path then return last end
  local checked, problem = self:check(opts)
  if not checked then return nil, problem end
  local ttl, delay = store_options.timing(checked, self.driver.ttl)
  local timeout, key = store_options.timeout(checked, ttl, delay), place_of(self.driver, checked)
  local there
  there, problem = self:find(checked, opts, timeout)
  if not there then return nil, problem end
  local word, url = self.driver.word, checked.url
  if there.servers then word, url = "most servers of " .. word, nil end
  local common = { place = key, ttl = ttl, delay = delay, timeout = timeout, amnesia_wait = checked.amnesia_wait or 0,
    trust_empty = checked.trust_empty, remembers = not self.driver.options.url,
    retry = checked.retry or not there.followers and RETRY or nil, doubts = Doubt.of(word, url,
      { amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty, twice = true }) }
  last = { users = store_options.users(opts), path = opts.path, lock = checked.lock, there = there, kind = { __index = common } }
  self.latest = last
  return last
end

local function enter(self, common, name, opts)
  if not self.driver.options.url then return true end
  return candidate.enter(self.driver.word .. " " .. common.place, name, opts)
end

local function join_one(self, there, kind, options)
  local state, problem = Oracle.join(self.kinds, there.store, setmetatable(options, kind))
  if state and there.followers then
    there.followers:add(options.name, state)
    there.watches[state.watch] = true
  end
  return state, problem
end

local function join(self, settled, name, opts)
  local there, election = settled.there, candidate.of(opts)
  local function options(place)
    return { name = name, token = opts.token, node = opts.node, election = election, place = place }
  end
  if not there.servers then return join_one(self, there, settled.kind, options()) end
  local parts = {}
  for i, server in ipairs(there.servers) do
    local part, problem = join_one(self, server, settled.kind, options(server.key))
    if not part then return nil, problem end
    parts[i] = part
  end
  return Oracle.join_several(parts, setmetatable({ election = election, twice = there.twice }, settled.kind))
end

function Driven:init(opts)
  local settled, problem = settle(self, opts)
  if not settled then return nil, problem end
  local name = tostring(settled.lock or opts.crown_name)
  local fine
  fine, problem = enter(self, settled.kind.__index, name, opts)
  if not fine then return nil, problem end
  return join(self, settled, name, opts)
end

-- --- tools

function Driven:visit(opts)
  local checked, problem = self:check(opts)
  if not checked then return nil, problem, "usage" end
  local there
  there, problem = self:find(checked, { node = core.node(), emit = opts.emit, only_looks = true }, checked.timeout or ASK_SECONDS)
  if not there then return nil, problem, "usage" end
  return there, checked
end

-- What a tool asks of one store; crown.oracle.majority has the same for several.
local of_one = { evict = eviction.from, order = tools.order, runs = tools.runs, output = outputs.output }

function of_one.list(store)
  local names, problem, code = store:names()
  if not names then return nil, problem, code end
  return tools.list(store, names)
end

-- @return as crown.register.tools; false where nobody knows who follows: who hears of no changes renews no session before a
-- claim
function of_one.nodes(store)
  local names, problem, code = store:names()
  if not names then return nil, problem, code end
  if store.deaf or not store.hear then return false end
  return tools.nodes(store, names)
end

local function store_facts(store)
  if not store.health then return { facts = {} } end
  return store:health()
end

-- @number patience seconds that a candidate waits for an answer
-- @number[opt] waits seconds that the first start in a new store waits
function of_one.health(store, name, patience, waits)
  local found, problem, kind = store_facts(store)
  if not found then return nil, problem, kind end
  if store.marks then Doubt.tell(found.facts, tools.doubted_for(store) or 0) end
  if not name then return found end
  local one, why, reason = tools.health(store, name, patience, waits)
  if not one then return nil, why, reason end
  for _, fact in ipairs(one.facts) do found.facts[#found.facts + 1] = fact end
  found.problems = one.problems
  return found
end

-- @string[opt] name of the election whose record is tried
-- @number patience as above: who may write, and waits for that longer, is no candidate
function of_one.rights(store, name, patience)
  if not store.rights then return { unchecked = "what this candidate may do there" } end
  return store:rights(patience, name)
end

-- For how long a candidate waits in a store that is new: as it does where all was lost. Nil: not at all.
local function first_wait(self, checked)
  if checked.trust_empty or not checked.amnesia_wait then return nil end
  return TWICE * math.max(checked.amnesia_wait, (store_options.timing(checked, self.driver.ttl)))
end

-- @string[opt] name of the election; else the one that the options name, where they do
local function ask(self, what, opts, name)
  local there, checked, code = self:visit(opts)
  if not there then return nil, checked, code end
  name = name or opts.crown_name and tostring(checked.lock or opts.crown_name)
  local how = what == "evict" and opts.wait
  if what == "order" then how = opts.order end
  if what == "runs" then how = opts.forget end
  if what == "output" then how = opts.keep end
  if what == "health" or what == "rights" then
    how = store_options.timeout(checked, store_options.timing(checked, self.driver.ttl))
  end
  if what == "health" and not there.servers then return of_one.health(there.store, name, how, first_wait(self, checked)) end
  if there.servers then return majority[what](there.servers, name, how or nil) end
  return of_one[what](there.store, name, how or nil)
end

-- Tries the laws on stores of their own. A cluster's store is asked for one part at a time.
local function try_laws_of(driver, checked, opts)
  return require("crown.laws.judge").try(function(url, timeout)
    local store, problem = driver.open { word = driver.word, url = url or checked.url, timeout = timeout, node = core.node(),
      options = setmetatable({ url = url, urls = false }, { __index = checked }), emit = opts.emit }
    if store and store.part_of then store = Crowd.new(store, record.is_reserved) end
    return store, problem
  end, checked.url)
end

-- Where most of several servers decide, each one has to keep the laws.
local function try_laws(self, opts)
  local checked, problem = self:check(opts)
  if not checked then return nil, problem, "usage" end
  local urls = self.driver.servers and self.driver.servers(checked)
  if not urls then return try_laws_of(self.driver, checked, opts) end
  local all = { left = 0 }
  for _, url in ipairs(urls) do
    local server = setmetatable({ url = url, urls = false }, { __index = checked })
    local results, why, code, left = try_laws_of(self.driver, server, opts)
    if not results then return nil, why, code, left end
    for _, one in ipairs(results) do
      one.law = ("%s: %s"):format(self.driver.label(url), one.law)
      all[#all + 1] = one
    end
    all.left, all.tag = all.left + results.left, results.tag
  end
  return all
end

--- Makes an oracle's module.
-- @tparam table driver see above
-- @treturn table with all functions of an oracle's contract
-- @raise a usage error for what is missing or wrong in the driver
function driven.oracle(driver)
  check_driver(driver)
  local self = setmetatable({ driver = driver, stores = {}, looked_at = {}, kinds = {} }, Driven)
  self.rules = rules_of(driver)
  local oracle = { name = driver.word, unasked = driver.unasked, claim = Oracle.claim, refresh = Oracle.refresh,
    abdicate = Oracle.abdicate, handle_info = Oracle.handle_info }
  function oracle.init(opts) return self:init(opts) end
  function oracle.timing(opts) return store_options.timing(opts, driver.ttl) end
  if driver.options.url then
    function oracle.failover(opts) return Oracle.failover(oracle.timing(opts)) end
  end
  if driver.unasked then return oracle end
  function oracle.laws(opts) return try_laws(self, opts) end
  for _, what in ipairs { "list", "evict", "order", "runs", "output", "nodes", "health", "rights" } do
    oracle[what] = function(opts, name) return ask(self, what, opts, name) end
  end
  return oracle
end

return driven
