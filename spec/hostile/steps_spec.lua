-- A server that is well until some step of what it and a client say to each other, and then resets, closes, or is silent.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local Victim = require "support.victim"

local function chunk(text) return ("say %x\\r\\n%s\\r\\n"):format(#text, text) end

local OK = "say HTTP/1.1 200 OK\\r\\n"

-- What a server that is well says, step by step; each client's first steps are the same as a real one's.
local TALKS = {
  redis = { "hear $", "say $2", "say \\r\\nO", "say K\\r\\n" },
  sentinel = { "hear main", "say *2\\r\\n$9\\r\\n127", "say .0.0.1\\r\\n", "say $1\\r\\n1\\r\\n" },
  subscriber = { "hear SUBSCRIBE", "say *3\\r\\n$9\\r\\nsubscribe\\r\\n", "say $1\\r\\nc\\r\\n:1\\r\\n", "say *3\\r\\n$7\\r\\nmess",
    "say age\\r\\n$1\\r\\nc\\r\\n$1\\r\\nx\\r\\n", "hear PING" },
  nats = { "say INFO {\"server", "say _id\":\"x\"}\\r\\n", "hear CONNECT", "hear PING", "say PON", "say G\\r\\n",
    "hear STREAM.INFO", "say MSG _INBOX.x 1 30\\r\\n{\"config\"" },
  etcd = { "hear POST", OK, "say Content-Length: 20\\r\\n", "say \\r\\n", "say {\"header\":{}", "say         }" },
  watch = { "hear watch", OK .. "Transfer-Encoding: chunked\\r\\n\\r\\n", "say 3",
    (chunk(Hostile.CREATED):gsub("^say 3", "say ")), "say 1", "say f\\r\\n{\"result\":{\"eve" },
  http = { "hear HTTP", OK, "say Content-Length: 40\\r\\n\\r\\n", "say {\"granted\":" },
  postgres = { "wait 0.02", "say R", "say \\0\\0\\0\8\\0\\0\\0\\0", "say S\\0\\0\\0\22server_ve", "say rsion\\00016\\0",
    "say Z\\0\\0\\0\5I", "wait 0.05", "say 1\\0\\0\\0\0042\\0\\0\\0\4T\\0" },
  registry = { "wait 0.02", "say \\0\\0", "say \\0\2{", "say }", "member", "wait 0.3", "say \\0\\0", "say \\0\15{\"kind\":" },
}
TALKS.listener = TALKS.postgres

local TLS_TALKS = {
  redis = { "wait 0.02", "say \22\3\3", "say \\0\4\2\\0\\0" },
  nats = { "say INFO {\"tls_required\":true}\\r\\n", "wait 0.02", "say \22\3\3", "say \\0\4\2\\0\\0" },
  postgres = { "wait 0.02", "say S", "wait 0.02", "say \22\3\3", "say \\0\4\2\\0\\0" },
}
TLS_TALKS.etcd, TLS_TALKS.http = TLS_TALKS.redis, TLS_TALKS.redis

local function play(talks, urls, ending)
  local servers, given = {}, {}
  for client, talk in pairs(talks) do
    for step = 0, #talk do
      local server = Hostile.start(table.concat(talk, "\n", 1, step) .. "\n" .. ending)
      servers[#servers + 1] = { client = client, step = step, server = server }
      given[#given + 1] = urls[client]:format(server.port)
    end
  end
  local victim = Victim.start(given)
  for _, one in ipairs(servers) do
    eventually(function() return one.server.count > 0 or error(one.client .. ", step " .. one.step) end, 20)
  end
  crown.sleep(3) -- the trick itself takes its time
  victim:finish()
  for _, one in ipairs(servers) do one.server:destroy() end
end

for _, ending in ipairs { "reset", "close", "silence" } do
  describe(("a server that ends in %s at any step"):format(ending), function()
    local words = ending == "silence" and "" or ending
    it("of what it says", function() play(TALKS, Victim.URLS, words) end)
    it("of TLS' handshake", function() play(TLS_TALKS, Victim.TLS_URLS, words) end)
  end)
end

describe("somebody who dials a member of a registry", function()
  local SCRIPTS = { "", "reset", "say \\0\\0\nwait 0.1\nreset", "say \\0\\0\\0\2{\nwait 0.1\nclose", "flood x", "flood \\0\\0\\0\2{}",
    "say \127\255\255\255", "drip \\0\\0\\0\10{\"a\":1}  ", "flood \\0", "say \22\3\1\\0\2\2\40" }

  it("harms nobody, whatever he says", function()
    local victim = Victim.start { (Victim.URLS.registry:format(1)) }
    local port
    eventually(function() port = tonumber(victim:output():match "LISTENS (%d+)") return port end, 20)
    for _, script in ipairs(SCRIPTS) do
      for _ = 1, 5 do crown.spawn(Hostile.dial, port, script) end
    end
    crown.sleep(3)
    victim:finish()
  end)
end)
