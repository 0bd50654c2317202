-- A worker that runs once, by an election in etcd that `etcdctl elect worker` can see.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = { "etcd", url = os.getenv "ETCD_URL" or "etcd://127.0.0.1:2379", ttl = 6 },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
