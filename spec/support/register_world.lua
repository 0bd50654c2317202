--- A virtual cluster around the register's rule: a store with two verbs, runtimes with a session each whose clocks drift, and
-- what a core does around an oracle. A seed decides what goes wrong: requests that are lost, late, done twice or done long
-- after they were given up; looks that are not atomic; runtimes that are killed, stopped or cut off; trees that do not end;
-- records that vanish; a store that restarts, goes back or is emptied; operators' directives.
local Clock = require "support.virtual_clock"
local Renewals = require "support.register_renewals"

local World = {}
World.__index = World

local NAMES = { "a", "b" }
local SECONDS = 1000 -- of trouble

local HOSTS = 3
local SMALL_TTL = 2
local PEERS_TTL = 10
local FLOOR = 24 -- the longest TTL there: amnesia_wait
local PAST_MOST = 12 -- states of the store that it may go back to
local MOST_EVENTS = 3e6

local function chance(world, part) return world.random() < part end

local function unique(world)
  world.count = world.count + 1
  return world.count
end

-- --- the store

-- In a cluster each name has a node of its own: an election's, and that of the sessions which it needs.
local function shard_of(world, name, server)
  if world.at then return world.at[name:match "^@.*(@.*)" or name] or "elections1" end
  return (world.sharded and name:sub(1, 1) == "@" and "sessions" or "elections") .. (server or 1)
end

local function frozen(shard)
  local rows = {}
  for name, row in pairs(shard.rows) do rows[name] = row end
  return { rows = rows, memory = shard.memory }
end

local function row_of(world, name, server)
  local shard = world.shards[shard_of(world, name, server)]
  local row = shard.rows[name]
  local peer = row and row.peer and { node = row.peer, epoch = 0, wait = math.max(0, row.ends - world.clock.now) }
  return { text = row and row.text or false, version = row and row.version or false, memory = shard.memory, peer = peer or nil,
    age = row and world.aged and world.random() * 50 }
end

-- What a store promises to peers that write no records and live by its clock: nobody but the holder comes before `ends`.
local function promise_to_peers(world, shard, name, text, before)
  local now, one = world.clock.now, world.modules.record.parse(text, name)
  if one.doubt then return now + world.modules.rule.standing_time(one.doubt) end
  if one.by then return one.directive and before or now + tonumber(one.by:match "[^-]*$") end
  if not one.ttl then return now end
  for _, row in pairs(shard.rows) do
    if row.by == name then row.ends = now + one.ttl end
  end
end

local function perform_write(world, write, server)
  local shard = world.shards[shard_of(world, write.name, server)]
  local row = shard.rows[write.name]
  local stands = (row and row.version or false) == write.version or world.careless
  if not stands or write.memory ~= shard.memory then return false end
  if row and row.peer and row.ends > world.clock.now then return false end
  local version = world.texts and write.text or unique(world)
  shard.rows[write.name] = { text = write.text, version = version }
  if world.peers then
    local new = shard.rows[write.name]
    new.ends = promise_to_peers(world, shard, write.name, write.text, row and row.ends)
    new.by = world.modules.record.parse(write.text, write.name).by
  end
  if world.trace then world.trace(("%9.3f   store %s = %s"):format(world.clock.now, write.name, write.text)) end
  return version
end

-- --- requests

local function latency(world)
  if not world.trouble then return 0.01 + world.random() * 0.1 end
  if world.restarts then return 0.01 end
  local dice = world.random() * (world.noisy and 1 or 6)
  if world.drift or world.blind then return world.random() * 0.02 end
  if dice < 0.06 then return nil end -- lost
  if dice < 0.11 then return world.random() * 60 end
  if dice < 0.3 then return world.random() * 4 end
  return world.random() * (world.fine and 0.02 or 0.5)
end

local function is_cut(world, node, shard)
  return world.trouble and node.cut and world.clock.now < node.cut.ends and (not node.cut.shard or node.cut.shard == shard)
