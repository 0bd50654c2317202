--- Peers in the same run, with the same ticking child: flock(1), and etcdctl lock on a server of its own.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

local HOLD = [[
local crown = require "crown"
local node, file = arg[1], arg[2]
crown.exec({ unpack(arg, 3) }, { env = { CROWN_NODE = node, CROWN_EPOCH = node == "one" and 1 or 2, CROWN_ROLE = "leader" },
  timeout = math.huge })
print(file)
]]

local function have(program)
  local result = crown.exec { "sh", "-c", "command -v " .. program }
  return result and result.code == 0
end

-- The holder's own processes are killed, not its child: what a crash of the tool does.
local function kill_holder(pattern)
  crown.exec { "pkill", "-KILL", "-o", "-f", pattern } -- the oldest: the one that holds
  return crown.now()
end

local function takeover(dir, command, pattern)
  local app, log, file = dir .. "/hold.lua", dir .. "/log", dir .. "/ticks-" .. crown.now()
  local out = assert(io.open(app, "w"))
  out:write(HOLD)
  out:close()
  local members = {}
  for _, node in ipairs { "one", "two" } do
    local words = { app, node, file }
    for _, word in ipairs(command(file, node)) do words[#words + 1] = word end
    members[#members + 1] = Candidate.start { args = words, node = node, log = log }
    if node == "one" then ticks.await(file, 0, 10) end
  end
  crown.sleep(0.3)
  local at = kill_holder(pattern)
  local fine, term = pcall(ticks.await, file, 1, 20)
  crown.sleep(0.2)
  local overlap = ticks.overlap(file)
  crown.exec { "pkill", "-KILL", "-f", file }
  for _, member in ipairs(members) do member:destroy() end
  return fine and (term.first - at) * 1000 or math.huge, overlap * 1000
end

return function(measure)
  local dir = tempdir()
  if have "flock" then
    local both = 0
    measure("peer flock(1), holder SIGKILL: takeover (inf: never)", "", function()
      local value, overlap = takeover(dir, function(file) return { "flock", dir .. "/lock", ticker, file } end,
        "^flock " .. dir)
      both = math.max(both, overlap)
      return value
    end, 3)
    measure("peer flock(1): both ticking", "", function() return both end, 1)
  end
  if have "etcd" and have "etcdctl" then
    local port = 23790 + crown.token:byte(1)
    local url = "http://127.0.0.1:" .. port
    local server = crown.spawn(function()
      crown.exec({ "etcd", "--data-dir", dir .. "/etcd", "--listen-client-urls", url, "--advertise-client-urls", url,
        "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error" }, { timeout = math.huge })
    end)
    eventually(function() return crown.tcp.connect("127.0.0.1", port, { timeout = 0.2 }) end, 20)
    local both = 0
    measure("peer etcdctl lock --ttl 2, holder SIGKILL: takeover", "", function()
      local value, overlap = takeover(dir, function(file)
        return { "etcdctl", "--endpoints", url, "lock", "--ttl", "2", "bench", ticker, file }
      end, "^etcdctl.*ticks.*")
      both = math.max(both, overlap)
      return value
    end, 3)
    measure("peer etcdctl lock: both ticking", "", function() return both end, 1)
    server:cancel()
  end
end
