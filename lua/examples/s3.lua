-- A worker that runs once, by a lease in a bucket of S3. The login is that of AWS's command line: the environment, a profile, or
-- the instance.
local crown = require "crown"

crown.elect {
  name = "worker",
  oracle = {
    "s3",
    url = os.getenv "S3_URL" or "s3://my-bucket/elections?region=eu-central-1",
    ttl = 6, -- a leader that is cut off is gone, and replaced, within this time and a little
  },
  stop_timeout = 1, -- what the worker gets after SIGTERM
  child = {
    command = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
  },
}
