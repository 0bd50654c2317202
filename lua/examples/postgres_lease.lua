-- A worker that runs once, by a lease in Postgres. DATABASE_URL as every Postgres program takes it.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = {
    "postgres_lease",
    url = os.getenv "DATABASE_URL" or "postgres:///postgres",
    ttl = 6, -- a leader that is cut off is gone, and replaced, within this time
  },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
