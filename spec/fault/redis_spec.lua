-- Promise 1 on a real Redis, which forgets everything when it crashes.
local Redis = require "support.redis"
local takeover = require "support.takeover"
local WrongClock = require "support.wrong_clock"

local clock = WrongClock.new(0)
local server = Redis.start { env = clock:environment() }

takeover("a leader by a lease in Redis", {
  url = server.url .. "?amnesia_wait=0", port = server.port, clock = clock, set_back = true, often = "&refresh=0.2",
  drop = function() server:call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") end,
  down = function() server:down() end,
  up = function() server:up() end,
})

teardown(function() server:destroy() end)
