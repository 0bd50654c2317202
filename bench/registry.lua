-- The registry: how long it takes to change over, and how fast names are written and found.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local promise = require "crown.core.promise"
local Registry = require "support.registry"

local NAMES = 10000

local server

local function cluster_of(count)
  server = server or Postgres.start()
  local cluster = Registry.new { url = server.url, name = ("bench-%d"):format(math.random(1e9)), snapshot_timeout = 10,
    replicate_timeout = 5 }
  local members = { cluster:join_all { unpack({ "a", "b", "c" }, 1, count) } }
  local leader = cluster:await(members)
  local leading, following
  for _, one in ipairs(members) do
    if one.node == leader then leading = one else following = one end
  end
  return cluster, leading, following
end

-- From the signal to the instant at which the successor has the names and says so.
local function change_over(names, hurt)
  local cluster, leading, following = cluster_of(3)
  for from = 1, names, 10000 do
    following:ask("fill", { prefix = "n", from = from, to = math.min(names, from + 9999), timeout = 60 })
  end
  local client, heard = assert(crown.postgres.connect(server.url)), promise()
  client:listen("crown_registry_v1", function(payload)
    if payload:match "^leader " then heard:resolve(crown.now()) end
  end)
  local at = hurt(leading.candidate)
  local taken = assert(heard:wait(60)) - at
  eventually(function()
    local found = following:ask("whereis", { name = "n" .. names })
    return names == 0 or found == names
  end)
  client:close()
  cluster:destroy()
  return taken * 1000
end

local function rate(through, count)
  local cluster, leading, following = cluster_of(3)
  local member = through == "leader" and leading or following
  member:ask("fill", { prefix = "warm", from = 1, to = 1000, timeout = 60 })
  local yes, seconds = member:ask("fill", { prefix = "n", from = 1, to = count, timeout = 60 })
  assert(#yes == count)
  cluster:destroy()
  return count / seconds
end

local function lookups(count)
  local cluster, leading = cluster_of(2)
  leading:ask("fill", { prefix = "n", from = 1, to = 1000, timeout = 60 })
  local seconds = leading:ask("look_up", { prefix = "n", names = 1000, count = count, timeout = 60 })
  cluster:destroy()
  return count / seconds
end

-- What a table with a unique name costs on the same server, all statements in one pipeline.
local function inserts(count)
  server = server or Postgres.start()
  local client = assert(crown.postgres.connect(server.url, { timeout = 60 }))
  client:query "DROP TABLE IF EXISTS bench_names"
  client:query "CREATE TABLE bench_names (name TEXT PRIMARY KEY, owner TEXT)"
  local left, done, from = count, promise(), crown.now()
  for i = 1, count do
    crown.spawn(function()
      assert(client:query("INSERT INTO bench_names VALUES ($1, 'a') ON CONFLICT DO NOTHING", "n" .. i))
      left = left - 1
      if left == 0 then done:resolve(true) end
    end)
  end
  assert(done:wait(60))
  local seconds = crown.now() - from
  client:close()
  return count / seconds
end

return function(measure)
  for _, names in ipairs { 0, 1000, 100000 } do
    local times = names == 100000 and 3 or nil
    measure(("registry, 3 members, %d names: leader leaves"):format(names), "", function()
      return change_over(names, function(one) return one:signal "TERM" end)
    end, times)
    measure(("registry, 3 members, %d names: runtime SIGKILL"):format(names), "", function()
      return change_over(names, function(one) return one:hurt("KILL", "runtime") end)
    end, times)
  end
  measure("registry: registrations per second through the leader", "", function() return rate("leader", NAMES) end)
  measure("registry: registrations per second through a follower", "", function() return rate("follower", NAMES) end)
  measure("peer: INSERTs per second into Postgres, one pipeline", "", function() return inserts(NAMES) end)
  measure("registry: whereis per second of processor time", "", function() return lookups(1000000) end)
  if server then server:destroy() end
end
