-- What a server has made of the statements about leases before somebody waits for them.
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
    local rows = assert(player.state.store.store.client:query("SELECT generic_plans, custom_plans FROM pg_prepared_statements "
      .. "WHERE strpos(statement, $1) > 0 AND strpos(statement, 'pg_prepared_statements') = 0", words))
    return rows[1]
  end

  it("is planned once", function()
    local one = candidate("planned", "one")
    one:win()
    one:abdicate()
    one:win()
    local found = kept(one, "'synchronous_commit', 'on'")
    assert.is_true(found.generic_plans >= 2)
    assert.equal(0, found.custom_plans)
  end)
end)
