-- A registry: workers that find each other by name, and one of them leads. Start it on several nodes, with the same secret:
-- CROWN_NODE=ann LISTEN=127.0.0.1:7401 SECRET=… crown-lua lua/examples/registry.lua
local crown = require "crown"

local registry = require("crown.registry").open {
  name = "workers",
  url = os.getenv "DATABASE_URL" or "postgres:///postgres",
  listen = os.getenv "LISTEN" or "127.0.0.1:0",
  secret = os.getenv "SECRET", -- the same on all nodes, at least 16 bytes
  ttl = 6,
  handlers = { won = function(term) crown.log.info(("leading, epoch %d"):format(term.epoch)) end },
}

crown.spawn(function()
  while not registry:leader() do crown.sleep(0.1) end
  local fine, other = registry:register("mailer", { pid = crown.node })
  if fine then
    crown.log.info "this node is the mailer"
  elseif fine == false then
    crown.log.info(("%s is the mailer"):format(other.owner))
  else
    crown.log.warn(other) -- nil and a message, as everywhere
  end
end)
