-- How many connections a server that hangs sees of one runtime: it takes connections, says nothing, and does not even notice that
-- one was closed, as a process that was stopped. docs/ names the number of each store.
local Candidate = require "support.candidate"
local clients = require "matrix.clients"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local Way = require "matrix.way"
local write_file = require "support.write_file"

local ELECTIONS = 40
local HANGS = 12 -- seconds: some time-outs, which are of a second, and the pauses between connections

local MOST = { redis = 2, sentinel = 2, cluster = 4, majority = 2, mysql = 1, nats = 1, etcd = 9, http = 9 }

local APP = [[
local crown = require "crown"
local led = 0
for i = 1, tonumber(arg[2]) do
  crown.elect { name = "e" .. i, oracle = arg[1], retry = 0.3, handlers = { won = function()
    led = led + 1
    if led == tonumber(arg[2]) then crown.log.info "all are led" end
  end } }
end
]]

local ESTABLISHED, CLOSE_WAIT = "01", "08"

-- The sockets that a port has, and that nobody at this end has closed, by the places at their other ends.
local function told_at(number)
  local found, here = {}, (":%04X$"):format(number)
  for line in read_file("/proc/net/tcp"):gmatch "[^\n]+" do
    local at, from, state = line:match "^%s*%d+: (%S+) (%S+) (%x%x) "
    if at and at:find(here) and (state == ESTABLISHED or state == CLOSE_WAIT) then found[#found + 1] = from end
  end
  table.sort(found)
  return table.concat(found, " "), #found
end

-- The kernel tells them piece by piece: one that is gone and the one that came for it may both be told. So two readings have to
-- tell the same ones.
local function connections_at(number)
  local before, count
  local now = told_at(number)
  repeat
    before = now
    now, count = told_at(number)
  until now == before
  return count
end

describe("a server that hangs sees of one runtime", function()
  for name, most in pairs(MOST) do
    it(("at most %d connections by the client %s"):format(most, name), function()
      local store, dir = clients[name].start(), tempdir()
      local cell, ports = { name = "none", ways = {} }, {}
      for i, number in ipairs(store.ports) do
        local way = Way.open(number, cell, clients[name], store.steps[i])
        cell.ways[number], ports[i] = way, way.port
      end
      write_file(dir .. "/app.lua", APP)
      local member = Candidate.start { node = "one", log = dir .. "/log", args = { dir .. "/app.lua", store.url(ports), ELECTIONS } }
      finally(function()
        member:destroy()
        for _, way in pairs(cell.ways) do way:close() end
        store.destroy()
      end)
      eventually(function() return member:output():find "all are led" end, 60)
      local at, seen = crown.now(), {}
      for _, way in pairs(cell.ways) do way:freeze() end
      while crown.now() - at < HANGS do
        for i, number in ipairs(ports) do seen[i] = math.max(seen[i] or 0, connections_at(number)) end
        crown.sleep(0.1)
      end
      for i in ipairs(ports) do assert(seen[i] > 0 and seen[i] <= most, seen[i] .. " connections") end
    end)
  end
end)
