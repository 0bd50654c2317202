--- Ten thousand elections, led and refreshed every 10 s, and ten who look at them once a second.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local probe = require "probe"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local APP = [[
local crown = require "crown"
for i = 1, 10000 do
  crown.elect { name = "e" .. i, oracle = { "memory", ttl = 30, refresh = 10 }, claim_delay = i / 1000 }
end
]]
local READERS, SETTLE, WATCH = 10, 15, 10

-- As the page does it: what has changed since it was last told.
local function page(port)
  local stamp
  return function()
    local body = http.ask(port, "GET /api/elections/1000" .. (stamp and "?since=" .. stamp or "")).body
    stamp = body:match '"stamp":"([^"]+)"'
  end
end

local function whole(path)
  return function(port)
    return function() assert(http.ask(port, "GET " .. path).status == 200) end
  end
end

-- The processor time that a reader's way of looking costs the runtime, in % of a core.
local function cost(port, pid, reader)
  local goes_on = true
  for _ = 1, READERS do
    local look = reader(port)
    crown.spawn(function()
      while goes_on do
        look()
        crown.sleep(1)
      end
    end)
  end
  crown.sleep(2)
  local cpu, at = probe.cpu_seconds(pid), crown.now()
  crown.sleep(WATCH)
  goes_on = false
  local used = (probe.cpu_seconds(pid) - cpu) / (crown.now() - at) * 100
  crown.sleep(2)
  return used
end

return function(measure)
  local one, port, pid
  local function row(what, target, reader)
    measure("10,000 elections, " .. what .. ": % of a core", target, function()
      if not one then
        local dir = tempdir()
        write_file(dir .. "/app.lua", APP)
        one = Candidate.start { node = "web", log = dir .. "/log",
          args = { "--log-level", "error", "--log-filter", "http.listening=info", "--http", "127.0.0.1:0", dir .. "/app.lua" } }
        port = eventually(function() return tonumber(one:output():match "http.listening.- port=(%d+)") end, 30)
        pid = one:pids("runtime")[1]
        crown.sleep(SETTLE)
      end
      return cost(port, pid, reader)
    end, 1)
  end
  row("nobody looks", "≤ 2", function() return function() end end)
  row("ten status pages open", "≤ 4", page)
  row("/api/elections ten times a second", "≤ 10", whole "/api/elections")
  row("/metrics ten times a second", "≤ 10", whole "/metrics")
  if one then one:destroy() end
end
