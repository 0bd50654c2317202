-- A server that, while TLS is agreed upon, asks without end for what is under way: OpenSSL passes over each "hello request", and
-- reads on for as long as there are more. No certificate is needed to say so.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local Victim = require "support.victim"

local SIZE = 16384 -- bytes of a record: 4,096 messages of four zeros each
local FLOOD = "flood \22\3\3\64\\0" .. ("\\0"):rep(SIZE)
local SCRIPTS = { redis = FLOOD, etcd = FLOOD, http = FLOOD,
  nats = "say INFO {\"tls_required\":true}\\r\\n\nwait 0.1\n" .. FLOOD,
  postgres = "wait 0.1\nsay S\nwait 0.1\n" .. FLOOD }

describe("a server that floods while TLS is agreed upon", function()
  for client, script in pairs(SCRIPTS) do
    it("costs nobody else a leadership or a refresh: " .. client, function()
      local server = Hostile.start(script)
      local victim = Victim.start { Victim.TLS_URLS[client]:format(server.port) }
      eventually(function() return server.count > 0 end, 20)
      crown.sleep(3) -- the trick itself takes its time
      victim:finish()
      server:destroy()
    end)
  end
end)
