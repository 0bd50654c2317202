-- Promise 1 on a real Redis, which forgets everything when it crashes.
local Redis = require "support.redis"
local takeover = require "support.takeover"

local server = Redis.start()

takeover("a leader by a lease in Redis", {
  url = server.quick, port = server.port,
  drop = function() server:call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") end,
  down = function() server:down() end,
  up = function() server:up() end,
})

teardown(function() server:destroy() end)
