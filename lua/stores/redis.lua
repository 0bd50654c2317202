--- The register in Redis: each record is a hash, which no time-out ends, so `volatile-*` evicts none. One script looks, another
-- one swaps. The memory is the server's replication id, which is another one after each restart and promotion. In a cluster each
-- node has its own.
-- @internal crown.stores.redis

local Client = require "crown.redis.client"
local Cluster = require "crown.redis.cluster"
local core = require "crown.core"
local nonce = require "crown.text.nonce"
local redis_url = require "crown.redis.url"
local options = require "crown.redis.options"
local question = require "crown.redis.question"
local Sentinels = require "crown.redis.sentinels"
local server = require "crown.redis.server"
local several = require "crown.link.several"
local slots = require "crown.redis.slots"
local Subscriber = require "crown.redis.subscriber"

local Store = { deletes = true }
Store.__index = Store

-- Records in one call, so that the server is never busy for long: with looks and writes, and with what is less work.
local MOST, MOST_SAME = 128, 512
local NEWER = "a newer version of crown-lua" -- who leads, as an older one shows it

-- --- many records

local PART = 64 -- slots beside each other: mostly one node keeps them, and hands them over together

local tags = {}

-- What stands in the braces of a key, so that the key is in one of a part's slots.
local function tag_of(part)
  local tries = 0
  while not tags[part] do
    local tag = ("%d-%d"):format(part, tries)
    if math.floor(slots.of(tag) / PART) == part then tags[part] = tag end
    tries = tries + 1
  end
  return tags[part]
end

-- In a cluster a session is where the elections are of which it is a part.
local function key_of(self, name)
  local part = self.parsed.cluster and name:match "^@.*@(%d+)$"
  if part then return ("%s:{%s}%s:record"):format(self.prefix, tag_of(tonumber(part)), name) end
  return ("%s:{%s}:record"):format(self.prefix, name)
end

local function cluster_of(self)
  self.cluster = self.cluster or Cluster.new(self.client_options)
  return self.cluster
end

-- In a cluster two records are on two nodes, or on their way to another one: each is asked for by itself.
local function in_cluster(self, list, fn)
  several.ask(#list, { enough = math.huge, grace = 0 }, function(i)
    fn({ list[i] }, function(...)
      local asked = { ... }
      return cluster_of(self):run(key_of(self, list[i].name), function(client)
        return question.ask(self, client, unpack(asked))
      end)
    end)
  end)
end

-- Whether it is a cluster, any connection to it tells: then nothing more is asked of the one that the URL names.
local function find_out(self)
  if self.in_cluster then return true end
  return self.home:ready(self.place.timeout)
end

