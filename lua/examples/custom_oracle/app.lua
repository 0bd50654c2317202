-- An app on an oracle of one's own: tcp_lease.lua lies beside this file. Usage: crown-lua app.lua PORT [COMMAND...]
local crown = require "crown"

local command = { unpack(arg, 2) }

crown.elect {
  name = "custom",
  oracle = { "tcp_lease", port = tonumber(arg[1]), ttl = tonumber(os.getenv "TTL") or 2 },
  child = #command > 0 and command or nil,
  handlers = {
    won = function(term) print(("%s leads, epoch %d"):format(crown.node, term.epoch)) end,
    lost = function(reason) print(("%s lost: %s"):format(crown.node, reason)) end,
  },
}
