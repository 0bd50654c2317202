-- A job beside an Elixir application: it runs on the node where Oban's own leader is.
local crown = require "crown"

crown.elect {
  name = "beside-oban",
  oracle = {
    "oban_peer",
    url = os.getenv "DATABASE_URL" or "postgres:///postgres",
    oban_name = "Oban",
    node = os.getenv "ELIXIR_NODE" or "app@" .. crown.node, -- this host's node, as Oban names it
    check = 5, -- besides, Oban's notification of a hand-over is followed at once
  },
  stop_timeout = 1,
  child = {
    command = { "sh", "-c", "echo working beside Oban on $CROWN_NODE; exec sleep 3600" },
    stdout = "log",
  },
}