end

-- A place where a course without chance may get a fault: see World.small. @return the fault, or nil
local function fault_at(world, name, place)
  place.name, place.order, place.at = name, #world.places + 1, world.clock.now
  world.places[place.order] = place
  return world.script[name]
end

-- A request in a course without chance.
local function ask_by_script(world, node, perform, done)
  world.requests = world.requests + 1
  local fault = world.trouble and fault_at(world, ("request %d"):format(world.requests), { is_request = true })
  local over = false
  local function finish(...)
    if over then return end
    over = true
    done(...)
  end
  local function arrive(seconds)
    world.clock:after(seconds, function()
      perform(function(...)
        local answer = { ... }
        if fault ~= "unanswered" then world.clock:after(0.01, function() finish(unpack(answer, 1, 3)) end) end
      end)
    end)
  end
  if fault ~= "lost" then arrive(fault == "late" and node.timeout + 1 or 0.01) end
  if fault == "again" then arrive(node.timeout + 1) end
  world.clock:after(node.timeout / node.rate, function() finish(nil, "timeout", "timeout") end)
end

-- `perform(answer)` may be done twice; the first answer counts.
local function ask(world, node, shard, perform, done)
  if world.script then return ask_by_script(world, node, perform, done) end
  local over = false
  local function finish(...)
    if over then return end
    over = true
    done(...)
  end
  local copies = world.trouble and chance(world, world.twice or 0.07) and 2 or 1
  for _ = 1, copies do
    local there = latency(world)
    if there and not is_cut(world, node, shard) then
      world.clock:after(there, function()
        perform(function(...)
          local back, answer = latency(world), { ... }
          if back then world.clock:after(back, function() finish(unpack(answer, 1, 3)) end) end
        end)
      end)
    end
  end
  world.clock:after(node.timeout / node.rate, function() finish(nil, "timeout", "timeout") end)
end

local function look(world, node, server, names, done)
  local order = { unpack(names) }
  if #order == 2 and chance(world, 0.5) then order[1], order[2] = order[2], order[1] end
  ask(world, node, shard_of(world, names[1], server), function(answer)
    local found = {}
    local function one(i)
      if i > #order then return answer(found) end
      found[order[i]] = row_of(world, order[i], server)
      if not world.split or i == #order then return one(i + 1) end
      world.clock:after(chance(world, 0.8) and world.random() * 0.05 or world.random() * 8, function() one(i + 1) end)
    end
    one(1)
  end, done)
end

local function swap(world, node, server, writes, done)
  ask(world, node, shard_of(world, writes[1].name, server), function(answer)
    local results = {}
    for i, write in ipairs(writes) do results[i] = perform_write(world, write, server) end
    answer(results)
  end, done)
end

-- --- tasks

-- What a stopped process is told waits until it goes on.
local function deliver(world, node, fn)
  if node.dead then return end
  if node.stopped and node.stopped > world.clock.now then
    return world.clock:after(node.stopped - world.clock.now, function() deliver(world, node, fn) end)
  end
  fn()
end

local function after(world, node, seconds, fn)
  world.clock:after(seconds / node.rate, function() deliver(world, node, fn) end)
end

local function resume(world, node, task, ...)
  if task.cancelled or node.dead then return end
  local outer = world.task
  world.task = task
  local results = { coroutine.resume(task.thread, ...) }
  world.task = outer
  if not results[1] then error(debug.traceback(task.thread, tostring(results[2])), 0) end
  if coroutine.status(task.thread) == "dead" then return task.done and task.done(unpack(results, 2, 4)) end
  results[2](function(...)
    local values = { ... }
    deliver(world, node, function() resume(world, node, task, unpack(values, 1, 3)) end)
  end)
end

local function spawn(world, node, done, fn, ...)
  local task = { thread = coroutine.create(fn), done = done }
  resume(world, node, task, ...)
  return task
end

