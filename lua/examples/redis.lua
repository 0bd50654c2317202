-- A worker that runs once, by a lease in Redis.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = {
    "redis",
    url = os.getenv "REDIS_URL" or "redis://127.0.0.1:6379",
    ttl = 6, -- a leader that is cut off is gone, and replaced, within this time
  },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
