--- The stores of support.register_world: what they hold, and how requests fare on their way.
local pairs = require("support.ordered_pairs").pairs

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
    age = row and world.aged and world.random() * 50, time = world.timed and math.floor(world.clock.now * 1000) or nil }
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

-- News of a write, to everybody. Who hears it claims, or does so later.
local function ring(world, name, news)
  for _, node in pairs(world.nodes) do
    for _ = 1, world.random(3) - 1 do
      world.clock:after(world.random() * (chance(world, 0.7) and 0.05 or 40), function() node.hear(name, news) end)
    end
  end
end

-- What orders promise (S15): they stand until their own time, whoever writes; nobody claims over a pause, and over a hand-over
-- only who it is for, or after its time.
local function check_orders(world, name, row, text)
  local before = row and row.text and not row.peer and world.modules.record.parse(row.text, name)
  if not before or not before.orders then return end
  local one, ordered = world.modules.record.parse(text, name), before.orders
  local is_claim = one.by and (one.by ~= before.by or one.at ~= before.at or one.epoch ~= before.epoch)
  local function breach(what) error(("%s at %.3f: %s over %s"):format(what, world.clock.now, text, row.text), 0) end
  if ordered.other ~= (one.orders or {}).other then breach "an order is lost that nobody took back" end
  if not is_claim then
    if ordered.number ~= (one.orders or {}).number then breach "orders are lost without a claim" end
  elseif ordered.pause and not ordered["until"] then
    breach "a claim over a pause"
  elseif ordered.to and ordered.to ~= one.node and world.clock.now - row.since < ordered.within / 1.011 then
    breach "a claim before the end of another's hand-over"
  end
end

-- What marks of runs promise (S16): the write that gives a lease back has them, nothing else changes them, and in its period
-- nobody begins what has succeeded, as far as clocks agree.
local function host_of(world, token)
  return world.hosts[tonumber(token:match "^%d+")]
end

-- What they promise of a slot: none is begun that has succeeded or failed too often, nor one before that which was begun last.
local function slot_breach(found, begun)
  local done, failed, last = found.done or {}, found.failed or {}, found.begun or {}
  if (done.slot or -1) >= begun.slot then return "begun again after it has succeeded" end
  if failed.slot == begun.slot and failed.tries > 2 then return "begun again after it has failed too often" end
  if (last.slot or -1) > begun.slot then return "begun after a later one" end
end

-- A claim says the level of its host, and nothing else lowers it.
local function level_breach(world, before, one, is_claim)
  local function level(marks) return marks and marks.prefers and marks.prefers.level or 0 end
  if is_claim and level(one.runs) ~= host_of(world, one.node).level then return "a claim without its level" end
  if is_claim or not before or level(one.runs) == level(before.runs) then return nil end
  if level(one.runs) < level(before.runs) then return "a level is lowered without a claim" end
  world.rises = (world.rises or 0) + 1
end

local function check_runs(world, name, row, text)
  local before = row and row.text and world.modules.record.parse(row.text, name)
  local one, none = world.modules.record.parse(text, name), {}
  local was, is = before and (before.runs or none).done or none, (one.runs or none).done or none
  local function breach(what) error(("%s at %.3f: %s over %s"):format(what, world.clock.now, text, row and row.text or "nothing"), 0) end
  if is.at ~= was.at or is.node ~= was.node then
    if not is.at then breach "a mark is lost" end
    if not before or before.node ~= is.node or one.by then breach "a mark apart from its release" end
    world.marks_written = (world.marks_written or 0) + 1
  end
  local is_claim = before and one.by and (one.by ~= before.by or one.epoch ~= before.epoch)
  local wrong = is_claim and world.slot and slot_breach(before.runs or none, one.runs.begun)
  wrong = wrong or world.yields and level_breach(world, before, one, is_claim)
  if wrong then breach(wrong) end
  if not is_claim or not was["until"] then return end
  local host, ran_on = host_of(world, one.node), host_of(world, was.node)
  local is_apart = math.abs(host.ahead - ran_on.ahead) > 1000
  if not is_apart and world.clock.now + host.ahead / 1000 < was["until"] - 1 then breach "begun again in its period" end
end

local LAST = -1000000 -- the level of who leads only where nobody else does
local SOON, LEFT = 1, 2 -- seconds until such a leader is asked to go, and for which such a candidate leaves others the first claim

local function told_level(orders, node) return orders and orders.ranks and orders.ranks[node] or 0 end

-- Who tells its level tells its own, or that of the last resort where that is its host's.
local function check_level(world, node, level, breach)
  local host = host_of(world, node)
  local fits = level == host.rank.level or level == LAST and host.last_resort
  if not fits then breach(("%s has another level than %d"):format(node, level)) end
end

