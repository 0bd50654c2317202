-- A worker that runs once, by a lease in Consul's keys. The token is that of Consul's command line: CONSUL_HTTP_TOKEN, or a file
-- that CONSUL_HTTP_TOKEN_FILE names.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = {
    "consul",
    url = os.getenv "CONSUL_URL" or "consul://127.0.0.1:8500/crown?recipe=register",
    ttl = 6, -- a leader that is cut off is gone, and replaced, within this time and a little
  },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
