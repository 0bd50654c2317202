--- Many leases on one Postgres and two runtimes that want them: how long until all are led, what leader, follower and server
-- cost while nothing happens, and how the leases change hands.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local probe = require "probe"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- Arguments: a file for what it has to say, the store's URL, how many, the TTL. It writes when all were declared, and when this
-- runtime has won them all.
local APP = [[
local crown = require "crown"
local elections = require "crown.core.election"
local path, url, count, ttl = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
local function say(what)
  local file = assert(io.open(path, "a"))
  file:write(("%s %.6f\n"):format(what, crown.now()))
  file:close()
end
say "began"
for i = 1, count do crown.elect { name = "e" .. i, oracle = { "postgres_lease", url = url, ttl = ttl } } end
say "declared"
crown.spawn(function()
  repeat crown.sleep(0.05) until elections.counts()["leadership.claimed"] >= count
  say "led"
end)
]]

local Member = {}
Member.__index = Member

local function join(node, url, shape)
  local self = setmetatable({ dir = tempdir() }, Member)
  write_file(self.dir .. "/app.lua", APP)
  self.out = self.dir .. "/out"
  self.candidate = Candidate.start { node = node, log = self.dir .. "/log",
    args = { "--log-level", "warn", self.dir .. "/app.lua", self.out, url, shape.count, shape.ttl } }
  return self
end

-- When it said so, or nil.
function Member:said(what)
  return tonumber((read_file(self.out) or ""):match(what .. " (%S+)"))
end

function Member:await(what, seconds)
  return eventually(function() return self:said(what) end, seconds)
end

function Member:runtime()
  return self.candidate:pids("runtime")[1]
end

function Member:destroy()
  self.candidate:destroy()
end

-- Two runtimes, the second one after the first has won all; then what all three cost for a while.
local function settled(server, shape)
  local one = join("one", server.url, shape)
  local led = one:await("led", 120) - one:said "began"
  local two = join("two", server.url, shape)
  two:await("declared", 60)
  crown.sleep(shape.ttl / 2)
  return one, two, led
end

local function costs(server, shape)
  local one, two, led = settled(server, shape)
  local found = { led = led * 1000 }
  local function seconds()
    return probe.cpu_seconds(one:runtime()), probe.cpu_seconds(two:runtime()), probe.tree_seconds(server.process.pid)
  end
  local at, leader, follower, store = crown.now(), seconds()
  crown.sleep(shape.ttl) -- each lease is refreshed three times
  local leader_after, follower_after, store_after = seconds()
  local part = 100 / (crown.now() - at)
  found.leader, found.follower, found.server = (leader_after - leader) * part, (follower_after - follower) * part,
    (store_after - store) * part
  found.leader_pss, found.follower_pss = probe.memory(one:runtime()), probe.memory(two:runtime())
  local fault = one.candidate:signal "TERM"
  found.handed_over = (two:await("led", shape.ttl * 2) - fault) * 1000
  local code = one.candidate:wait(60)
  assert(code == 0, "the leader ended with " .. code .. ": " .. one.candidate:output())
  two:destroy()
  return found
end

local function killed(server, shape)
  local one, two = settled(server, shape)
  local fault = one.candidate:hurt("KILL", "supervise", "runtime")
  local value = two:await("led", shape.ttl * 3) - fault
  one.candidate:wait(10)
  two:destroy()
  return value
end

-- One runtime, which is killed while it leads all; its supervisor starts the next one.
local function restarted(server, shape)
  local one = join("one", server.url, shape)
  one:await("led", 120)
  os.remove(one.out)
  local fault, most = one.candidate:hurt("KILL", "runtime"), 0
  one:await("began", 60)
  local pid = one:runtime()
  repeat
    most = math.max(most, probe.memory(pid))
    crown.sleep(0.2) -- each look takes the process's time
  until one:said "led"
  local found = { again = (one:said "led" - fault) * 1000, again_pss = math.max(most, probe.memory(pid)) }
  one:destroy()
  return found
end

local SHAPES = {
  { count = 10000, ttl = 15, words = "10,000 leases, TTL 15, two runtimes", limits = { led = "≤ 2000", leader_pss = "≤ 30",
    follower_pss = "≤ 30", leader = "≤ 1.2", follower = "≤ 0.3", server = "", handed_over = "≤ 500", killed = "≤ 16",
    again = "≤ 2000", again_pss = "≤ 30" } },
  { count = 100000, ttl = 60, words = "100,000 leases, TTL 60, two runtimes", limits = { led = "≤ 5000", leader_pss = "≤ 200",
    follower_pss = "≤ 200", leader = "≤ 4", follower = "≤ 1", server = "≤ 8", handed_over = "≤ 5000", killed = "≤ 61",
    again = "≤ 5000", again_pss = "≤ 200" } },
}

local ROWS = {
  { "led", "all led after" },
  { "leader_pss", "memory of the leader in MB" },
  { "follower_pss", "memory of the follower in MB" },
  { "leader", "% of a core in the leader" },
  { "follower", "% of a core in the follower" },
  { "server", "% of a core in the server" },
  { "handed_over", "SIGTERM: the other one leads all" },
}

local RESTARTED = {
  { "again", "runtime SIGKILL: the next one leads all" },
  { "again_pss", "runtime SIGKILL: memory of the next one in MB, at most" },
}

-- On a server of its own: tables that were dropped are sat out.
local function on_server(fn, shape)
  local server = Postgres.start()
  local found = fn(server, shape)
  server:destroy()
  return found
end

-- Rows of what `run` finds; it is run once for all of them.
local function rows_of(measure, shape, which, run)
  local found
  for _, row in ipairs(which) do
    measure(("%s: %s"):format(shape.words, row[2]), shape.limits[row[1]], function()
      found = found or on_server(run, shape)
      return found[row[1]]
    end, 1)
  end
end

return function(measure)
  for _, shape in ipairs(SHAPES) do
    rows_of(measure, shape, ROWS, costs)
    measure(shape.words .. ": SIGKILL: the other one leads all (s)", shape.limits.killed, function()
      return on_server(killed, shape)
    end, 1)
    rows_of(measure, shape, RESTARTED, restarted)
  end
end
