--- What goes wrong in support.register_world.
local servers = require "support.register_servers"
local chance, frozen, perform_write, row_of = servers.chance, servers.frozen, servers.perform_write, servers.row_of
local shard_of, unique = servers.shard_of, servers.unique
local core = require "support.register_core"
local acts, check, end_term, log = core.acts, core.check, core.end_term, core.log
local hosts = require "support.register_hosts"
local pairs = require("support.ordered_pairs").pairs
local kill = hosts.kill

local PEERS_TTL = 10
local ENDS_BEFORE = 3600000 -- ms: hosts' clocks are no further apart
local PAST_MOST = 12 -- states of the store that it may go back to

local function restore(world, kind, state, memory)
  local rows = {}
  for name, row in pairs(state.rows) do
    if not world.at or shard_of(world, name) == kind then rows[name] = row end
  end
  world.shards[kind] = { rows = rows, memory = memory or ("m%d"):format(unique(world)) }
  if world.trace then world.trace(("%9.3f %s restored, memory %s"):format(world.clock.now, kind, world.shards[kind].memory)) end
end

local function some_state(world, kind)
  local states = world.past[kind]
  if #states == 0 or chance(world, 0.3) then return frozen(world.shards[kind]) end
  if chance(world, 0.7) then return states[math.max(1, #states - world.random(6) + 1)] end
  return states[world.random(#states)]
end

-- An operator's directive, over what was seen some time ago.
local function direct(world, name)
  local server = world.random(world.servers)
  local answer = row_of(world, name, server)
  local found = answer.text and world.modules.record.parse(answer.text, name)
  if not found or not found.by then return end
  local one = world.modules.rule.direct(found, chance(world, 0.5) and "evict" or "another")
  local text = world.modules.record.text(one, ("%d"):format(unique(world)))
  world.clock:after(world.random() * 3, function()
    perform_write(world, { name = name, version = answer.version, memory = answer.memory, text = text }, server)
  end)
end

-- While a pause stands that lets nobody go on, who leads has stepped down by its term's end, whatever becomes of its questions.
local function watch_pause(world, name, server, orders)
  if orders.keep or world.servers > 1 or world.at then return end
  local longest = 0
  for _, host in ipairs(world.hosts) do longest = math.max(longest, host.ttl) end
  local last = nil
  local function look()
    local answer = row_of(world, name, server)
    local found = answer.text and world.modules.record.parse(answer.text, name)
    local stands = found and found.orders and found.orders.pause and found.orders.number == orders.number
    if not stands or not world.trouble then return end
    if last ~= answer.memory then last, orders.since = answer.memory, world.clock.now end
    local over = orders["until"] and world.clock.now * 1000 > orders["until"] * 1000 - ENDS_BEFORE
    if over then return end
    if world.clock.now - orders.since > 3 * longest + 2 then
      for _, node in pairs(world.nodes) do
        if acts(node, name) then error(("%s leads the paused %s at %.3f"):format(node.label, name, world.clock.now), 0) end
      end
    end
    world.clock:after(1, look)
  end
  look()
end

-- What an operator orders of all candidates, or takes back.
local function order(world, name)
  local server = world.random(world.servers)
  local answer = row_of(world, name, server)
  local found = answer.text and world.modules.record.parse(answer.text, name)
  if not found then return end
  local dice, orders = world.random(), world.modules.orders
  local number = unique(world)
  local wanted = { number = number, other = (found.orders or {}).other or unique(world),
    ranks = (found.orders or {}).ranks }
  if dice < 0.3 then
    wanted.pause, wanted.keep = true, chance(world, 0.3) or nil
    if chance(world, 0.5) then wanted["until"] = math.floor(world.clock.now + world.random() * 100) end
  elseif dice < 0.7 then
    wanted.to, wanted.within = world.nodes[world.random(#world.hosts)].token, world.random() * 30
  else
    wanted = orders.without(found.orders)
    if wanted then wanted.number = number end
  end
  local text = world.modules.record.text(world.modules.rule.order(found, wanted), ("%d"):format(unique(world)))
  world.clock:after(world.random() * 3, function()
    local write = { name = name, version = answer.version, memory = answer.memory, text = text }
    local written = world.trouble and perform_write(world, write, server, true)
    if written and wanted and wanted.pause then watch_pause(world, name, server, wanted) end
  end)
end

-- A peer that holds an election renews, leaves or is gone.
local function go_on_as_peer(world, name, row)
  world.clock:after(world.random() * 5, function()
    if not world.trouble or world.shards.elections1.rows[name] ~= row or row.ends <= world.clock.now then return end
    local dice = world.random()
    if dice < 0.2 then row.ends, row.version = world.clock.now, unique(world) end
    if dice >= 0.4 then
      row.ends = world.clock.now + PEERS_TTL
      go_on_as_peer(world, name, row)
    end
  end)
end

-- A peer that writes no records claims: it sees nothing but until when the last lease goes.
local function claim_as_peer(world, name)
  local rows = world.shards.elections1.rows
  local before = rows[name]
  if before and before.ends > world.clock.now then return end
  local row = { text = before and before.text or false, version = unique(world), peer = "peer", ends = world.clock.now + PEERS_TTL }
  rows[name] = row
  if world.trace then world.trace(("%9.3f a peer leads %s"):format(world.clock.now, name)) end
  check(world, name)
  go_on_as_peer(world, name, row)
end

-- The restored state of a store that does not name its memory is one that everybody who lives has seen surpassed: who knows
-- nothing newer cannot tell.
local function is_surpassed(world, state)
  local here = world.shards.elections1.rows
  for _, name in ipairs(world.names) do
    if not here[name] or not state.rows[name] then return false end
  end
  for name, row in pairs(state.rows) do
    local serial = row ~= here[name] and world.modules.record.parse(row.text, name).serial
    for _, node in pairs(serial and world.nodes or {}) do
      local seen = node.sessions[1].seen.entries[name]
      local known = seen and seen.serial or -1
      if node.dead or known <= serial and (known >= 0 or name:sub(1, 1) ~= "@") then return false end
      if seen and seen.version == row.version then return false end -- for who has not looked since, nothing has changed
    end
  end
  return true
end

-- Until somebody who knows better has doubted what was restored nobody may come who knows nothing.
local function is_back(world)
  for name in pairs(world.back or {}) do
    local row = world.shards.elections1.rows[name]
    if row and world.modules.record.parse(row.text, name).doubt then world.back[name] = nil end
  end
  return world.back ~= nil and next(world.back) ~= nil
end

local function go_back(world)
  if is_back(world) then return end
  local states = world.past.elections1
  local state = states[world.random(math.max(1, #states))]
  if not state or not is_surpassed(world, state) then return end
  world.back = {}
  for _, name in ipairs(world.names) do
    local row = state.rows[name]
    if row ~= world.shards.elections1.rows[name] then world.back[name] = true end
  end
  restore(world, "elections1", state, world.shards.elections1.memory)
end

-- Of several servers each fault befalls one.
local function some_kind(world, kind)
  return kind .. world.random(world.servers)
end

-- Another node of a cluster gets what one has of a name.
local function move(world, which)
  local from, to = world.at[which], world.at[which] == "sessions1" and "elections1" or "sessions1"
  for name, row in pairs(frozen(world.shards[from]).rows) do
    if (name:match "^@.*(@.*)" or name) == which then
      world.shards[from].rows[name], world.shards[to].rows[name] = nil, row
    end
  end
  world.at[which] = to
end

local FAULTS = {
  kill = function(world, host)
    if not is_back(world) then kill(world, host, world.nodes[host.number].token, 6) end
  end,
  host = function(world, host)
    if not is_back(world) then kill(world, host, nil, 40) end
  end,
  cut = function(world, host)
    if world.blind then -- for longer than a doubt, and its session is not
      world.nodes[host.number].cut = { ends = world.clock.now + world.random() * 150, shard = "elections1" }
      return
    end
    world.nodes[host.number].cut = { ends = world.clock.now + world.random() * (world.brief and 1.1 or 4) * host.ttl,
      shard = chance(world, 0.6) and (chance(world, 0.8) and some_kind(world, "elections") or some_kind(world, "sessions")) or nil }
  end,
  stop = function(world, host)
    log(world, world.nodes[host.number], "is stopped")
    world.nodes[host.number].stopped = world.clock.now + world.random() * 50
  end,
  want = function(world, host)
    local name = world.names[world.random(#world.names)]
    host.wants[name] = not host.wants[name]
    world.nodes[host.number].elections[name].wanted = host.wants[name]
  end,
  delete = function(world)
    local kind, name = some_kind(world, "elections"), world.names[world.random(#world.names)]
    local rows = world.shards[world.at and world.at[name] or kind].rows
    rows[name] = world.marks and rows[name] and { text = false, version = unique(world) } or nil
  end,
  delete_place = function(world)
    local rows = world.shards.elections1.rows
    rows["@store"] = rows["@store"] and { text = false, version = unique(world) }
  end,
  move = function(world)
    local name = world.names[world.random(#world.names)]
    local both, sessions = chance(world, 0.5), chance(world, 0.5)
    if both or not sessions then move(world, name) end
    if both or sessions then move(world, "@" .. name) end
  end,
  delete_session = function(world, host)
    local server = world.random(world.servers)
    local node = world.nodes[host.number]
    local name = world.at and node.elections[world.names[world.random(#world.names)]].member.session.name or node.sessions[server].name
    world.shards[shard_of(world, name, server)].rows[name] = nil
  end,
  restore = function(world)
    local kind = some_kind(world, world.sharded and chance(world, 0.5) and "sessions" or "elections")
    local state = some_state(world, kind)
    restore(world, kind, state)
  end,
  restart = function(world)
    for kind, shard in pairs(world.shards) do restore(world, kind, frozen(shard)) end
  end,
  -- The store goes back to before a claim, and who made that sees nothing but its own session.
  unclaim = function(world)
    local name, state, older = world.names[world.random(#world.names)], frozen(world.shards.elections1), nil
    for _, past in ipairs(world.past.elections1) do
      if past.rows[name] and past.rows[name] ~= state.rows[name] then older = past.rows[name] end
    end
    if not older then return end
    state.rows[name] = older
    restore(world, "elections1", state)
    for _, node in pairs(world.nodes) do
      if acts(node, name) then node.cut = { ends = world.clock.now + (1 + world.random()) * node.host.ttl, shard = "elections1" } end
    end
  end,
  empty = function(world)
    restore(world, some_kind(world, world.sharded and chance(world, 0.5) and "sessions" or "elections"), { rows = {} })
  end,
  back = go_back,
  ends = function(world, host)
    local node = world.nodes[host.number]
    log(world, node, "ends all that it leads")
    for _, name in ipairs(world.names) do
      local election = node.elections[name]
      if election.leads then end_term(world, node, election, true) end
    end
  end,
  sick = function(_, host) host.sick = not host.sick end,
  direct = function(world) direct(world, world.names[world.random(#world.names)]) end,
  order = function(world) order(world, world.names[world.random(#world.names)]) end,
  peer = function(world) claim_as_peer(world, world.names[world.random(#world.names)]) end,
}

local function hurt(world)
  if not world.trouble then return end
  local weight = 0
  for _, fault in ipairs(world.faults) do weight = weight + fault[2] end
  local dice, host = world.random() * weight, world.hosts[world.random(#world.hosts)]
  for _, fault in ipairs(world.faults) do
    dice = dice - fault[2]
    if dice < 0 then
      if not world.nodes[host.number].dead then FAULTS[fault[1]](world, host) end
      break
    end
  end
  world.clock:after(world.random() * world.pause, function() hurt(world) end)
end

local function remember(world)
  if not world.trouble then return end
  for kind, shard in pairs(world.shards) do
    local states = world.past[kind]
    states[#states + 1] = frozen(shard)
    if #states > PAST_MOST then table.remove(states, 1) end
  end
  world.clock:after(world.random() * 8, function() remember(world) end)
end

return { FAULTS = FAULTS, hurt = hurt, remember = remember }
