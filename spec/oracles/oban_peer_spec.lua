local crown = require "crown"
local Election = require "support.ordered_election"
local eventually = require("crown.testing").eventually
local oban = require "crown.oracles.oban_peer"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local run = require "support.run"
local tempdir = require "support.tempdir"

describe("the oracle that follows Oban's leader", function()
  local server
  local theirs = {} -- Oban's own statements

  setup(function()
    server = Postgres.start()
    server:sql [[CREATE TABLE oban_peers (name TEXT PRIMARY KEY, node TEXT NOT NULL,
      started_at TIMESTAMP NOT NULL, expires_at TIMESTAMP NOT NULL)]] -- without a zone, as Oban's migration has it
    server:sql "GRANT SELECT ON oban_peers TO crown"
  end)
  teardown(function() server:destroy() end)
  before_each(function() server:sql "TRUNCATE oban_peers" end)

  function theirs.lead(node, seconds)
    server:sql([[INSERT INTO oban_peers VALUES ('Oban', $1, timezone('UTC', now()),
      timezone('UTC', clock_timestamp()) + make_interval(secs => $2))
      ON CONFLICT (name) DO UPDATE SET node = excluded.node, started_at = excluded.started_at,
        expires_at = excluded.expires_at]], node, seconds or 30)
  end

  -- As Oban renews: whatever row bears the name is extended, whoever's it is.
  function theirs.renew(node, seconds)
    server:sql([[INSERT INTO oban_peers VALUES ('Oban', $1, timezone('UTC', now()),
      timezone('UTC', clock_timestamp()) + make_interval(secs => $2))
      ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at]], node, seconds)
  end

  local function peer(node, options)
    local given = { name = "x", node = node, url = server.url }
    for key, value in pairs(options or {}) do given[key] = value end
    return Player.new(oban, given)
  end

  it("leads where Oban's leader is, for as long as Oban's row runs", function()
    local at = crown.now()
    theirs.lead "app@one"
    local granted = peer("app@one"):claim()
    assert.equal("granted", granted[1])
    assert.is_true(granted[3] > 29.9 - (crown.now() - at) and granted[3] <= 30)
    local denied = peer("app@two"):claim()
    assert.same({ "denied", "app@one" }, { denied[1], denied[3] })
  end)

  it("looks every fifteen seconds by default", function()
    theirs.lead("app@one", 600)
    assert.equal(15, peer("app@one"):claim()[2])
    assert.equal(15, peer("app@two"):claim()[6])
  end)

  it("looks again well before Oban's row runs out, however seldom it is told to look", function()
    theirs.lead("app@one", 12)
    local granted = peer("app@one", { check = 600 }):claim()
    assert.is_true(granted[2] > 0 and granted[2] <= 4)
  end)

  it("has an epoch that grows with Oban's leaders", function()
    theirs.lead "app@one"
    local first = peer("app@one"):claim()[4]
    theirs.lead "app@one"
    assert.is_true(peer("app@one"):claim()[4] > first)
  end)

  it("does not lead by a row that has expired, whatever zone the session has", function()
    theirs.lead("app@one", -1)
    assert.equal("denied", peer("app@one"):claim()[1])
    local admin = server:admin()
    assert(admin:query "ALTER ROLE crown SET timezone = 'Asia/Tokyo'")
    assert.equal("denied", peer("app@one", { url = server.url .. "?application_name=tokyo" }):claim()[1])
    theirs.lead "app@one"
    assert.equal("granted", peer("app@one", { url = server.url .. "?application_name=tokyo" }):claim()[1])
    assert(admin:query "ALTER ROLE crown RESET timezone")
    admin:close()
  end)

  it("does not lead when Oban has no leader, and looks again soon", function()
    local verdict = peer("app@one"):claim()
    assert.equal("denied", verdict[1])
    assert.equal(1, verdict[6])
  end)

  it("never takes a renewal by another node for its own (the third way to two leaders)", function()
    theirs.lead "app@two"
    theirs.renew("app@one", 60) -- a paused ex-leader wakes up
    local row = server:sql "SELECT node, expires_at > timezone('UTC', clock_timestamp()) + interval '50 s' AS renewed FROM oban_peers"
    assert.same({ { node = "app@two", renewed = true } }, { row[1] }) -- the danger: told success, it believes that it leads
    assert.equal("denied", peer("app@one"):refresh()[1])
    assert.equal("granted", peer("app@two"):refresh()[1])
  end)

  it("follows a hand-over at once, by Oban's notification", function()
    theirs.lead "app@one"
    local one, two = peer "app@one", peer "app@two"
    assert.equal("granted", one:claim()[1])
    two:claim()
    Postgres.await_listener(function() return one.state.client end)
    while two:message() do end
    theirs.lead "app@two"
    server:sql [[SELECT pg_notify('public.oban_leader', '{"down":"Oban"}')]]
    eventually(function() return one:message() == "changed" end)
    eventually(function() return two:message() == "changed" end)
    assert.equal("denied", one:call("handle_info", "changed")[1])
    assert.equal("granted", two:call("handle_info", "changed")[1])
  end)

  it("counts an error as not leading, and says what it was", function()
    theirs.lead "app@one"
    local one = peer "app@one"
    for _ = 1, 2 do
      assert.equal("granted", one:claim()[1])
      one.state.sql, one.right = "SELECT nothing", one.state.sql
      local lost = one:refresh()
      assert.equal("denied", lost[1])
      assert.matches("nothing", lost[7])
      assert.matches("nothing", one:emitted("oracle.oban.query_error").error)
      assert.equal("unknown", one:call("handle_info", "changed")[1])
      one.state.sql = one.right
      assert.equal("granted", one:claim()[1])
      one.state.sql = "SELECT nothing"
      assert.equal("denied", one:call("handle_info", "changed")[1])
      one.state.sql = one.right
    end
  end)

  it("does not know who leads where it cannot ask, and does not lead", function()
    theirs.lead "app@one"
    local elsewhere = peer("app@one", { prefix = "elsewhere" })
    local verdict = elsewhere:claim()
    assert.equal("unknown", verdict[1])
    assert.matches("elsewhere", verdict[2])
    assert.matches("elsewhere", elsewhere:emitted("oracle.oban.query_error").error)
    local silent = peer("app@one", { url = "postgres://crown@127.0.0.1:1/crown", timeout = 0.3 })
    assert.equal("unknown", silent:claim()[1])
    assert.is_truthy(silent:emitted "oracle.oban.query_error")
  end)

  it("has run --once end with 3 where Oban's table is missing: nobody is known to lead", function()
    local result = run { "run", "--once", "--quiet", "--oracle", "oban+" .. server.url .. "?prefix=elsewhere", "x", "true" }
    assert.equal(3, result.code)
    assert.matches('relation "elsewhere.oban_peers" does not exist', result.stderr)
  end)

  it("never writes: reading is all it may", function()
    server:sql "REVOKE ALL ON oban_peers FROM crown"
    server:sql "GRANT SELECT ON oban_peers TO crown"
    theirs.lead "app@one"
    local one = peer "app@one"
    assert.equal("granted", one:claim()[1])
    assert.equal("granted", one:refresh()[1])
    one:abdicate()
    assert.equal("granted", one:claim()[1]) -- Oban leads here still
  end)

  it("reads the table of another prefix and the row of another Oban", function()
    server:sql "CREATE SCHEMA IF NOT EXISTS jobs"
    server:sql "CREATE TABLE jobs.oban_peers (LIKE public.oban_peers)"
    server:sql "GRANT USAGE ON SCHEMA jobs TO crown"
    server:sql "GRANT SELECT ON jobs.oban_peers TO crown"
    server:sql [[INSERT INTO jobs.oban_peers VALUES ('My.Oban', 'n', timezone('UTC', now()),
      timezone('UTC', now()) + interval '30 s')]]
    assert.equal("granted", peer("n", { prefix = "jobs", oban_name = "My.Oban" }):claim()[1])
  end)

  it("follows nobody while an operator's pause of that election stands, and takes no other order", function()
    theirs.lead("one", 600)
    local url = "oban+" .. server.url .. "?check=1"
    local election, admin = Election.new(url, tempdir()), "oban+" .. server:url_for "postgres"
    finally(function() election:destroy() end)
    local one = election:leader "one"
    local other = election:start("one", "run", "--oracle", url, "another", "sleep", "600")
    election:leads(other)
    assert.equal(("'%s' is paused until crown-lua resume\n"):format(election.name),
      election:command(0, "pause", "--oracle", admin, election.name, "--why", "a new disk"))
    election:says(one, 'leadership.lost [^\n]*reason=paused error="paused since [^\n]*: a new disk"')
    eventually(function() return election:count(one) == 0 end, Election.SOON)
    assert.equal(1, election:count(other))
    assert.matches("-  +paused since [^\n]*: a new disk", election:command(0, "info"))
    election:command(0, "resume", "--oracle", admin, election.name)
    election:leads(one)
    assert.matches("handover: with the oracle 'oban_peer' it is Oban that decides which node leads",
      election:command(2, "handover", election.name, "--to", "two"))
  end)

  it("goes on where it may not read orders, and says so once", function()
    theirs.lead("app@one", 600)
    server:sql "CREATE TABLE IF NOT EXISTS crown_oban_orders_v1 (lock_name TEXT PRIMARY KEY, orders TEXT)"
    server:sql "REVOKE ALL ON crown_oban_orders_v1 FROM crown"
    local errors = {}
    crown.on("oracle.error", function(event) errors[#errors + 1] = event.error end)
    finally(function() server:sql "DROP TABLE crown_oban_orders_v1" end)
    local one = peer("app@one", { check = 0.1 })
    for _ = 1, 3 do assert.equal("granted", one:claim()[1]) end
    eventually(function() return errors[1] end)
    assert.matches("^operators' orders cannot be read here, and are not obeyed until they can: .*permission denied", errors[1])
    local checked = run { "check", "--store", "--oracle", "oban+" .. server.url, "run", "x", "true" }
    assert.matches("warning +crown may not SELECT \"public\".crown_oban_orders_v1, which operators' orders need", checked.stdout)
    assert.equal(1, #errors)
  end)

  it("shows no TTL of ours in info: Oban's is Oban's to say", function()
    theirs.lead("app@one", 45)
    local told = crown.json.decode(run({ "info", "--oracle", "oban+" .. server.url .. "?ttl=600", "--json" }).stdout)
    assert.is_nil(told.ttl)
    assert.same({}, told.warnings)
    assert.matches("^Oban's interval", told.store.max_time)
    assert.is_true(told.elections[1].expires_in > 30)
  end)

  it("lists Oban's leaders for info, by an oban+postgres URL", function()
    theirs.lead "app@one"
    local result = run { "info", "--oracle", "oban+" .. server.url, "--json" }
    assert.equal(0, result.code)
    local election = crown.json.decode(result.stdout).elections[1]
    assert.same({ "Oban", "app@one" }, { election.name, election.node })
  end)
end)
