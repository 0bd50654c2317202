-- Promise 1 on a real NATS server.
local Nats = require "support.nats"
local takeover = require "support.takeover"
local WrongClock = require "support.wrong_clock"

local clock = WrongClock.new(0)
local server = Nats.start { clock = clock }

takeover("a leader by a NATS bucket", {
  url = server.quick, port = server.port, ttl = 3, clock = clock, set_back = true,
  down = function() server:down() end,
  up = function() server:up() end,
  lasting = function(ttl) return ("%s/LASTING%d?amnesia_wait=0"):format(server.url, ttl) end, -- each bucket has its own
})

teardown(function() server:destroy() end)
