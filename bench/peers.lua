--- Peers in the same run, with the same ticking child: flock(1); etcdctl lock and an election by etcd's own client for Go, on a
-- server of their own.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local rivals = require "rivals"
local tempdir = require "support.tempdir"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"
local go_holder = os.getenv "CROWN_ETCD_ELECTION" or "build/etcd_election"

-- A holder is killed; another one takes over, or never does.
local function rows(measure, dir, name, program, arguments, words)
  local both = 0
  measure(("peer %s, holder SIGKILL: takeover%s"):format(name, words or ""), "", function()
    local value, overlap = rivals.takeover(dir, program, arguments)
    both = math.max(both, overlap)
    return value
  end, 3)
  measure(("peer %s: both ticking, 0.5 s after"):format(name), "", function() return both end, 1)
end

local function start_etcd(dir)
  local number = port.free()
  local url = "http://127.0.0.1:" .. number
  local server = crown.spawn(function()
    crown.exec({ "etcd", "--data-dir", dir .. "/etcd", "--listen-client-urls", url, "--advertise-client-urls", url,
      "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error" }, { timeout = math.huge })
  end)
  eventually(function() return crown.tcp.connect("127.0.0.1", number, { timeout = 0.2 }) end, 20)
  return server, url
end

local function on_etcd(measure, dir)
  local server, url = start_etcd(dir)
  rows(measure, dir, "etcdctl lock --ttl 2", "/usr/bin/etcdctl", function(file)
    return { "--endpoints", url, "lock", "--ttl", "2", "bench", ticker, file }
  end)
  if rivals.have(go_holder) then
    rows(measure, dir, "etcd's concurrency.Election (Go), TTL 2 s", go_holder, function(file) return { url, 2, ticker, file } end)
  else
    io.stderr:write "peer concurrency.Election: skipped, there is no Go with etcd's client here\n"
  end
  server:cancel()
end

return function(measure)
  local dir = tempdir()
  if rivals.have "flock" then
    rows(measure, dir, "flock(1)", "/usr/bin/flock", function(file) return { dir .. "/lock", ticker, file } end, " (inf: never)")
  end
  if rivals.have "etcd" and rivals.have "etcdctl" then on_etcd(measure, dir) end
end