-- Runs `fn(part, ask)` with parts of a list, `ask(word, keys, arguments)` being the way to the server that keeps them.
local function in_parts(self, list, most, fn)
  local found, problem, code = find_out(self)
  if not found then return nil, problem, code end
  for first = 1, #list, most do
    local part = {}
    for i = first, math.min(#list, first + most - 1) do part[#part + 1] = list[i] end
    if self.in_cluster then
      in_cluster(self, part, fn)
    else
      fn(part, function(...) return question.ask(self, self.home, ...) end)
    end
  end
  return true
end

local function memory_key(self) return self.in_cluster and "" or self.prefix .. ":memory" end

local function keys_of(self, part)
  local keys = {}
  for i, one in ipairs(part) do keys[i] = key_of(self, one.name) end
  return keys
end

local function is_row(one)
  local fine = type(one) == "table" and type(one[1]) == "string" and type(one[3]) == "number"
  return not one or fine and (not one[2] or type(one[2]) == "string")
end

-- An older version lives by the server's clock.
local function read(one, memory, time)
  if type(one) ~= "table" then return { text = false, version = false, memory = memory, time = time } end
  if one[4] == "older" then
    return { text = false, version = false, memory = memory, time = time, peer = { node = one[1] ~= "" and one[1] or nil,
      epoch = tonumber(one[2]) or 0, wait = one[3] / 1000 } }
  end
  return { text = one[2] or false, version = one[1], memory = memory, time = time, age = one[3] / 1000,
    trouble = one[1] == question.NONE and one[2] or nil }
end

--- Looks at records.
-- @tparam table names
-- @treturn table for each name `{ text =, version =, memory =, time = in ms, age = in seconds, by the server's clock }`, text and
-- version false where there is none; `peer`: an older version of crown-lua, see crown.register.rule; or nil, message, code
function Store:look(names)
  local list, answers, failure = {}, {}, nil
  for i, name in ipairs(names) do list[i] = { name = name } end
  local ready, problem, code = in_parts(self, list, MOST, function(part, ask_it)
    local answer, why, kind = ask_it("look", keys_of(self, part), { memory_key(self), self.place.only_looks and "" or nonce() })
    if not answer then failure = { why or "no answer", kind } end
    local time = answer and tonumber(answer[#part + 2])
    for i, one in ipairs(answer and part or {}) do
      if not is_row(answer[i + 1]) then failure = { question.STRANGE, "protocol" } return end
      local found = read(answer[i + 1], answer[1], time)
      if found.trouble then found.trouble = self.home:answered(found.trouble, "ERR") end
      answers[one.name] = found
    end
  end)
  if not ready then return nil, problem, code end
  if failure then return nil, failure[1], failure[2] end
  return answers
end

local function is_session(name) return name:sub(1, 1) == "@" end

-- A server may be told at any time to throw records away when it is full: each renewal asks, and waits for no answer.
local function look_at_policy(self, writes)
  if self.in_cluster or not is_session(writes[1].name) then return end
  core.detach(function()
    local info = self.home:call("INFO", "memory")
    if type(info) == "string" then self.forgets = server.forgets(info) end
  end)
end

--- Whether records stand as they were written. In a cluster each has to be asked for by itself: a look does as well.
-- @tparam table names
-- @tparam table versions
-- @string memory
-- @treturn table for each name true, or nothing where that is not known; or nil, message, code
function Store:same(names, versions, memory)
  local list, results, failure = {}, {}, {}
  for i, name in ipairs(names) do list[i] = { name = name, at = i } end
  local ready, problem, code = find_out(self)
  if ready and self.in_cluster then return results end
  if ready then
    ready, problem, code = in_parts(self, list, MOST_SAME, function(part, ask_it)
      local arguments = { memory_key(self), "", memory }
      for i, one in ipairs(part) do arguments[i + 3] = versions[one.at] end
      local answer, why, kind = ask_it("same", keys_of(self, part), arguments)
      if not answer then failure = { why or "no answer", kind } end
      for i, one in ipairs(answer and part or {}) do results[one.at] = answer[i + 1] == 1 or nil end
    end)
  end
  if not ready then return nil, problem, code end
  if failure[1] then return nil, failure[1], failure[2] end
  return results
end

local NOBODY = "-" -- hears of a change of an election's record

local function is_told(write) return not write.quiet and not is_session(write.name) end

-- What others are told of an election's record: its name, its version, and where they may claim it now also its text.
local function news_of(write, version)
  if is_session(write.name) then return "" end
  if write.quiet then return NOBODY end
  return ("%s\n%s %s"):format(write.name, version, write.frees and write.text or "")
end

local function arguments_of(self, part)
  local arguments = { memory_key(self), nonce(), self.channel, NEWER }
  for _, one in ipairs(part) do
    one.new = nonce()
    if self.own and is_told(one.write) then self.own[one.new] = true end
    for _, word in ipairs { one.write.version or "", one.write.memory, one.new, one.write.text or "",
      news_of(one.write, one.new) } do arguments[#arguments + 1] = word end
  end
  return arguments
end

-- What was not written, as far as anybody knows, is news like another one's where it is told of after all.
local function forget_unwritten(self, part, results)
  for _, one in ipairs(self.own and part or {}) do
    if not results[one.at] then self.own[one.new] = nil end
  end
end

--- Writes records, each over the version that it names and in the memory that it names.
-- @tparam table writes each `{ name =, version = or false, text =, memory = }`, text false for one that is to be deleted
-- @treturn table for each the new version, false where it was not written, or nil where nobody knows; or nil, message, code
function Store:swap(writes)
  look_at_policy(self, writes)
  local list, results, failure = {}, {}, {}
  for i, write in ipairs(writes) do
    if not self.forgets or is_session(write.name) then list[#list + 1] = { name = write.name, write = write, at = i } end
  end
  if #list == 0 then return nil, self.forgets, "store" end
  local ready, problem, code = in_parts(self, list, MOST, function(part, ask_it)
    local answer, why, kind = ask_it("swap", keys_of(self, part), arguments_of(self, part))
    if not answer then failure = { why or "no answer", kind } end
    for i, one in ipairs(answer and part or {}) do
      local done = answer[i + 1]
      if type(done) == "string" then
        failure = { self.home:answered(done, "ERR"), "store" }
      else
        results[one.at] = done == 1 and one.new
      end
    end
    forget_unwritten(self, part, results)
  end)
  if not ready then return nil, problem, code end
  if next(results) == nil then return nil, failure[1], failure[2] end
  return results
end

--- Tells of changes of elections' records.
-- @tparam function fn called with a name, where others may claim it with `{ version =, text = }`, and with whether this store has
-- written that; with nil whenever something may have been missed
function Store:hear(fn)
  self.subscriber = Subscriber.new(self.place.url, self.place.timeout, function() return self.cluster and self.cluster:any() end,
    "redis channels")
  self.subscriber:subscribe(self.channel, function(message)
    if not message then
      self.own = {} -- the versions that this store writes, and has not been told of
      return fn()
    end
    local name, version, text = message:match "^(.*)\n(%S*) ?(.-)$"
    if not name then return end
    local is_own = self.own and self.own[version]
    if is_own then self.own[version] = nil end
    fn(name, text ~= "" and { version = version, text = text } or nil, is_own)
  end)
end

-- Runs `fn(client, name)` with each server that keeps records.
local function each(self, fn)
  local found, problem, code = find_out(self)
  if not found then return nil, problem, code end
  if not self.in_cluster then return fn(self.home, redis_url.label(self.parsed)) end
  return cluster_of(self):each(fn)
end

--- The names of elections' records, and of leases of an older version.
-- @treturn table an array; or nil, message, code
function Store:names()
  local names, known, head = {}, {}, self.prefix .. ":{"
  local fine, problem, code = each(self, function(client)
    return server.each_key(client, head .. "*}:[rl]e*", function(key)
      local name = key:match("^(.*)}:record$", #head + 1) or key:match("^(.*)}:lease$", #head + 1)
      if name and not known[name] then known[name], names[#names + 1] = true, name end
    end)
  end)
  if not fine then return nil, problem, code end
  return names
end

--- What the server says of itself; of a cluster, each node that keeps slots.
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function Store:health()
  local nodes, last = {}, nil
  local fine, problem, code = each(self, function(client, name)
    local info, why, kind = client:call "INFO"
    if type(info) ~= "string" then return nil, why or question.STRANGE, kind end
    nodes[#nodes + 1], last = ("%s (%s)"):format(name, server.replicas(info)), info
    return true
  end)
  if not fine then return nil, problem, code end
  local facts = { { "Store", self.in_cluster and server.version(last) .. ", a cluster" or server.words(last) } }
  if self.in_cluster then facts[2] = { "Primaries", table.concat(nodes, ", ") } end
  return { facts = facts, warnings = server.warnings(last) }
end

local SHORT = { "PX", "1000" } -- so that nothing is left where it may not be deleted

-- What a candidate sends and its scripts call, on a name that no election has. What would leave something comes behind what
-- sees to it that it does not: on a text no hash is written.
local function commands(self)
  local key = key_of(self, "@check")
  local lease = (key:gsub(":record$", ":lease"))
  return { { "INFO" }, { "ROLE" }, { "SELECT", ("%d"):format(self.parsed.db or 0) }, { "TIME" }, { "SCAN", "0" },
    { "WAIT", "0", "1" }, { "SCRIPT", "LOAD", "return 1" }, { "EVALSHA", "0", "1", key }, { "EVAL", "return 1", "1", key },
    { "HGET", key, "version" }, { "HMGET", key, "version" }, { "HMGET", lease, "token" }, { "PTTL", lease }, { "GET", key },
    { "DEL", key, lease }, { "SET", key, "x", unpack(SHORT) }, { "SET", lease, "x", unpack(SHORT) },
    { "HSET", key, "version", "x", leaves = true }, { "DEL", key, lease }, { "PUBLISH", self.channel, "x" } }
end

-- What keeps most Sentinels from confirming what the server says.
local function unconfirmed(self)
  if not self.sentinels then return nil end
  local primary, problem = self.sentinels:primary(self.place.timeout)
  return not primary and problem or nil
end

-- A client that waits for each answer as a candidate does, once it is connected.
local function visit(self, patience)
  local client, problem = Client.new(self.place.url, { timeout = self.place.timeout })
  if not client then return nil, problem, "usage" end
  local ready, why, code = client:ready()
  client.timeout = patience or client.timeout
  if ready then return client end
  client:close()
  return nil, why, code
end

--- What a candidate lacks: rights, which are tried, and a server that takes writes.
-- @number[opt] patience seconds that a candidate waits for an answer
-- @treturn table an array of texts; or nil, message, code
function Store:rights(patience)
  local client, problem, code = visit(self, patience)
  if not client then return nil, problem, code end
  local lacks
  local function look_at(one)
    one.timeout = client.timeout
    lacks, problem, code = server.lacks(one, { commands = commands(self), min_replicas = self.min_replicas,
      more = unconfirmed(self), key = key_of(self, "@check") .. ":write", user = self.parsed.user, prefix = self.prefix })
    return lacks ~= nil, problem, code
  end
  local info, fine
  info, problem, code = client:call "INFO"
  if type(info) == "string" and info:find "redis_mode:cluster" then
    fine, problem, code = cluster_of(self):run(key_of(self, "@check"), look_at)
  elseif info and self.parsed.cluster then
    problem, code = question.NO_CLUSTER, "usage"
  elseif info or code == server.NO_RIGHT then -- which is heard among the rest
    self.id = info and server.id(info)
    fine = look_at(client)
  end
  local hear = { "SUBSCRIBE", self.channel } -- after which the client only listens
  if fine then server.add_refusal(lacks, client, hear, self.parsed.user, self.prefix) end
  client:close()
  if not fine then return nil, client:answered(problem, code), code end
  return lacks
end

--- Ends it.
function Store:close()
  self.home:close()
  for _, one in ipairs { self.subscriber or false, self.cluster or false, self.sentinels or false } do
    if one then one:close() end
  end
end

-- --- the driver

local driver = { word = "redis", ttl = 15, least = 0.2, schemes = options.SCHEMES, clients = options.CLIENTS,
  options = options.RULES, check = options.check, servers = options.servers, label = options.label }

--- Makes a store, which connects when it is asked.
-- @tparam table place `url`; `options`: `prefix` and `min_replicas`; `timeout` in seconds
-- @treturn Store or nil and a message
function driver.open(place)
  local parsed, problem = redis_url.parse(place.url)
  if not parsed then return nil, problem end
  local self = setmetatable({ place = place, parsed = parsed, shas = {},
    prefix = place.options.prefix, channel = place.options.prefix .. ":crown:changes",
    min_replicas = place.options.min_replicas }, Store)
  self.sentinels = parsed.master and Sentinels.new(parsed)
  self.client_options = { url = place.url, timeout = self.place.timeout,
    label = not place.only_looks and driver.word or nil,
    choose = self.sentinels and function(timeout) return self.sentinels:primary(timeout) end,
    setup = function(...) return question.set_up(self, ...) end }
  self.home, problem = Client.new(place.url, self.client_options)
  if not self.home then return nil, problem end
  self.marks = not parsed.cluster
  if parsed.cluster then
    function self.part_of(_, name) return ("%d"):format(math.floor(slots.of(key_of(self, name)) / PART)) end
  end
  return self
end

return driver
