-- What is watched on etcd where a runtime has many elections without a prefix, and when they have ended.
local base64 = require "crown.text.base64"
local Client = require "crown.etcd.client"
local crown = require "crown"
local Elections = require "support.elections"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Watch = require "crown.etcd.watch"

local ENDED, STILL_WATCHED, RANGES = 150, 10, 1000

describe("what is watched on etcd", function()
  local mine, server, failures = Elections.new(), nil, 0

  setup(function()
    server = Etcd.start():trusted()
    crown.on("oracle.error", function() failures = failures + 1 end)
  end)
  after_each(function() mine:stop() end)
  teardown(function() server:destroy() end)

  local function watchers()
    local answer = assert(crown.http.request { url = server.client .. "/metrics" })
    return tonumber(answer.body:match "\netcd_debugging_mvcc_watcher_total (%S+)")
  end

  local function leader()
    local election = mine:elect { name = Elections.unique(), oracle = { "etcd", url = server.url, ttl = 10 } }
    eventually(function() return election:is_leader() end, 20)
    return election
  end

  it("is left again by elections that ended, while another one is led on", function()
    local stays = leader()
    for _ = 1, ENDED do
      local election = leader()
      election:stop()
      eventually(function() return election.handle:finished() end, 20)
    end
    eventually(function() return watchers() <= STILL_WATCHED end, 20)
    assert.is_true(stays:is_leader())
    assert.equal(0, failures)
    mine:stop()
    eventually(function() return watchers() == 0 end, 20)
    assert.is_true(leader():is_leader())
  end)

  it("may be many ranges", function()
    local watch = Watch.new { client = Client.new({ endpoints = { server.client } }, 5), timeout = 5, on_event = function() end,
      on_missed = function() end }
    local watched, failed = 0, nil
    for i = 1, RANGES do
      crown.spawn(function()
        local fine, problem = watch:over { key = base64.encode(("many-%d."):format(i)), range_end = base64.encode(("many-%d0"):format(i)) }
        watched, failed = watched + (fine and 1 or 0), failed or problem
      end)
    end
    eventually(function() return failed or watched == RANGES end, 20)
    watch:close()
    assert.is_nil(failed)
  end)
end)
