-- The smallest useful app: a worker that runs on one node only.
local crown = require "crown"

crown.elect {
  name = "reports",
  child = { "sh", "-c", "echo working as $CROWN_NODE in epoch $CROWN_EPOCH; exec sleep 3600" },
  handlers = {
    won = function(term) crown.log.info(("leading, epoch %d"):format(term.epoch)) end,
    lost = function(reason) crown.log.info("lost: " .. reason) end,
  },
}
