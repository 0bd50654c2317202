-- Promise 1 on the small API server of the specs; kubernetes_peer_spec.lua has the real one.
local Server = require "support.kubernetes_server"
local takeover = require "support.takeover"

local server = Server.start()

takeover("a leader by a Lease", {
  url = server:url "trust_empty=true&amnesia_wait=0", port = server.port, ttl = 3,
  down = function() server:down() end,
  up = function() server:up() end,
})

teardown(function() server:destroy() end)
