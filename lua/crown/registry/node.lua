--- A member of a registry with a clock, a network and a store around it: what runs in a runtime. One for each registry.
-- @internal crown.registry.node

local candidate = require "crown.registry.candidate"
local claim_number = require "crown.oracle.claim_number"
local core = require "crown.core"
local crypto = require "crown.core.crypto"
local exchange = require "crown.registry.exchange"
local hex = require "crown.text.hex"
local Links = require "crown.registry.links"
local Member = require "crown.registry.member"
local promise = require "crown.core.promise"
local Store = require "crown.registry.store"
local Watch = require "crown.registry.watch"

local Node = {}
Node.__index = Node

local DECISION = 0.8  -- of the time-out, for a claim that waits for one
local AFTER_ERROR = 1 -- seconds until a member in which something went wrong goes on
local SIGN_MOST = 2   -- seconds between signs of life on a link, at most

local nodes = {}

local function fresh()
  return hex(crypto.random(16))
end

-- The member is entered by one task at a time: what it does is done before another one may.
local atomic = core.atomic

-- A task may have failed between two parts of a copy, or of the names that are to be registered again: nobody else would go
-- on with them. So the links end, which has the other members ask anew, and what the store says is looked at once more.
local function begin_anew(self, problem)
  self.links:cut(problem)
  self.member.own:restore()
  self.member:wake()
end

-- What goes wrong in the member is told.
local function enter(self, fn, ...)
  if self.over then return end
  local fine, problem = pcall(atomic, fn, ...)
  if fine then return end
  self.options.emit("oracle.error", { error = problem, member = self.member.id })
  core.sleep(AFTER_ERROR)
  if not self.over then atomic(begin_anew, self, problem) end
end

local function later(self, seconds, fn)
  core.detach(function()
    core.sleep(seconds)
    enter(self, fn)
  end)
end

local function effects_of(self, options)
  return {
    now = core.now, random = math.random, number = claim_number, fresh = fresh, acting = options.leading, emit = options.emit,
    told = function(what)
      if self.news then self.news:resolve(true) end
      options.told(what)
    end,
    after = function(seconds, fn) later(self, seconds, fn) end,
    soon = function(fn) core.detach(enter, self, fn) end,
    wanting = function() return not self.over end,
    ask = function(op, args, done)
      core.detach(function()
        local result, problem = self.store:ask(op, args)
        enter(self, done, result, problem)
      end)
    end,
    send = function(id, message) self.links:send(id, message) end,
    waiting = function(id) return self.links:waiting(id) end,
    links = function(peers) self.links:set_peers(peers) end,
  }
end

--- Makes a node; it begins with `start`.
-- @tparam table options of the oracle, checked: `registry`, `node`, `token`, `url`, `timeout`, `secret`, `host`, `port`,
-- `advertise`, `tls`, and those of crown.registry.member; `leading()`, `emit(event, fields)`, `told(what)`
-- @treturn Node
function Node.new(options)
  local self = setmetatable({ options = options, watches = {}, watchers = {} }, Node)
  nodes[options.registry] = self
  return self
end

--- The node of a registry in this runtime.
-- @string registry its name
-- @treturn Node or nil
function Node.of(registry)
  return nodes[registry]
end

local function open_links(self, member)
  local options = self.options
  return Links.open { who = { registry = options.registry, id = member.id, secret = options.secret, runtime = options.token },
    host = options.host, port = options.port, tls = options.tls, every = math.min(SIGN_MOST, options.ttl / 6),
    linger = 2 * options.snapshot_timeout, emit = options.emit,
    receive = function(...) return atomic(exchange.receive, member, ...) end,
    answered = function(from, message) return atomic(exchange.answered, member, from, message) end,
    runtime_of = function(other) return member:runtime_of(other) end,
    dialled = function(other, there) atomic(member.dialled, member, other, there) end,
    up = function(other) atomic(member.link_up, member, other) end,
    down = function(other) atomic(member.link_down, member, other) end }
end

