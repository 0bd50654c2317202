-- A worker that runs once, by a lease behind an HTTP API; lease_server.lua beside this file is such a server.
--
--   crown-lua lease_server.lua 8484 &
--   LEASE_URL=http://127.0.0.1:8484/locks crown-lua app.lua
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = {
    "http_lease",
    url = os.getenv "LEASE_URL" or "http://127.0.0.1:8484/locks",
    ttl = 6,
  },
  stop_timeout = 1,
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
