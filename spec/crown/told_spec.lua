-- Events that only a certain course of things brings: another epoch in a refresh, a follower's watch, a connection to a store.
local crown = require "crown"
local Elections = require "support.elections"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"

describe("an app is told", function()
  local mine = Elections.new()
  local told, here

  -- Tells of what concerns `wanted(event)`.
  local function listen(names, wanted)
    told, here = {}, {}
    local this = here
    for _, name in ipairs(names) do
      crown.on(name, function(event)
        if this == here and wanted(event) then told[#told + 1] = event end
      end)
    end
  end

  after_each(function()
    here = nil
    mine:stop()
  end)

  it("leadership.conflict: a refresh brought another epoch than the term's, each time", function()
    local name, reasons, epoch = Elections.unique(), {}, 7
    local other, fake = false, testing.fake_oracle()
    listen({ "leadership.conflict", "leadership.lost" }, function(event) return event.name == name end)
    local function grant()
      epoch = epoch + 1
      return true, 0.01, { ttl = 60, epoch = epoch }
    end
    fake:answer("claim", { grant })
    fake:answer("refresh", { function()
      if not other then return true, 0.01, { ttl = 60, epoch = epoch } end
      other = false
      return grant()
    end })
    local election = mine:elect { name = name, oracle = fake, retry = 0.05, handlers = {
      won = function() end, lost = function(reason) reasons[#reasons + 1] = reason end,
    } }
    for time = 1, 2 do
      eventually(function() return election:is_leader() end)
      local term, refreshes = election:status().term, fake:count "refresh"
      eventually(function() return fake:count "refresh" > refreshes + 2 end)
      assert.equal(2 * (time - 1), #told)
      other = true
      eventually(function() return not term:valid() and #told == 2 * time and #reasons == time end)
      local conflict, lost = told[2 * time - 1], told[2 * time]
      assert.same({ "leadership.conflict", "leadership.lost", "denied" }, { conflict.event, lost.event, lost.reason })
      assert.equal("denied", reasons[time])
      eventually(function() return election:is_leader() end)
      assert.is_true(election:status().epoch > term.epoch + 1, "what the store gave out meanwhile was another term")
    end
  end)

  it("monitor.started: each candidate of the file oracle watches the lock, from its first claim on", function()
    local name, oracle = Elections.unique(), "file:" .. tempdir()
    listen({ "monitor.started" }, function(event) return event.name == name end)
    local one = mine:elect { name = name, node = "one", oracle = oracle, retry = 0.2 }
    eventually(function() return one:is_leader() end)
    assert.same({ "one", "file" }, { told[1].node, told[1].oracle })
    local two = mine:elect { name = name, node = "two", oracle = oracle, retry = 0.2 }
    eventually(function() return #told == 2 end)
    assert.equal("two", told[2].node)
    one:abdicate()
    eventually(function() return two:is_leader() end)
    two:abdicate()
    eventually(function() return one:is_leader() end)
    assert.equal(2, #told)
  end)

  it("monitor.started: a runtime listens on the channel of a table in Postgres, once for all of its elections", function()
    local server = Postgres.start()
    finally(function()
      mine:stop()
      server:destroy()
    end)
    listen({ "monitor.started" }, function(event) return event.channel ~= nil end)
    for i = 1, 3 do mine:elect { name = "p" .. i, oracle = server.url .. "?trust_empty=true" } end
    eventually(function() return #told == 1 end, 20)
    assert.matches("^crown", told[1].channel)
    mine:elect { name = "p4", oracle = server.url .. "?trust_empty=true" }
    eventually(function() return mine.running[4]:is_leader() end, 20)
    assert.equal(1, #told)
    -- A connection that is made anew listens no second time.
    local connected = 0
    crown.on("oracle.connected", function(event)
      if event.store == "postgres_lease" then connected = connected + 1 end
    end)
    server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown' AND pid <> pg_backend_pid()"
    eventually(function() return connected >= 1 and mine.running[4]:is_leader() end, 20)
    local claimed = mine:elect { name = "p5", oracle = server.url .. "?trust_empty=true" }
    eventually(function() return claimed:is_leader() end, 20)
    assert.equal(1, #told)
  end)

  it("oracle.connected: once for each connection that proved good, after it was told as lost", function()
    local server = Redis.start()
    finally(function()
      mine:stop()
      server:destroy()
    end)
    local place = ("127.0.0.1:%d"):format(server.port)
    listen({ "oracle.connected", "oracle.disconnected" }, function(event) return event.server == place end)
    local election = mine:elect { oracle = server.quick .. "&ttl=2", retry = 0.1 }
    eventually(function() return election:is_leader() end, 20)
    assert.same({ "oracle.connected", "redis" }, { told[1].event, told[1].store })
    assert.equal(1, #told)
    for time = 1, 2 do
      server:down()
      eventually(function() return told[#told].event == "oracle.disconnected" end, 20)
      local lost = #told
      server:up()
      eventually(function() return told[#told].event == "oracle.connected" end, 20)
      assert.is_true(#told > lost)
      local connected = 0
      for _, event in ipairs(told) do connected = connected + (event.event == "oracle.connected" and 1 or 0) end
      assert.equal(1 + time, connected)
      assert.is_nil(told[#told].error)
    end
  end)
end)
