-- Promise 1 on a real etcd.
local Etcd = require "support.etcd"
local takeover = require "support.takeover"

local server = Etcd.start()

takeover("a leader by etcd", {
  url = server.quick, port = server.port,
  down = function() server:down() end,
  up = function() server:up() end,
})

teardown(function() server:destroy() end)
