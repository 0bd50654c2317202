-- A Postgres whose clock was set back, or in whose place came a standby with a clock that is behind: what ends by that clock ends
-- hours late by it. Nobody has more left than the longest TTL, so nobody is waited for longer (R7, R14).
local eventually = require("crown.testing").eventually
local Players = require "support.advisory_players"
local Postgres = require "support.postgres"
local WrongClock = require "support.wrong_clock"

local HOUR = 3600
local TTL = 2

describe("a Postgres whose clock was set back", function()
  local clock, server, players

  before_each(function()
    clock = WrongClock.new(0)
    server, players = Postgres.start { clock = clock }, Players.new()
  end)
  after_each(function()
    players:close()
    server:destroy()
  end)

  it("is waited for no longer than a lease lasts by the advisory lock", function()
    local options = { ttl = TTL, amnesia_wait = 0 }
    local one, two = players:add(server.url, "one", options), players:add(server.url, "two", options)
    eventually(function() return one:claim()[1] == "granted" end, 5 * TTL)
    assert.equal("denied", two:claim()[1])
    clock:set(-HOUR)
    server:sql("SELECT pg_terminate_backend($1::int)", one.state.session.bare:server_pid())
    eventually(function() return two:message() == "locked" end)
    local verdict = two:call("handle_info", "locked")
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > 0 and verdict[2] <= TTL)
    eventually(function() return two:claim()[1] == "granted" end, 5 * TTL)
  end)
end)
