-- A worker that runs once, by an election in ZooKeeper that Curator's LeaderLatch can join.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = { "zookeeper", url = os.getenv "ZOOKEEPER_URL" or "zookeeper://127.0.0.1:2181/app", ttl = 8 },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
