-- Promise 1 on a real NATS server.
local Nats = require "support.nats"
local takeover = require "support.takeover"

local server = Nats.start()

takeover("a leader by a NATS bucket", {
  url = server.url .. "/SPEC", port = server.port, ttl = 3,
  down = function() server:down() end,
  up = function() server:up() end,
})

describe("the server of these specs", function()
  it("is stopped", function() server:destroy() end)
end)
