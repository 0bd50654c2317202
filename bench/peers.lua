--- Peers in the same run, with the same ticking child: flock(1), and etcdctl lock on a server of its own.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local rivals = require "rivals"
local tempdir = require "support.tempdir"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

return function(measure)
  local dir = tempdir()
  if rivals.have "flock" then
    local both = 0
    measure("peer flock(1), holder SIGKILL: takeover (inf: never)", "", function()
      local value, overlap = rivals.takeover(dir, "/usr/bin/flock", function(file) return { dir .. "/lock", ticker, file } end)
      both = math.max(both, overlap)
      return value
    end, 3)
    measure("peer flock(1): both ticking, 0.5 s after", "", function() return both end, 1)
  end
  if rivals.have "etcd" and rivals.have "etcdctl" then
    local port = 23790 + crown.token:byte(1)
    local url = "http://127.0.0.1:" .. port
    local server = crown.spawn(function()
      crown.exec({ "etcd", "--data-dir", dir .. "/etcd", "--listen-client-urls", url, "--advertise-client-urls", url,
        "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error" }, { timeout = math.huge })
    end)
    eventually(function() return crown.tcp.connect("127.0.0.1", port, { timeout = 0.2 }) end, 20)
    local both = 0
    measure("peer etcdctl lock --ttl 2, holder SIGKILL: takeover", "", function()
      local value, overlap = rivals.takeover(dir, "/usr/bin/etcdctl", function(file)
        return { "--endpoints", url, "lock", "--ttl", "2", "bench", ticker, file }
      end)
      both = math.max(both, overlap)
      return value
    end, 3)
    measure("peer etcdctl lock: both ticking, 0.5 s after", "", function() return both end, 1)
    server:cancel()
  end
end
