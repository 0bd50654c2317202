-- A worker that runs once, by a record in Azure's Blob storage; azure_blob.lua beside this file is the oracle.
--
--   AZURE_STORAGE_KEY=… AZURE_URL=azure_blob://ACCOUNT.blob.core.windows.net/elections crown-lua app.lua
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = os.getenv "AZURE_URL" or "azure_blob://account.blob.core.windows.net/elections",
  stop_timeout = 0.5,
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
