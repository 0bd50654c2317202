-- Promise 1 on a real etcd.
local Etcd = require "support.etcd"
local takeover = require "support.takeover"
local WrongClock = require "support.wrong_clock"

local clock = WrongClock.new(0)
local server = Etcd.start(nil, nil, clock)

takeover("a leader by etcd", {
  url = server.quick, port = server.port, clock = clock,
  down = function() server:down() end,
  up = function() server:up() end,
})

teardown(function() server:destroy() end)
