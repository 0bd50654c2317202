-- A worker that runs once, by a lease in MySQL or MariaDB.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = {
    "mysql",
    url = os.getenv "MYSQL_URL" or "mysql://crown@127.0.0.1:3306/crown",
    ttl = 6, -- a leader that is cut off is gone, and replaced, within this time and a little
  },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
