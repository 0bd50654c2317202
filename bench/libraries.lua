--- Failover of elections by a library, put to the same faults as ours: client-go beside the oracle on a real API server, Curator's
-- LeaderLatch and kazoo's Election on a real ZooKeeper.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Kubernetes = require "support.kubernetes_peer"
local probe = require "probe"
local Proxy = require "support.proxy"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local ZooKeeper = require "support.zookeeper"
local zookeeper_peers = require "support.zookeeper_peers"

local DURATION = 4 -- seconds, of leases and sessions
local PATIENCE = 30
local STAYS = 1 -- seconds for which an old leader is watched beside the next

local function signal(name)
  return function(one) return one:signal(name) end
end

-- A fault, and when it came.
local FAULTS = {
  { "SIGTERM", signal "TERM" }, { "SIGKILL", signal "KILL" }, { "SIGSTOP", signal "STOP" },
  { "cut off without a reset", function(_, proxy) return proxy:freeze() end },
}

local function life_of(file, node)
  for _, life in ipairs(ticks.lives(file)) do
    if life.node == node then return life end
  end
end

-- @tparam function start gets a node, the ticks' file and a port that leads to the server
-- @return milliseconds to the second one's first tick; and in which both ticked
local function takeover(start, hurt, server)
  local file, proxy = tempdir() .. "/ticks", Proxy.start(server.port)
  local one = start("one", file, proxy.port)
  eventually(function() return life_of(file, "one") end, PATIENCE)
  local two = start("two", file, server.port)
  crown.sleep(2 + math.random()) -- until it follows; anywhere between two renewals
  local at = hurt(one, proxy)
  local is_led = pcall(eventually, function() return life_of(file, "two") end, PATIENCE)
  crown.sleep(STAYS)
  local overlap = ticks.overlap(file)
  crown.exec { "pkill", "-KILL", "-f", file }
  for _, each in ipairs { one, two, proxy } do each:destroy() end
  return is_led and (life_of(file, "two").first - at) * 1000 or math.huge, overlap * 1000
end

local function peer(measure, name, server, start)
  for _, fault in ipairs(FAULTS) do
    local row, worst = ("peer %s, %s"):format(name, fault[1]), 0
    measure(row, "", function()
      local value, overlap = takeover(start, fault[2], server)
      worst = math.max(worst, overlap)
      return value
    end)
    measure(row .. ": both ticking, " .. STAYS .. " s after", "", function() return worst end, 1)
  end
end

local serial = 0

local function with_client_go(measure)
  if not Kubernetes.is_there then
    io.stderr:write(("kubernetes, peer client-go: skipped. %s\n"):format(Kubernetes.MISSING))
    return
  end
  local server = Kubernetes.start()
  local url = server:url("amnesia_wait=0&trust_empty=true&ca=" .. server.authority .. "/ca.crt")
  probe.store_rows(probe.rows(measure, function()
    server:ask("DELETE", "/spec")
    return { url = url, ttl = DURATION }
  end), "kubernetes 4 s", { "≤ 40", "≤ 120", "≤ 4390" }, server, url)
  peer(measure, "client-go 4 s", server, function(node, file, port)
    if node == "one" then serial = serial + 1 end
    return server:elector(node, { ticks = file, port = port, name = "peer-" .. serial, duration = DURATION })
  end)
  server:destroy()
end

local function with(measure, server, kind)
  if not zookeeper_peers.is_there(kind) then
    io.stderr:write(("peer %s: skipped. %s\n"):format(kind, zookeeper_peers.MISSING))
    return
  end
  peer(measure, kind .. " 4 s", server, function(node, file, port)
    if node == "one" then serial = serial + 1 end
    return zookeeper_peers.start(kind, { port = port }, "/bench-" .. serial, node, file, DURATION)
  end)
end

return function(measure)
  with_client_go(measure)
  local server = ZooKeeper.start()
  for _, kind in ipairs { "curator", "kazoo" } do with(measure, server, kind) end
  server:destroy()
end