--- Listens, connects and joins, once.
-- @return true, or nil and a message
function Node:start()
  if self.member then return true end
  local options = self.options
  local member = Member.new({ registry = options.registry, node = options.node, runtime = options.token, ttl = options.ttl,
    replicas = options.replicas, replicate_timeout = options.replicate_timeout, snapshot_timeout = options.snapshot_timeout,
    strict = options.strict, most = options.most, watchers = self.watchers }, effects_of(self, options))
  local links, problem = open_links(self, member)
  if not links then return nil, problem end
  local store
  store, problem = Store.open { url = options.url, registry = options.registry, ttl = options.ttl, timeout = options.timeout,
    amnesia_wait = options.amnesia_wait, trust_empty = options.trust_empty, schema = options.schema, emit = options.emit,
    heard = function() atomic(member.heard, member) end }
  if not store then
    links:close()
    return nil, problem
  end
  member.options.address = ("%s:%d"):format(options.advertise or options.host, options.advertised_port or links.port)
  self.member, self.links, self.store = member, links, store
  for _, watch in ipairs(self.watches) do watch.replica = member.replica end
  atomic(member.start, member)
  return true
end

-- Waits for what one of crown.registry.candidate's functions calls `done` with.
local function await(seconds, fn, ...)
  local answer = promise()
  local arguments, count = { ... }, select("#", ...)
  arguments[count + 1] = function(...) answer:resolve({ n = select("#", ...), ... }) end
  atomic(fn, unpack(arguments, 1, count + 1))
  local results, problem = answer:wait(seconds)
  if not results then return nil, problem, "timeout" end
  return unpack(results, 1, results.n)
end

-- Whether it is known who leads.
local function is_settled(fine, detail)
  return fine ~= false or detail.epoch or detail.amnesia
end

--- Claims, and waits for a decision that is about to be made.
-- @return as crown.registry.candidate's functions say
function Node:claim()
  local started, problem = self:start()
  if not started then return nil, problem end
  local options = self.options
  local until_at = core.now() + options.timeout * DECISION
  while true do
    local news = promise()
    self.news = news
    local fine, detail = await(options.timeout, candidate.claim, self.member)
    local left = until_at - core.now()
    if is_settled(fine, detail) or left <= 0 then return fine, detail end
    news:wait(left)
  end
end

--- Refreshes.
-- @return as crown.registry.candidate's functions say
function Node:refresh()
  if not self.member then return nil, "not a member yet" end
  return await(self.options.timeout, candidate.refresh, self.member)
end

--- Lets go; at the end of the process, leaves.
-- @tparam boolean ending
function Node:abdicate(ending)
  if not self.member then return end
  await(self.options.replicate_timeout + self.options.snapshot_timeout + self.options.timeout, candidate.abdicate,
    self.member, ending)
  if not ending then return end
  self.over = true
  atomic(self.member.close, self.member)
  self.links:close()
  self.store:close()
  nodes[self.options.registry] = nil
end

local function forget(self, watch)
  for i, one in ipairs(self.watches) do
    if one == watch then
      table.remove(self.watches, i)
      table.remove(self.watchers, i)
    end
  end
end

--- Tells of names that change here.
-- @tparam function fn as for crown.registry.watch
-- @treturn Watch or nil and a message
function Node:watch(fn)
  local watch, problem = Watch.new(fn, self.options.emit, function(one) atomic(forget, self, one) end)
  if not watch then return nil, problem end
  watch.replica = self.member and self.member.replica
  atomic(function()
    table.insert(self.watches, watch)
    table.insert(self.watchers, watch.changes)
  end)
  return watch
end

--- Writes a name.
-- @tparam table op of crown.registry.authority
-- @number timeout seconds
-- @return true; false and who has the name; or nil, message, code
function Node:write(op, timeout)
  local started, problem = self:start()
  if not started then return nil, problem, "failed" end
  if self.over then return nil, "this node has left the registry", "closed" end
  return await(timeout + 1, function(done) self.member.own:write(op, timeout, done) end)
end

return Node
