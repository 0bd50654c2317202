-- What somebody does to a register in Postgres while candidates run: the row, the clock, the table and the server. Never do two lead,
-- and a restart costs no term.
local crown = require "crown"
local driven = require "crown.oracle.driven"
local eventually = require("crown.testing").eventually
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local WrongClock = require "support.wrong_clock"

local TTL = 6

local serial = 0

describe("a register in Postgres that is hurt", function()
  local server, clock, oracle, name

  setup(function()
    clock = WrongClock.new(0)
    server = Postgres.start { clock = clock }
  end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial = serial + 1
    name, oracle = "hurt-" .. serial, driven.oracle(require "crown.stores.postgres")
    clock:set(0)
  end)

  local function candidate(node, more)
    local given = { name = name, node = node, url = server.url, ttl = TTL, amnesia_wait = 0 }
    for key, value in pairs(more or {}) do given[key] = value end
    return Player.new(oracle, given)
  end

  -- A leader, and a follower that has seen it.
  local function leader_and_follower()
    local one, two = candidate "one", candidate "two"
    local won = one:win()
    assert.equal("denied", two:claim()[1])
    return one, two, won[4]
  end

  -- The leader leads on, and nobody else comes.
  local function leads_on(one, two, epoch)
    for _, other in ipairs { two, candidate "new" } do assert.equal("denied", other:answered("claim")[1]) end
    local verdict = one:answered "refresh"
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    assert.equal("denied", two:answered("claim")[1])
  end

  local function goes_on_after(act)
    local one, two, epoch = leader_and_follower()
    act(one)
    leads_on(one, two, epoch)
    one:abdicate()
    return two
  end

  for what, value in pairs { ["long ago"] = "'epoch'", ["for ever"] = "'infinity'", ["since ever"] = "'-infinity'" } do
    it("leads on where somebody says that its lease ends " .. what, function()
      goes_on_after(function()
        server:sql("UPDATE crown_lease_v1 SET expires_at = " .. value .. " WHERE lock_name = $1", name)
      end)
    end)
  end

  for what, steps in pairs { ["set back and put right"] = { -3600, 0 }, ["stepped forward"] = { 3600 },
    ["stepped forward and put right"] = { 3600, 0 } } do
    it("leads on while the server's clock is " .. what, function()
      goes_on_after(function(one)
        for _, seconds in ipairs(steps) do
          clock:set(seconds)
          assert.equal("granted", one:answered("refresh")[1])
        end
      end)
    end)
  end

  it("has no second leader where a row is deleted past the triggers", function()
    local one, two = leader_and_follower()
    server:sql "SET session_replication_role = replica"
    server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name)
    server:sql "RESET session_replication_role"
    assert.equal("denied", two:answered("claim")[1])
    local verdict = one:answered "refresh"
    assert.is_true(verdict[1] ~= "granted" or two:answered("claim")[1] == "denied")
  end)

  it("gives a table that was dropped and made anew to nobody, newcomers included", function()
    local _, two = leader_and_follower()
    server:sql "DROP TABLE crown_lease_v1"
    for _, other in ipairs { two, candidate "new" } do
      local verdict = other:answered "claim"
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
    end
  end)

  local function restored(change)
    local one, two = leader_and_follower()
    one:abdicate()
    if change then candidate("old"):win() end
    server:sql "CHECKPOINT"
    server:down "fast"
    local restore = server:backup()
    server:up()
    eventually(function() return candidate("one"):claim()[1] ~= "unknown" end, 20)
    server:down "immediate"
    restore()
    server:up()
    return two
  end

  it("is not given away at once where an older state is put back, in which nobody leads or another one does", function()
    for _, another in ipairs { false, true } do
      serial = serial + 1
      name = "hurt-" .. serial
      local two = restored(another)
      assert.equal("denied", two:answered("claim")[1])
      assert.equal("denied", candidate("new"):answered("claim")[1])
    end
  end)

  it("costs none of a hundred terms a restart (S9)", function()
    local many, leaders, epochs = 100, {}, {}
    local function each(fn) -- all at once
      local left = many
      for i = 1, many do
        crown.spawn(function()
          fn(i)
          left = left - 1
        end)
      end
      eventually(function() return left == 0 end, 40)
    end
    local base = name
    for i = 1, many do
      name = ("%s-%d"):format(base, i)
      leaders[i] = candidate("one", { token = "one", ttl = 20 })
    end
    each(function(i) epochs[i] = leaders[i]:win()[4] end)
    server:down "fast"
    server:up()
    each(function(i)
      local verdict = leaders[i]:answered("refresh")
      assert.same({ "granted", epochs[i] }, { verdict[1], verdict[4] })
    end)
    each(function(i) leaders[i]:abdicate() end)
  end)
end)
