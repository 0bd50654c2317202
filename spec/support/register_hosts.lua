--- Runtimes of support.register_world: how they begin, and are killed.
local servers = require "support.register_servers"
local chance, look, perform_write, swap, unique = servers.chance, servers.look, servers.perform_write, servers.swap, servers.unique
local tasks = require "support.register_tasks"
local after, env_of = tasks.after, tasks.env_of
local core = require "support.register_core"
local pairs = require("support.ordered_pairs").pairs
local acts, follow, log, obey = core.acts, core.follow, core.log, core.obey
local health = require "support.register_health"

local PERIOD, AT_LEAST = 20, 5 -- seconds of the commands in the world runs
local RETRIES = 1 -- of those in the world occurrences

local function store_of(world, node, server)
  local store = { marks = world.marks, whole = world.whole, deletes = true }
  function store.look(_, names)
    return coroutine.yield(function(go_on) look(world, node, server, names, go_on) end)
  end
  function store.swap(_, writes)
    return coroutine.yield(function(go_on) swap(world, node, server, writes, go_on) end)
  end
  if world.same then
    function store.same(_, names, versions, memory)
      local asked = { names = names, versions = versions, memory = memory }
      return coroutine.yield(function(go_on) servers.same(world, node, server, asked, go_on) end)
    end
  end
  if world.wills then
    function store.will(_, write) node.wills[write.name] = write end
  end
  return store
end

-- Nobody asks again: what is lost on its way is not said.
local function execute_wills(world, node)
  for _, write in pairs(node.wills) do
    if chance(world, 0.8) then
      world.clock:after(world.random() * (chance(world, 0.7) and 0.1 or 60), function() perform_write(world, write, 1) end)
    end
  end
end

local function new_session(world, node, part)
  local ttl = node.host.ttl
  return world.modules.session.new(node.env, { token = node.token, node = node.token, ttl = ttl, delay = ttl / 3, patience = ttl / 2,
    floor = world.floor, part = part, many = world.many, lingers = 5 * ttl })
end

local function member_of(world, node, election)
  local parts = {}
  for server, session in ipairs(world.at and { new_session(world, node, election.name) } or node.sessions) do
    parts[server] = { slot = world.modules.terms.slot(session, election.name), session = session, store = node.stores[server],
      trusts = node.trusts, tell = function() election.told = true end, stand = function(_, on) election.stands = on end,
      obey = function(part, bar) obey(world, node, election, part, bar) end, remind = function() end,
      deadline = function() return world.servers == 1 and election.acts_until > -math.huge and election.acts_until or nil end }
  end
  if world.shares then
    for _, part in ipairs(parts) do part.rank = { level = 0 } end
  end
  if world.preferred then
    for _, part in ipairs(parts) do part.rank = node.host.rank end
  end
  if world.healthy then parts[1].rank = { level = node.host.rank.level, preempt = node.host.rank.preempt } end
  if world.slot then
    parts[1].job = world.modules.runs.job { slot = 0, retries = RETRIES, elsewhere = true, level = node.host.level,
      yields = world.yields, from = 0 }
  elseif world.jobs then
    parts[1].job = world.modules.runs.job { done_for = PERIOD, at_least = node.host.number == 2 and AT_LEAST or nil, elsewhere = true }
  end
  return world.servers > 1 and { parts = parts } or parts[1]
end

-- Asks for a share of a node that has more, one after the other: as lua/crown/election/shares.lua.
local function balance(world, node)
  after(world, node, 1 + world.random(), function()
    balance(world, node)
    local asked, leaders = node.asked and node.elections[node.asked.name], {}
    if asked and not asked.leads and node.env.now() < node.asked.ends then return end
    if asked then asked.member.rank.wanted, node.asked = nil, nil end
    for i, name in ipairs(world.names) do
      local election = node.elections[name]
      leaders[i] = election.leads and node.token or election.leader or false
    end
    local number = world.modules.balance.pick(leaders, node.token, world.random)
    local election = number and node.elections[world.names[number]]
    if not election or not election.wanted or election.barred then return end
    election.member.rank.wanted = leaders[number]
    node.asked = { name = election.name, ends = node.env.now() + node.host.ttl }
    if not election.leads and not election.task then follow(world, node, election, 0) end
  end)
end

local function start(world, host, token)
  local node = { host = host, token = token, label = ("%s/%d"):format(token, unique(world)), rate = host.rate, offset = host.offset,
    ahead = host.ahead, elections = {}, wills = {}, stores = {}, sessions = {}, timeout = host.ttl / 4 }
  node.env = env_of(world, node)
  if world.trusts then node.trusts = chance(world, 0.4) end
  for server = 1, world.servers do
    node.stores[server] = store_of(world, node, server)
    node.sessions[server] = new_session(world, node)
  end
  for _, name in ipairs(world.names) do
    local election = { name = name, acts_until = -math.huge, wanted = host.wants[name], turn = 0 }
    election.member = member_of(world, node, election)
    node.elections[name] = election
    follow(world, node, election, world.random() * 3)
  end
  if world.shares then balance(world, node) end
  if world.healthy then health.begin(world, node) end
  function node.hear(name, news)
    local election = node.elections[name]
    if not election then return end
    after(world, node, 0, function()
      election.member.slot.news = news
      election.told = election.leads
      local waits = not election.leads and not acts(node, name) and not election.task
      if waits and chance(world, 0.7) then follow(world, node, election, 0) end
    end)
  end
  world.nodes[host.number] = node
  return node
end

local function new_token(world, host)
  return ("%d.%d"):format(host.number, unique(world))
end

local function kill(world, host, token, most)
  local node = world.nodes[host.number]
  if node.dead then return end
  log(world, node, "is killed")
  node.dead = true
  execute_wills(world, node)
  world.clock:after(world.random() * most, function()
    if world.nodes[host.number] ~= node then return end
    host.offset = world.random() * 1000
    start(world, host, token or new_token(world, host))
  end)
end

return { start = start, new_token = new_token, kill = kill }
