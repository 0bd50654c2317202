-- Promise 1 on a real NATS server.
local Nats = require "support.nats"
local takeover = require "support.takeover"

local server = Nats.start()

takeover("a leader by a NATS bucket", {
  url = server.quick, port = server.port, ttl = 3,
  down = function() server:down() end,
  up = function() server:up() end,
})

teardown(function() server:destroy() end)
