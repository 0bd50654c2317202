-- What a server has made of the statements about leases before somebody waits for them.
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"

describe("a statement about leases", function()
  local server

  before_each(function() server = Postgres.start() end)
  after_each(function() server:destroy() end)

  local function candidate(name, node)
    return Player.new(lease, { name = name, node = node, url = server.url, ttl = 30, timeout = 20 })
  end

  -- What the candidates' own session keeps.
  local function kept(player, words)
    local rows = assert(player.state.leases.client:query("SELECT generic_plans, custom_plans FROM pg_prepared_statements "
      .. "WHERE strpos(statement, $1) > 0 AND strpos(statement, 'pg_prepared_statements') = 0", words))
    return rows[1]
  end

  it("is planned once", function()
    local one = candidate("planned", "one")
    one:win()
    one:abdicate()
    one:win()
    assert.same({ generic_plans = 2, custom_plans = 0 }, kept(one, "INSERT INTO crown_lease_v1"))
  end)

  it("of a release is kept from soon after the win, and gives nothing back by that", function()
    local two = candidate("rehearsed", "two")
    two:win()
    eventually(function() return kept(two, "freed AS") end)
    assert.same({ generic_plans = 1, custom_plans = 0 }, kept(two, "freed AS"))
    assert.equal("granted", two:refresh()[1])
    two:abdicate()
    assert.equal(2, kept(two, "freed AS").generic_plans)
    two:win()
    two:abdicate()
    assert.equal(3, kept(two, "freed AS").generic_plans)
  end)
end)
