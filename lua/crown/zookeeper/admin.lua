--- What the verbs `info`, `check` and `evict` ask of a ZooKeeper.
-- @internal crown.zookeeper.admin

local Connection = require "crown.zookeeper.connection"
local eviction = require "crown.oracle.eviction"
local figure = require "crown.check.figure"
local memory = require "crown.zookeeper.memory"
local options = require "crown.zookeeper.options"
local Orders = require "crown.zookeeper.orders"
local recipe = require "crown.zookeeper.recipe"
local url = require "crown.text.url"
local wire = require "crown.zookeeper.wire"

local admin = {}

local TIMEOUT = 5 -- seconds for a question
local PEER = "the leader of '%s' is no candidate of crown-lua: clients of %s hear no request to go. End its process; one whose "
  .. "node is deleted goes on as if it led"

local LIMITS = "ZooKeeper makes a ttl of %s s one of %s s: minSessionTimeout and maxSessionTimeout are its limits"

-- A session of its own for a tool, of the first server that answers.
local function visit(opts, fn)
  local checked, problem, code = options.check(opts)
  if not checked then return nil, problem, "usage" end
  local timeout = checked.timeout or TIMEOUT
  for _, place in ipairs(checked.parsed.hosts) do
    local connection
    connection, problem, code = Connection.open(checked.parsed, place, { ttl = checked.ttl }, timeout)
    if connection then
      local function ask(...) return connection:ask(timeout, ...) end
      local found, why, kind = fn(ask, checked, connection)
      ask "close"
      connection:close()
      return found, why, type(kind) == "number" and "store" or kind
    end
  end
  return nil, problem, code
end

-- @return the queue of an election, empty where there is none; or nil, message, code
local function queue_of(ask, checked, base)
  local names, problem, code = ask("children", base)
  if code == wire.NO_NODE then return {} end
  if not names then return nil, ("%s: %s"):format(base, problem), code end
  local queue, why = recipe.queue(checked.kind, base, names)
  if not queue then return nil, why, "store" end
  return queue
end

