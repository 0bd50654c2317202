-- A worker that runs once, by a record in a store that compares and swaps; http_records.lua beside this file is the oracle,
-- record_server.lua such a store.
--
--   crown-lua record_server.lua 8485 &
--   RECORDS_URL=http://127.0.0.1:8485/records crown-lua app.lua
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = { "http_records", url = os.getenv "RECORDS_URL" or "http://127.0.0.1:8485/records", ttl = 3 },
  stop_timeout = 0.5,
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