-- A leader is asked to go by a higher one alone, which has not asked for its patience; and one of the last resort soon, by all.
local function check_asked(world, name, before, one, server, breach)
  local orders = one.orders
  if not orders or not orders.by or before and before.orders and before.orders.number == orders.number and before.orders.by then return end
  local host, level, theirs = host_of(world, orders.to), told_level(orders, orders.to), told_level(before.orders, before.node)
  check_level(world, orders.to, level, breach)
  if level <= theirs then breach "a leader is asked to go that is no lower" end
  host.asked = host.asked or {}
  local there = name .. server
  local passed = orders.since - (host.asked[there] or -math.huge) -- as it was sent, in whole seconds
  if passed < (theirs == LAST and SOON or host.rank.preempt) / 1.011 - 1 then breach(("asked again after %d s"):format(passed)) end
  host.asked[there] = orders.since
  world.asks = (world.asks or 0) + 1
end

-- A claim tells the level of who makes it. That of the last resort comes when others have had the time to come first.
local function check_claim(world, row, before, one, breach)
  local is_claim = one.by and (not before or one.by ~= before.by or one.epoch ~= before.epoch)
  if not is_claim then return end
  local level = told_level(one.orders, one.node)
  check_level(world, one.node, level, breach)
  local is_last = level == LAST and before and before.by ~= one.by and (before.orders or {}).to ~= one.node
  if is_last and world.clock.now - row.changed < LEFT / 1.011 then breach "the last resort has left others no time" end
  if level == LAST then world.last_ones = (world.last_ones or 0) + 1 end
end

-- What preferences promise (S17).
local function check_ranks(world, name, row, text, server)
  local before, one = row and row.text and world.modules.record.parse(row.text, name), world.modules.record.parse(text, name)
  local function breach(what)
    error(("%s at %.3f: %s over %s"):format(what, world.clock.now, text, row and row.text or "nothing"), 0)
  end
  check_asked(world, name, before, one, server, breach)
  check_claim(world, row, before, one, breach)
end

-- Since when who holds it does so, or since when it is free: what is written beside that changes nothing.
local function changed(world, row, text, name)
  local function holder_of(words)
    local one = words and world.modules.record.parse(words, name)
    return one and ("%s %.0f"):format(tostring(one.by), one.epoch)
  end
  return row and row.changed and holder_of(row.text) == holder_of(text) and row.changed or world.clock.now
end

local function perform_write(world, write, server, is_operators)
  local shard = world.shards[shard_of(world, write.name, server)]
  local row = shard.rows[write.name]
  local stands = (row and row.version or false) == write.version or world.careless
  if not stands or write.memory ~= shard.memory then return false end
  if row and row.peer and row.ends > world.clock.now then return false end
  if not write.text then
    shard.rows[write.name] = nil
    return unique(world)
  end
  if not is_operators and not world.careless then check_orders(world, write.name, row, write.text) end
  if world.jobs and not world.modules.record.is_reserved(write.name) then check_runs(world, write.name, row, write.text) end
  local is_election = not world.modules.record.is_reserved(write.name)
  local has_ranks = is_election and (world.preferred or world.healthy)
  if has_ranks and not is_operators then check_ranks(world, write.name, row, write.text, server or 1) end
  local version = world.texts and write.text or unique(world)
  shard.rows[write.name] = { text = write.text, version = version, since = world.clock.now,
    changed = has_ranks and changed(world, row, write.text, write.name) or nil }
  if world.peers then
    local new = shard.rows[write.name]
    new.ends = promise_to_peers(world, shard, write.name, write.text, row and row.ends)
    new.by = world.modules.record.parse(write.text, write.name).by
  end
  if world.trace then world.trace(("%9.3f   store %s = %s"):format(world.clock.now, write.name, write.text)) end
  if world.news then ring(world, write.name, { text = write.text, version = version }) end
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

-- What a cut has to be of, to keep a question away: that of elections may fail while a session's small ones get through.
local function way_of(world, name, server)
  if world.whole then return (name:sub(1, 1) == "@" and "sessions" or "elections") .. server end
  return shard_of(world, name, server)
end

local function look(world, node, server, names, done)
  local order = { unpack(names) }
  if #order == 2 and chance(world, 0.5) then order[1], order[2] = order[2], order[1] end
  ask(world, node, way_of(world, names[1], server), function(answer)
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
  ask(world, node, way_of(world, writes[1].name, server), function(answer)
    local results = {}
    for i, write in ipairs(writes) do results[i] = perform_write(world, write, server) end
    answer(results)
  end, done)
end

local function same(world, node, server, asked, done)
  ask(world, node, way_of(world, asked.names[1], server), function(answer)
    local results = {}
    for i, name in ipairs(asked.names) do
      local row = row_of(world, name, server)
      results[i] = row.version == asked.versions[i] and row.memory == asked.memory
    end
    answer(results)
  end, done)
end

return { same = same, chance = chance, unique = unique, fault_at = fault_at, frozen = frozen, row_of = row_of, shard_of = shard_of,
  perform_write = perform_write, look = look, swap = swap }