-- Who stands in a queue. Who has gone meanwhile is left out.
local function election_of(ask, name, base, queue)
  local one = { name = name, candidates = {} }
  for _, entry in ipairs(queue) do
    local found = ask("get", ("%s/%s"):format(base, entry.name), false)
    if found then
      local node = recipe.read_data(found.data)
      if not one.node then one.node, one.epoch = node, wire.number(found.stat.czxid) end
      one.candidates[#one.candidates + 1] = node
    end
  end
  return one.node and one
end

--- Elections below the URL's path.
-- @tparam table opts `url`
-- @treturn table an array of `{ name, node, epoch, candidates }`, by name, or of `{ name, trouble }` where nobody can tell who
-- leads; or nil and a message
function admin.list(opts)
  return visit(opts, function(ask, checked)
    local path = checked.parsed.path
    local names, problem, code = ask("children", path == "" and "/" or path)
    if code == wire.NO_NODE then return {} end
    if not names then return nil, problem, code end
    table.sort(names)
    local found = {}
    for _, escaped in ipairs(names) do
      if escaped:sub(1, 1) ~= "@" then
        local base, name = path .. "/" .. escaped, url.decode(escaped)
        local queue, why = queue_of(ask, checked, base)
        if not queue then found[#found + 1] = { name = name, trouble = why }
        elseif queue[1] then found[#found + 1] = election_of(ask, name, base, queue) or nil end
      end
    end
    return found
  end)
end

--- Hands a tool the orders below the URL's path.
-- @tparam table opts `url`
-- @tparam function fn gets a store of orders
-- @return what it returns; or nil, message, code
function admin.with_orders(opts, fn)
  return visit(opts, function(_, checked, connection)
    local function ready() return connection, checked.timeout or TIMEOUT end
    return fn(Orders.new(ready, checked.parsed.path, checked.rights))
  end)
end

--- Asks the leader to step down, and waits until it has. Clients of Curator's and kazoo's hear no such wish.
-- @tparam table opts `url`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil, message, code
function admin.evict(opts, name)
  return visit(opts, function(ask, checked)
    local base = recipe.base(checked.parsed.path, name)
    local queue, problem, code = queue_of(ask, checked, base)
    if not queue then return nil, problem, code end
    local first = queue[1]
    local path = first and ("%s/%s"):format(base, first.name)
    local found = first and ask("get", path, false)
    if not found then return eviction.nobody(name) end
    if not recipe.is_ours(first) then return nil, PEER:format(name, checked.kind.by), "store" end
    local set
    set, problem, code = ask("set", path, recipe.with_wish(found.data), -1)
    if code == wire.NO_NODE then return eviction.nobody(name) end
    if not set then return nil, ("%s: %s"):format(path, problem), code end
    local gone
    gone, problem, code = eviction.await(name, opts.wait, function()
      local there, why, kind = ask("get", path, false)
      if kind == wire.NO_NODE then return true end
      return there and false, why
    end, "the request stays until its term ends")
    if not gone then return nil, problem, code end
    return { node = recipe.read_data(found.data), epoch = wire.number(found.stat.czxid) }
  end)
end

local function servers_in(config)
  local _, count = config:gsub("server%.%d+=", "")
  return count
end

--- What the ensemble says of itself.
-- @tparam table opts `url`
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function admin.health(opts)
  return visit(opts, function(ask, checked, connection)
    local config = ask("get", "/zookeeper/config", false)
    local count = config and servers_in(config.data) or 0
    local words = count > 1 and ("ZooKeeper, %d servers"):format(count) or "ZooKeeper"
    local facts, warnings, time = { { "Store", words }, { "Recipe", checked.recipe } }, {}, connection.welcome.ttl
    facts[#facts + 1] = { "Session", figure.exact(time) .. " s" }
    if count > 0 and count % 2 == 0 then
      warnings[1] = ("%d servers: one fewer would survive as many failures"):format(count)
    end
    if time ~= checked.ttl then
      warnings[#warnings + 1] = LIMITS:format(figure.exact(checked.ttl), figure.exact(time))
    end
    return { facts = facts, warnings = warnings, ttl = time }
  end)
end

-- --- rights

local function is_for(entry, parsed)
  if entry.scheme == "world" then return true end
  return entry.scheme == "digest" and parsed.user ~= nil and entry.id:match "^[^:]*" == parsed.user
end

-- The deepest node of a path that there is.
-- @return its ACL and its path; false and the path where nothing of it may be read; or nil, message, code
local function deepest(ask, path)
  while true do
    local list, problem, code = ask("get_acl", path)
    if list then return list, path end
    if code == wire.NO_AUTH then return false, path end
    if code ~= wire.NO_NODE then return nil, problem, code end
    path = path:match "^(.+)/[^/]*$" or "/"
  end
end

local function check_node(lacks, list, path, parsed, wanted)
  local has, is_known = 0, true
  for _, entry in ipairs(list or {}) do
    if is_for(entry, parsed) then has = bit.bor(has, entry.rights) end
    if entry.scheme ~= "world" and entry.scheme ~= "digest" then is_known = false end
  end
  for _, right in ipairs(wanted) do
    if bit.band(has, wire.RIGHTS[right]) == 0 then
      local text = ("%s lacks %s in the ACL of %s"):format(parsed.user or "this candidate", right, path)
      if is_known then lacks[#lacks + 1] = text end
      if not is_known then lacks.unchecked = text .. ", unless an entry of another scheme gives it" end
    end
  end
end

--- What a candidate lacks, by the ACLs of what is there. Nothing is written.
-- @tparam table opts `url`, `crown_name`, `lock`
-- @treturn table an array of texts; or nil, message, code
function admin.rights(opts)
  return visit(opts, function(ask, checked)
    local lacks, parsed = {}, checked.parsed
    local base = recipe.base(parsed.path, tostring(checked.lock or opts.crown_name))
    for _, one in ipairs { { base, { "READ", "CREATE", "DELETE" } }, { memory.node(parsed.path), { "READ", "WRITE" } } } do
      local list, path, code = deepest(ask, one[1])
      if list == nil then return nil, path, code end
      check_node(lacks, list, path, parsed, path == one[1] and one[2] or { "CREATE" })
    end
    local queue, problem, code = queue_of(ask, checked, base)
    if not queue and code == "store" then lacks[#lacks + 1] = problem end
    local node = ask("get", memory.node(parsed.path), false)
    lacks[#lacks + 1] = node and memory.trouble(parsed.path, node.data) or nil
    return lacks
  end)
end

return admin
