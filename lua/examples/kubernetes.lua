-- A worker that runs once in a cluster, by an election in the Lease `worker`, which client-go can share. In a pod nothing needs
-- to be set; elsewhere K8S_URL says where: "k8s:NAMESPACE?kubeconfig=PATH".
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = { "kubernetes", url = os.getenv "K8S_URL" or "k8s:", ttl = 6 },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
