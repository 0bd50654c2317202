-- A worker that runs once, by a key in a NATS bucket; made when missing.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = {
    "nats_kv",
    url = os.getenv "NATS_URL" or "nats://127.0.0.1:4222/ELECTIONS",
    ttl = 6,
    refresh = 2, -- sooner than Choria would: a lost answer is made up for in time
  },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
