-- The registry at size: five members, and many names of 60 bytes with values of 200.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local probe = require "probe"
local promise = require "crown.core.promise"
local Registry = require "support.registry"

local NODES = { "a", "b", "c", "d", "e" }
local NAME_BYTES, VALUE_BYTES = 60, 200
local AT_ONCE = 500 -- names that are registered side by side

local function fill(member, names, from)
  local digits = #tostring(names)
  local prefix = ("n"):rep(NAME_BYTES - digits - 1) .. "-"
  for first = from, names, AT_ONCE do
    local last = math.min(names, first + AT_ONCE - 1)
    local yes = member:ask("fill", { prefix = prefix, from = first, to = last, pad = VALUE_BYTES, timeout = 300 })
    assert(yes and #yes == last - first + 1, "names that were not acknowledged")
  end
end

local function await_count(members, names)
  for _, one in ipairs(members) do
    eventually(function() return one:ask "count" == names end, 300)
  end
end

-- How many names there are, when all that was acknowledged has come to everybody: those of the bench, and what `await` wrote.
local function settled(members)
  local most = 0
  for _, one in ipairs(members) do most = math.max(most, (one:ask "count")) end
  await_count(members, most)
  return most
end

local function runtime_of(member)
  return member.candidate:pids("runtime")[1]
end

-- Everybody's longest turn since it was asked for last.
local function longest_turn(members)
  local longest = 0
  for _, one in ipairs(members) do longest = math.max(longest, (one:ask "turns") or 0) end
  return longest
end

-- From the signal to the instant at which the successor has the names and says so; and how many names the leader had himself,
-- which go with him.
local function kill_leader(server, members)
  local node = members[1]:ask "leader"
  local client, heard = assert(crown.postgres.connect(server.url)), promise()
  client:listen("crown_registry_v1", function(payload)
    if payload:match "^leader " then heard:resolve(crown.now()) end
  end)
  local leader
  for _, one in ipairs(members) do leader = one.node == node and one or leader end
  local _, its = leader:ask "count"
  local at = leader.candidate:hurt("KILL", "runtime")
  local taken = assert(heard:wait(120)) - at
  client:close()
  return taken, its
end

-- A member that is thrown out by the queue, as after a cut, and comes back: until all its names are its new join's.
local function rejoin(server, name, member, names)
  local _, before, token = member:ask "count"
  local client = assert(crown.postgres.connect(server.url))
  local at = crown.now()
  assert(client:query([[
    WITH r AS (UPDATE crown_registry_v1 SET tail = tail + 1 WHERE registry = $1 RETURNING tail)
    INSERT INTO crown_registry_queue_v1 (registry, number, message)
    SELECT $1, r.tail, jsonb_build_object('kind', 'member_down', 'id', $2::text, 'token', $3::text, 'left', true) FROM r]],
    name, name .. "@" .. member.node, token))
  assert(client:query("SELECT pg_notify('crown_registry_v1', 'changed ' || $1)", name))
  client:close()
  eventually(function()
    local total, mine, now = member:ask "count"
    return now ~= token and mine == before and total == names
  end, 300)
  return crown.now() - at
end

-- One run has all the figures.
local function run(names)
  local server, name = Postgres.start(), ("bench-%d"):format(math.random(1e9))
  local cluster = Registry.new { url = server.url, name = name, ttl = 15, snapshot_timeout = 10, replicate_timeout = 5,
    most = 2 * names }
  local members = { cluster:join_all { unpack(NODES, 1, #NODES - 1) } }
  -- The names of whoever is killed would go with him.
  local leader, owners = cluster:await(members), {}
  for _, one in ipairs(members) do
    if one.node ~= leader then owners[#owners + 1] = one end
  end
  longest_turn(members) -- that of a start is no registry's
  local found, from = {}, crown.now()
  fill(owners[1], names / 2, 1)
  fill(owners[2], names, names / 2 + 1)
  found.filled = crown.now() - from
  found.fill_turn = longest_turn(members)

  local total = settled(members)
  local at = crown.now()
  members[#NODES] = cluster:join(NODES[#NODES])
  await_count(members, total)
  found.joined = (crown.now() - at) * 1000
  found.join_turn = longest_turn(members)

  found.rejoined = rejoin(server, name, owners[1], total) * 1000
  found.rejoin_turn = longest_turn(members)

  local taken, its = kill_leader(server, members)
  found.changed = taken * 1000
  await_count(members, total - its)
  found.change_turn = longest_turn(members)
  found.memory = 0
  for _, one in ipairs(members) do found.memory = math.max(found.memory, probe.memory(runtime_of(one))) end
  cluster:destroy()
  server:destroy()
  return found
end

local ROWS = {
  { "a member joins, until it has all names", "≤ 2000", "joined" },
  { "longest turn of a loop in a join, processor time", "≤ 10", "join_turn" },
  { "a member rejoins, until its half of the names is its own again", "", "rejoined" },
  { "longest turn of a loop in a rejoin, processor time", "≤ 10", "rejoin_turn" },
  { "runtime SIGKILL, until the successor has the names", "≤ 150", "changed" },
  { "longest turn of a loop after the kill, processor time", "≤ 10", "change_turn" },
  { "memory of a runtime in MB, the most of all", "≤ 60", "memory" },
  { "registering all names, seconds", "", "filled" },
  { "longest turn of a loop in that, processor time", "≤ 10", "fill_turn" },
}

return function(measure)
  for _, names in ipairs { 100000, 1000000 } do
    local results, at = {}, {}
    for _, row in ipairs(ROWS) do
      local key, times = row[3], names > 100000 and 1 or nil
      local target = names > 100000 and "" or row[2]
      measure(("registry at size, 5 members, %d names: %s"):format(names, row[1]), target, function()
        at[key] = (at[key] or 0) + 1
        results[at[key]] = results[at[key]] or run(names)
        return results[at[key]][key]
      end, times)
    end
  end
end
