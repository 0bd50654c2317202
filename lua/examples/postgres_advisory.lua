-- A migration runner that must never run twice, by an advisory lock in Postgres: the next one starts within
-- milliseconds of the last one's end, even when that was killed.
local crown = require "crown"

crown.elect {
  name = "migrations",
  oracle = {
    "postgres_advisory",
    url = os.getenv "DATABASE_URL" or "postgres:///postgres",
    check = 2, -- seconds between two looks at the lock, on the lock's own session
  },
  stop_timeout = 1,
  child = {
    command = { "sh", "-c", "echo migrating as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
