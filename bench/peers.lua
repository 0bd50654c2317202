--- Peers in the same run, with the same ticking child: flock(1), and etcdctl lock on a server of its own.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

local function have(program)
  local result = crown.exec { "sh", "-c", "command -v " .. program }
  return result and result.code == 0
end

-- Two holders with a ticking child each. The first one's own process is killed, not its child: what a crash of the tool
-- does. They are started as they are: under crown-lua the child would die with its holder.
local function takeover(dir, program, arguments)
  local file = ("%s/ticks-%.6f"):format(dir, crown.now())
  local members = {}
  for i, node in ipairs { "one", "two" } do
    members[i] = Candidate.start { program = program, args = arguments(file), node = node, log = dir .. "/log",
      env = { CROWN_EPOCH = tostring(i), CROWN_ROLE = "leader" } }
    if i == 1 then ticks.await(file, 0, 10) end
  end
  crown.sleep(0.3)
  local at = members[1]:signal "KILL"
  local fine, term = pcall(ticks.await, file, 1, 10)
  crown.sleep(0.5)
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
      local value, overlap = takeover(dir, "/usr/bin/flock", function(file) return { dir .. "/lock", ticker, file } end)
      both = math.max(both, overlap)
      return value
    end, 3)
    measure("peer flock(1): both ticking, 0.5 s after", "", function() return both end, 1)
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
      local value, overlap = takeover(dir, "/usr/bin/etcdctl", function(file)
        return { "--endpoints", url, "lock", "--ttl", "2", "bench", ticker, file }
      end)
      both = math.max(both, overlap)
      return value
    end, 3)
    measure("peer etcdctl lock: both ticking, 0.5 s after", "", function() return both end, 1)
    server:cancel()
  end
end
