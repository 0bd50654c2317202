-- `make demo`: three candidates in one terminal, a failover every few seconds by another order or fault, a line for each event
-- with its milliseconds, a table at the end. Ends by itself in under a minute.
package.path = "./spec/?.lua;" .. package.path

local Cluster = require "support.cluster"
local crown = require "crown"
local run = require "support.run"
local tables = require "crown.command.tables"
local ticks = require "support.ticks"

local began = crown.now()
local rows = {}

local function say(format, ...)
  print(("%8.0f ms  %s"):format((crown.now() - began) * 1000, format:format(...)))
end

-- An operator has another one lead: whose turn it is stands in a file beside the lock.
local function hand_over(leader, cluster)
  local to
  for _, member in ipairs(cluster.members) do
    if member ~= leader and not member.code then to = to or member.node end
  end
  local at = crown.now()
  run { "handover", "--oracle", ("file:%s/locks"):format(cluster.dir), "spec", "--to", to }
  return at
end

local FAULTS = {
  { "crown-lua handover", hand_over },
  { "clean stop (SIGTERM)", function(leader) return leader:signal "TERM" end, true },
  { "SIGKILL of the runtime", function(leader) return leader:hurt("KILL", "runtime") end },
  { "SIGKILL of supervisor, runtime and keeper", function(leader)
    return leader:hurt("KILL", "supervise", "runtime", "keeper")
  end, true },
  { "SIGSTOP of the runtime", function(leader) return leader:hurt("STOP", "runtime") end },
  { "SIGKILL of the child's keeper and warden", function(leader) return leader:hurt("KILL", "runtime", "keeper", "warden") end },
}

local function member_of(cluster, node)
  for _, member in ipairs(cluster.members) do
    if member.node == node then return member end
  end
end

local cluster = Cluster.new { oracle = "file", mode = "daemon" }
for _, node in ipairs { "ann", "ben", "cat" } do
  cluster:join(node)
  say("%s joins", node)
end
local term = ticks.await(cluster.ticks, 0, 10)
say("%s leads, epoch %d", term.node, term.epoch)

local extra = 0
for _, fault in ipairs(FAULTS) do
  crown.sleep(1.5)
  local leader = member_of(cluster, term.node)
  say("%s: %s", term.node, fault[1])
  local at = fault[2](leader, cluster)
  local successor = ticks.await(cluster.ticks, term.epoch, 15)
  ticks.settle(cluster.ticks)
  say("%s leads, epoch %d, %.0f ms later", successor.node, successor.epoch, (successor.first - at) * 1000)
  rows[#rows + 1] = { fault[1], term.node, successor.node, ("%d"):format(successor.epoch),
    ("%.0f ms"):format((successor.first - at) * 1000), ("%.0f ms"):format(ticks.overlap(cluster.ticks) * 1000) }
  if fault[3] then
    extra = extra + 1
    cluster:join("new" .. extra)
    say("new%d joins", extra)
  end
  term = successor
end
cluster:finish()
print()
io.write(tables.text({ "fault", "leader", "successor", "epoch", "took", "two at once" }, rows))
os.exit(0)
