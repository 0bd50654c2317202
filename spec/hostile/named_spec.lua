-- A leader's server hangs, then dies: every message about it, in the leader's log, names the server.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"

local STORES = {
  redis = { Redis, "redis://127.0.0.1:%d?ttl=2&amnesia_wait=0" },
  etcd = { Etcd, "etcd://127.0.0.1:%d/named?ttl=2&amnesia_wait=0" },
  nats_kv = { Nats, "nats://127.0.0.1:%d/NAMED?ttl=2&amnesia_wait=0" },
  postgres_lease = { Postgres, "postgres://crown@127.0.0.1:%d/crown?ttl=2" },
  postgres_advisory = { Postgres, "postgres+advisory://crown@127.0.0.1:%d/crown?ttl=2" },
}

local function lines_of(text, event)
  local found = {}
  for line in text:gmatch "[^\n]+" do
    if line:find(event, 1, true) then found[#found + 1] = line end
  end
  return found
end

describe("a server that gives no answer is named in each line of a leader's log:", function()
  for name, store in pairs(STORES) do
    it(name, function()
      local server = store[1].start()
      finally(function() server:destroy() end)
      local one = Candidate.start { node = "one", log = tempdir() .. "/log",
        args = { "run", "--oracle", store[2]:format(server.port), "x", "sleep", "1000" } }
      finally(function() one:destroy() end)
      local function leads() return #one:pids "child" == 1 end
      eventually(leads, 40)
      server:freeze()
      eventually(function() return not leads() and #lines_of(one:output(), "oracle.error") > 0 end, 40)
      server:thaw()
      eventually(leads, 60)
      local before = #lines_of(one:output(), "oracle.error")
      server:down()
      eventually(function() return not leads() and #lines_of(one:output(), "oracle.error") > before end, 40)
      for _, event in ipairs { "oracle.error", "oracle.disconnected" } do
        for _, line in ipairs(lines_of(one:output(), event)) do
          assert.truthy(line:find(":" .. server.port, 1, true), line)
        end
      end
    end)
  end
end)
