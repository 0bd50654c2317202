-- A worker that runs once, by a record in a table of DynamoDB; dynamodb.lua beside this file is the oracle.
--
--   DYNAMODB_URL='dynamodb://dynamodb.eu-central-1.amazonaws.com/elections?region=eu-central-1' crown-lua app.lua
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = os.getenv "DYNAMODB_URL" or "dynamodb://dynamodb.eu-central-1.amazonaws.com/elections?region=eu-central-1",
  stop_timeout = 0.5,
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