local function promise(world, node)
  local one = { values = nil, waiting = nil }
  function one:resolve(...)
    if self.values then return end
    self.values = { ... }
    if self.waiting then self.waiting(unpack(self.values, 1, 3)) end
  end
  function one:wait()
    if self.values then return unpack(self.values, 1, 3) end
    return coroutine.yield(function(go_on)
      self.waiting = function(...)
        local values = { ... }
        after(world, node, 0, function() go_on(unpack(values, 1, 3)) end)
      end
    end)
  end
  return one
end

local function env_of(world, node)
  return {
    now = function() return world.clock.now * node.rate + node.offset end,
    time = function() return math.floor(world.clock.now * 1000) + node.ahead end,
    nonce = function() return ("%d"):format(unique(world)) end,
    random = world.random,
    promise = function() return promise(world, node) end,
    detach = function(fn, ...)
      local words = { ... }
      after(world, node, 0, function() spawn(world, node, nil, fn, unpack(words)) end)
    end,
    sleep = function(seconds) coroutine.yield(function(go_on) after(world, node, seconds, go_on) end) end,
    atomic = function(fn, ...) return fn(...) end,
    wall_offset = function() return 0 end,
    renewals = Renewals.of(function() return world.clock.now * node.rate + node.offset end, world.random),
  }
end

-- --- what a core does around an oracle

local claim, refresh

