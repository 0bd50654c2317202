--- What an election costs in memory, a claim in processor time, and a refresh in garbage, processor time and instructions, for each
-- store. Unlike times most of these figures are nearly the same on every machine, so a change that costs more shows in them.
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local http_server = require "http_server"
local Mysql = require "support.mysql"
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local ELECTIONS = 500
local SETTLES = 120 -- seconds: until all are led, on a busy machine
local TTL, REFRESH = 9, 1 -- seconds
local WATCHED = 10 -- seconds
local QUERY = ("ttl=%d&refresh=%d&timeout=3&amnesia_wait=0&trust_empty=true"):format(TTL, REFRESH)

-- Arguments: a file for what it found, the store, how many elections, how many seconds it watches. The collector rests while it
-- watches, so the Lua heap grows by all that is allocated. It begins to watch when it has said so, by a file beside its own.
local APP = [[
local crown = require "crown"
local elections = require "crown.core.election"
local path, store, count, seconds = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])

local function heap()
  collectgarbage()
  collectgarbage()
  return collectgarbage "count" * 1024
end

local function declare(first, last)
  for i = first, last do crown.elect { name = "e" .. i, oracle = store } end
end

local function await(led)
  repeat crown.sleep(0.05) until elections.counts()["leadership.claimed"] >= led
end

declare(1, 10) -- loads what all elections share
crown.spawn(function()
  await(10)
  local before, began = heap(), os.clock()
  declare(11, count)
  await(count)
  local claim = (os.clock() - began) / (count - 10) * 1e6
  local each = (heap() - before) / (count - 10)
  collectgarbage "stop"
  local function refreshes() return elections.counts()["leadership.refreshed"] end
  local first, from = refreshes(), collectgarbage "count"
  io.open(path .. ".watches", "w"):close()
  crown.sleep(seconds)
  local done = refreshes() - first
  local garbage = (collectgarbage "count" - from) * 1024
  collectgarbage "restart"
  local file = io.open(path, "w")
  file:write(("%.0f %.0f %.0f %d"):format(each, claim, garbage / done, done))
  file:close()
end)
]]

-- The words that a command prints.
local function printed(command)
  local done = crown.exec { "sh", "-c", command }
  return done and done.code == 0 and done.stdout or ""
end

-- Nanoseconds that all threads of a process have run.
local function nanoseconds(pid)
  local sum = 0
  for each in printed(("cat /proc/%d/task/*/schedstat"):format(pid)):gmatch "(%d+) %d+ %d+\n" do sum = sum + tonumber(each) end
  return sum
end

-- Instructions that a process executes from now on, for some seconds; nil where the machine does not count them.
local function instructions(pid, seconds)
  return tonumber(printed(("perf stat -x, -e instructions:u -p %d sleep %g 2>&1"):format(pid, seconds)):match "^(%d+),")
end

local function run(url)
  local dir = tempdir()
  write_file(dir .. "/app.lua", APP)
  local member = Candidate.start { node = "counters", log = dir .. "/log",
    args = { "--log-level", "error", dir .. "/app.lua", dir .. "/out", url, ELECTIONS, WATCHED } }
  eventually(function() return read_file(dir .. "/out.watches") end, SETTLES)
  local pid = member:pids("runtime")[1]
  local before, at = nanoseconds(pid), crown.now()
  local counted = instructions(pid, WATCHED / 2)
  crown.sleep(at + WATCHED / 2 - crown.now())
  local took, part = nanoseconds(pid) - before, (crown.now() - at) / WATCHED
  local heap, claim, garbage, refreshes = eventually(function() return read_file(dir .. "/out") end, SETTLES)
    :match "(%S+) (%S+) (%S+) (%S+)"
  member:destroy()
  local watched = tonumber(refreshes) * part
  return { heap = tonumber(heap), claim = tonumber(claim), garbage = tonumber(garbage), microseconds = took / 1000 / watched,
    instructions = counted and counted / watched }
end

-- Each store: how its server is started, and what leads to it.
local STORES = {
  { "memory", function() return { destroy = function() end } end, function() return "memory:counters?ttl=9&refresh=1" end },
  { "postgres", Postgres.start, function(server) return server.url .. "?" .. ("ttl=%d&refresh=%d"):format(TTL, REFRESH) end },
  { "redis", Redis.start, function(server) return server.url .. "?" .. QUERY end },
  { "mysql", Mysql.start, function(server) return server.url .. "?" .. QUERY end },
  { "etcd", Etcd.start, function(server) return server.url .. "/counters?" .. QUERY end },
  { "nats", Nats.start, function(server) return server.url .. "/COUNTERS?" .. QUERY end },
  { "http", http_server, function(server) return server.url .. "?" .. ("ttl=%d&refresh=%d"):format(TTL, REFRESH) end },
}

local ROWS = {
  { "heap", "Lua heap of an election (B)" },
  { "claim", "processor time of a claim (us)" },
  { "garbage", "Lua garbage of a refresh (B)" },
  { "microseconds", "processor time of a refresh (us)" },
  { "instructions", "instructions of a refresh" },
}

return function(measure)
  for _, store in ipairs(STORES) do
    local name, start, url_of = unpack(store)
    local found
    for _, row in ipairs(ROWS) do
      measure(("counters, %s: %s"):format(name, row[2]), "", function()
        if not found then
          local server = start()
          found = run(url_of(server))
          server:destroy()
        end
        return found[row[1]]
      end, 1)
    end
  end
end
