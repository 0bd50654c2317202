-- A server that ends together with the leader: who takes over need not wait for more than the leader's lease.
local driven = require "crown.oracle.driven"
local eventually = require("crown.testing").eventually
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"

local TTL = 10 -- longer than a server takes to come back on a busy machine
local STANDS = TTL * 1.01 + 0.25

describe("a restart of Postgres under a register", function()
  local server
  local register = driven.oracle(require "crown.stores.postgres")

  local function candidate(node)
    return Player.new(register, { name = "job", node = node, ttl = TTL, amnesia_wait = 0,
      url = ("%s?application_name=%s"):format(server.url, node) })
  end

  before_each(function() server = Postgres.start() end)
  after_each(function() server:destroy() end)

  it("is led on by a leader that lives, in the same epoch", function()
    local one, two = candidate "one", candidate "two"
    local epoch = one:win()[4]
    assert.equal("denied", two:claim()[1])
    server:down "immediate"
    server:up()
    local verdict = one:answered "refresh"
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    verdict = two:answered "claim"
    assert.same({ "denied", "one" }, { verdict[1], verdict[3] })
  end)

  it("costs who follows one TTL where the leader has died, too, and no doubt", function()
    local one, two = candidate "one", candidate "two"
    local epoch = one:win()[4]
    assert.equal("denied", two:claim()[1])
    server:down "immediate"
    server:up()
    for _, player in ipairs { two, candidate "new" } do
      local verdict = player:answered "claim"
      assert.same({ "denied", "one" }, { verdict[1], verdict[3] })
      assert.is_true(verdict[2] <= STANDS)
    end
    local verdict, is_doubted
    eventually(function()
      verdict = two:answered "claim"
      is_doubted = is_doubted or verdict[5]
      return verdict[1] == "granted" or is_doubted
    end, 30)
    assert.is_falsy(is_doubted) -- nothing is taken for lost
    assert.is_true(verdict[4] > epoch)
  end)
end)