local function log(world, node, ...)
  if not world.trace then return end
  local words = { ("%9.3f %s"):format(world.clock.now, node.label) }
  for i = 1, select("#", ...) do words[#words + 1] = tostring((select(i, ...))) end
  world.trace(table.concat(words, " "))
end

local function acts(node, name)
  local election = not node.dead and node.elections[name]
  return election and election.acts_until > node.env.now()
end

local function check(world, name)
  local row, leader = world.peers and world.shards.elections1.rows[name], nil
  for _, node in pairs(world.nodes) do
    if acts(node, name) then
      if leader then error(("two act on %s at %.3f: %s and %s"):format(name, world.clock.now, leader.label, node.label), 0) end
      leader = node
      if row and row.peer and row.ends > world.clock.now then
        error(("%s leads %s at %.3f beside %s"):format(node.label, name, world.clock.now, row.peer), 0)
      end
    end
  end
end

-- A call of the oracle; `done` gets what it returned, nil when it was given up.
local function call(world, node, election, fn, done)
  local over = false
  local function finish(...)
    if over then return end
    over, election.task = true, nil
    done(...)
  end
  local task
  election.task = true
  local patience = node.timeout * 2
  after(world, node, patience, function()
    if over then return end
    if task then task.cancelled = true end
    finish(nil, "given up")
  end)
  task = spawn(world, node, finish, function()
    if world.servers > 1 then return world.modules.several[fn](node.env, election.member) end
    return world.modules.terms[fn](election.member.session, election.member)
  end)
  if not over then election.task = task end
end

local function soon(world) return world.eager and 0.02 + world.random() * 0.15 or 0.4 + world.random() * 1.6 end

local function follow(world, node, election, pause)
  election.turn = (election.turn or 0) + 1
  local turn = election.turn
  after(world, node, pause, function()
    if election.turn == turn then claim(world, node, election) end
  end)
end

-- Some trees do not die: then nothing is released, and nothing claimed, until the deadline.
local function end_term(world, node, election, gives_back)
  election.leads, election.turn = false, election.turn + 1
  if election.task then
    if type(election.task) == "table" then election.task.cancelled = true end
    election.task = nil
  end
  local left = election.acts_until - node.env.now()
  if left > 0 and chance(world, 0.25) then
    log(world, node, "has a tree that does not end:", election.name)
    return follow(world, node, election, left + 0.001)
  end
  election.acts_until = -math.huge
  if not gives_back then return follow(world, node, election, soon(world)) end
  call(world, node, election, "release", function() follow(world, node, election, soon(world)) end)
end

local function granted(world, node, election, sent, grant)
  local past = grant.past or 0
  local lasts = grant.ttl + past
  local deadline = sent - past + lasts - lasts / 100 - math.min(0.25, lasts / 8)
  if node.env.now() >= deadline then return false end
  election.refresher = grant.refresher or election.refresher
  election.acts_until = deadline
  check(world, election.name)
  local turn = election.turn
  after(world, node, deadline - node.env.now(), function() -- the keeper's: see thaw
    if election.turn == turn and election.leads and election.acts_until <= node.env.now() then
      end_term(world, node, election, chance(world, 0.5))
    end
  end)
  return true
end

local function begin_term(world, node, election, grant)
  local name = election.name
  log(world, node, "leads", name, "epoch", ("%.0f"):format(grant.epoch))
  if grant.epoch <= (world.highest[name] or 0) then
    error(("epoch %.0f of %s after %.0f at %.3f"):format(grant.epoch, name, world.highest[name], world.clock.now), 0)
  end
  world.highest[name] = grant.epoch
  world.terms = world.terms + 1
  election.leads, election.epoch = true, grant.epoch
end

local function stop(world, node, election, second)
  log(world, node, "has lost", election.name, second and second.error or "")
  end_term(world, node, election, false)
end

local function refreshed(world, node, election, sent, verdict, second, grant)
  if not election.leads then return end
  if verdict then
    assert(grant.epoch == election.epoch, "a refresh in another epoch")
    if not granted(world, node, election, sent, grant) then return refresh(world, node, election, 0.1) end
    return refresh(world, node, election, math.max(0, sent + second - node.env.now()))
  end
  if verdict == nil then return refresh(world, node, election, 0.1 + world.random() * 0.5) end
  if second.evicted then return end_term(world, node, election, true) end
  stop(world, node, election, second)
end

-- As the core's candidate does it: by a renewal that counts for all terms, or by the oracle.
local function refresh_by(world, node, election, done)
  local sent, renewals, turn = node.env.now(), election.refresher, election.turn
  local function ask_oracle()
    call(world, node, election, "refresh", function(...) done(sent, ...) end)
  end
  local function granted_at_once()
    local second, grant = Renewals.grant(renewals, election.stands, sent)
    if not second then return false end
    grant.epoch = election.epoch
    done(sent, true, second, grant)
    return true
  end
  if not renewals then return ask_oracle() end
  if granted_at_once() then return end
  if not election.stands or not renewals.sent then return ask_oracle() end
  local over = false
  election.task = true
  local function answered(problem)
    if over or election.turn ~= turn then return end
    over, election.task = true, nil
    if granted_at_once() then return end
    if problem and election.stands then return done(sent, nil, problem) end
    ask_oracle()
  end
  after(world, node, node.timeout * 2, function() answered "given up" end)
  Renewals.wait(renewals, function(...)
    local problem = ...
    after(world, node, 0, function() answered(problem) end)
  end)
end

function refresh(world, node, election, delay)
  local turn = election.turn
  after(world, node, delay, function()
    if election.turn ~= turn or not election.leads then return end
    if election.task then return refresh(world, node, election, 0.1) end
    if chance(world, world.trouble and not world.restarts and 0.05 or 0) or not election.wanted then
      log(world, node, "gives back", election.name)
      return end_term(world, node, election, true)
    end
    if election.told then
      election.told = false
      return call(world, node, election, "look", function(verdict, second)
        if election.turn ~= turn or not election.leads then return end
        if verdict == false then return refreshed(world, node, election, 0, verdict, second) end
        refresh(world, node, election, 0)
      end)
    end
    refresh_by(world, node, election, function(...)
      if election.turn == turn then refreshed(world, node, election, ...) end
    end)
  end)
end

local function claimed(world, node, election, sent, verdict, second, grant)
  if verdict then
    election.acts_until = -math.huge
    begin_term(world, node, election, grant)
    if not granted(world, node, election, sent, grant) then return end_term(world, node, election, true) end
    return refresh(world, node, election, math.max(0, sent + second - node.env.now()))
  end
  if verdict == false then
    local wait = second.wait and chance(world, 0.5) and second.wait
    return follow(world, node, election, wait or soon(world))
  end
  if chance(world, 0.2) then return follow(world, node, election, soon(world)) end
  call(world, node, election, "release", function() follow(world, node, election, soon(world)) end)
end

function claim(world, node, election)
  if election.leads or election.task then return end
  if not election.wanted then return follow(world, node, election, soon(world)) end
  local sent = node.env.now()
  call(world, node, election, "claim", function(...) claimed(world, node, election, sent, ...) end)
end

-- --- trouble

local function store_of(world, node, server)
  local store = { marks = world.marks }
  function store.look(_, names)
    return coroutine.yield(function(go_on) look(world, node, server, names, go_on) end)
  end
  function store.swap(_, writes)
    return coroutine.yield(function(go_on) swap(world, node, server, writes, go_on) end)
  end
  return store
end

local function new_session(world, node, part)
  local ttl = node.host.ttl
  return world.modules.session.new(node.env, { token = node.token, node = node.token, ttl = ttl, delay = ttl / 3, patience = ttl / 2,
    floor = world.floor, part = part, many = world.many })
end

local function member_of(world, node, election)
  local parts = {}
  for server, session in ipairs(world.at and { new_session(world, node, election.name) } or node.sessions) do
    parts[server] = { slot = world.modules.terms.slot(session, election.name), session = session, store = node.stores[server],
      tell = function() election.told = true end, stand = function(_, on) election.stands = on end,
      deadline = function() return world.servers == 1 and election.acts_until > -math.huge and election.acts_until or nil end }
  end
  return world.servers > 1 and { parts = parts } or parts[1]
end

local function start(world, host, token)
  local node = { host = host, token = token, label = ("%s/%d"):format(token, unique(world)), rate = host.rate, offset = host.offset,
    ahead = host.ahead, elections = {}, stores = {}, sessions = {}, timeout = host.ttl / 4 }
  node.env = env_of(world, node)
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
  world.clock:after(world.random() * most, function()
    if world.nodes[host.number] ~= node then return end
    host.offset = world.random() * 1000
    start(world, host, token or new_token(world, host))
  end)
end

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
  direct = function(world) direct(world, world.names[world.random(#world.names)]) end,
  peer = function(world) claim_as_peer(world, world.names[world.random(#world.names)]) end,
}

local RUNTIMES = { kill = 16, host = 8, cut = 9, stop = 6, want = 12, direct = 17 }

local function faults_with(more)
  local all = {}
  for name, weight in pairs(RUNTIMES) do all[#all + 1] = { name, weight } end
  for name, weight in pairs(more) do all[#all + 1] = { name, weight } end
  table.sort(all, function(a, b) return a[1] < b[1] end)
  return all
end

--- What goes wrong, by the kind of a world.
World.KINDS = {
  -- A store that forgets nothing.
  remembers = { faults = faults_with {} },
  -- One that names its memory, and forgets in every way.
  forgets = { faults = faults_with { delete = 2, delete_session = 1, restore = 12, empty = 2 } },
  -- One that does not name its memory: all that was written last is gone, and all who live know better.
  nameless = { faults = faults_with { back = 40, delete = 4 }, nameless = true, sharded = false },
  -- Clocks and TTLs are as far apart as they may be, and leaders are cut off.
  drift = { faults = { { "cut", 1 } }, drift = true, noisy = false, fine = true, eager = true, sharded = false, mixed = true },
  -- Answers come late, and looks are not atomic.
  late = { faults = { { "cut", 3 }, { "want", 1 } }, noisy = true, split = true, fine = true, eager = true, brief = true, pause = 8 },
  -- Requests are done twice, by candidates that come and go.
  twice = { faults = { { "want", 3 }, { "cut", 1 } }, noisy = true, twice = 0.5, brief = true },
  -- Elections' records are lost, or written by others, while their leader sees nothing but its own session.
  blind = { faults = { { "cut", 6 }, { "delete", 3 }, { "want", 1 } }, noisy = false, sharded = true, blind = true, fine = true },
  -- Three servers, of which each forgets, is cut off and late by itself.
  several = { faults = faults_with { delete = 1, delete_session = 1, restore = 4, empty = 1 }, servers = 3 },
  -- One that keeps a mark of what is deleted; some names are new.
  marks = { faults = faults_with { delete = 2, delete_session = 1, delete_place = 1, restore = 8, restart = 4, empty = 1 },
    marks = true, sharded = false, names = { "a", "b", "c", "d", "e" } },
  -- Runtimes that give back all that they lead, by one write.
  ends = { faults = faults_with { ends = 60, delete = 1, restore = 3 }, ends = true, many = 2, names = { "a", "b", "c" } },
  -- One whose clock is wrong.
  aged = { faults = faults_with {}, aged = true },
  -- Two nodes that fail apart, between which names move.
  cluster = { faults = faults_with { delete = 1, delete_session = 1, restore = 9, empty = 1, restart = 3, move = 12 }, sharded = true,
    cluster = true },
  -- Beside peers that write no records, and live by the store's clock.
  peers = { faults = faults_with { peer = 60 }, peers = true, sharded = false, pause = 8 },
  -- A store that restarts with all that it had, under one that leads: no term ends.
  restarts = { faults = { { "restart", 1 } }, noisy = false, fine = true, restarts = true, pause = 200 },
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

local function new(options)
  local world = setmetatable({ clock = Clock.new(1000000), nodes = {}, hosts = {}, count = 0, terms = 0, requests = 0, places = {},
    highest = {}, trouble = true, past = {}, names = NAMES, seconds = SECONDS, floor = FLOOR, shards = {}, servers = 1 }, World)
  for key, value in pairs(options) do world[key] = value end
  return world
end

local function add_servers(world)
  for server = 1, world.servers do
    for _, kind in ipairs { "elections" .. server, "sessions" .. server } do
      world.shards[kind], world.past[kind] = { rows = {}, memory = "m0" .. kind }, {}
    end
  end
end

local function new_host(world, host)
  world.hosts[#world.hosts + 1] = host
  host.number = #world.hosts
  start(world, host, new_token(world, host))
end

-- Chance by a seed.
local function dice(seed)
  local state = seed
  local function random(most)
    state = (state * 16807) % 2147483647
    local part = state / 2147483647
    return most and math.floor(part * most) + 1 or part
  end
  for _ = 1, 5 do random() end
  return random
end

--- @tparam table options `seed`; `modules` of support.register_modules; `kind` of World.KINDS; `careless`: the store does not
-- compare; `trace(line)`
function World.new(options)
  local world = new { random = dice(options.seed), pause = 16 }
  world.split, world.sharded, world.fine = chance(world, 0.5), chance(world, 0.3), chance(world, 0.5)
  world.noisy, world.eager, world.texts, world.mixed = chance(world, 0.6), chance(world, 0.1), chance(world, 0.5), chance(world, 0.5)
  for key, value in pairs(World.KINDS[options.kind]) do world[key] = value end
  for key, value in pairs(options) do world[key] = value end
  add_servers(world)
  if world.cluster then world.at = { a = "elections1", ["@a"] = "elections1", b = "sessions1", ["@b"] = "sessions1" } end
  for _ = 1, HOSTS do
    local host = { rate = 0.99 + 0.01 * (world.random(3) - 1), offset = world.random() * 1000, ahead = world.random(400),
      ttl = world.mixed and (chance(world, 0.5) and 6 or 24) or 12, wants = { a = true, b = true } }
    if world.drift then host.rate, host.ttl = chance(world, 0.5) and 0.99 or 1.01, 24 end
    if world.blind then host.ttl = 6 end
    new_host(world, host)
  end
  world.clock:after(5, function() hurt(world) end)
  remember(world)
  return world
end

-- "kill 2": the fault, and the host that it befalls.
local function befall(world, fault)
  local name, number = fault:match "^(%S+) ?(%d*)$"
  local host = world.hosts[tonumber(number) or 1]
  if not world.nodes[host.number].dead then FAULTS[name](world, host) end
end

--- Two runtimes and one election, in which nothing happens by chance: the first one leads, gives back, and wants to lead again.
-- `places` tells where faults may be, each with `name`, `at`, `order`, and `is_request` or `ticks`.
-- @tparam table options `modules`; `seconds`; `script`: by a place's name the fault that it gets; `ticks`: those of each second
function World.small(options)
  local world = new { random = function(most) return most and math.ceil(most / 2) or 0.5 end, names = { "a" }, floor = SMALL_TTL }
  for key, value in pairs(options) do world[key] = value end
  add_servers(world)
  world.shards.elections1.rows.a = { text = '{"v":1,"serial":1,"memory":"m0elections1","epoch":1}', version = 0 }
  for i = 1, 2 do
    new_host(world, { rate = i == 1 and 0.99 or 1.01, offset = 100 * i, ahead = 0, ttl = SMALL_TTL, wants = { a = true } })
  end
  for second = 1, world.seconds - 1 do
    world.clock:after(second, function()
      local fault = fault_at(world, ("second %d"):format(second), { ticks = world.ticks })
      if fault then befall(world, fault) end
    end)
  end
  for when, wants in pairs { [world.seconds * 0.3] = false, [world.seconds * 0.5] = true } do
    world.clock:after(when, function()
      world.hosts[1].wants.a = wants
      world.nodes[1].elections.a.wanted = wants
    end)
  end
  return world
end

-- One that wants to lead each election from now on: not another one that may be stuck.
local function calm(world)
  world.trouble = false
  world.back = nil
  for _, host in ipairs(world.hosts) do
    world.nodes[host.number].stopped = nil
    if world.nodes[host.number].dead then start(world, host, new_token(world, host)) end
  end
  for _, name in ipairs(world.names) do
    local only = world.script and 2 or chance(world, 0.7) and world.random(#world.hosts)
    for _, host in ipairs(world.hosts) do
      host.wants[name] = not only or only == host.number
      world.nodes[host.number].elections[name].wanted = host.wants[name]
    end
  end
end

-- Seconds until somebody leads when the trouble is over.
local function bound(world)
  return 2 * (2 * world.floor * 1.01 + 0.25) + world.floor * 1.01 + 60
end

local function is_led(world, name)
  for _, node in pairs(world.nodes) do
    if acts(node, name) then return true end
  end
  return false
end

-- @return whether somebody leads each election, or has led it since the trouble was over
local function all_led(world, led, since)
  local all = true
  for _, name in ipairs(world.names) do
    led[name] = led[name] or is_led(world, name)
    if not led[name] and since > bound(world) then
      error(("nobody leads %s for %.0f s: %s"):format(name, since, tostring(row_of(world, name).text)), 0)
    end
    all = all and led[name]
  end
  return all
end

--- Trouble for a while; then somebody has to lead each election within a bound.
-- @tparam[opt] function breathe called now and then
-- @treturn World
function World:run(breathe)
  local ends, events, led = self.clock.now + self.seconds, 0, {}
  self.clock:after(self.seconds, function() calm(self) end)
  repeat
    self.clock:step()
    events = events + 1
    if events % 1000 == 0 and breathe then breathe() end
    if events > MOST_EVENTS then error("too many events", 0) end
    if self.restarts and self.trouble and self.terms > #self.names then error("a term ended", 0) end
  until self.clock.now > ends and all_led(self, led, self.clock.now - ends)
  return self
end

return World
