-- What somebody does to a register in MariaDB while candidates run: the server and the tables. Never do two lead, and a restart
-- costs no term.
local crown = require "crown"
local driven = require "crown.oracle.driven"
local eventually = require("crown.testing").eventually
local Mysql = require "support.mysql"
local Player = require "support.oracle_candidate"

local TTL = 6

local serial = 0

describe("a register in MySQL that is hurt", function()
  local server, oracle, name

  setup(function() server = Mysql.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial = serial + 1
    name, oracle = "hurt-" .. serial, driven.oracle(require "crown.stores.mysql")
    server:drop()
  end)

  local function candidate(node, more)
    local given = { name = name, node = node, url = server.url, ttl = TTL, amnesia_wait = 0, trust_empty = true }
    for key, value in pairs(more or {}) do given[key] = value end
    return Player.new(oracle, given)
  end

  local function leader_and_follower()
    local one, two = candidate("one", { ttl = 30 }), candidate "two"
    local won = one:win()
    assert.equal("denied", two:claim()[1])
    return one, two, won[4]
  end

  it("costs no term a crash (S9), and newcomers are denied", function()
    local one, two, epoch = leader_and_follower()
    server:down()
    server:up()
    local verdict = one:answered "refresh"
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    for _, other in ipairs { two, candidate "new" } do assert.equal("denied", other:answered("claim")[1]) end
    one:abdicate()
  end)

  for what, statement in pairs { ["tables that were dropped"] = "DROP TABLE crown.crown_register, crown.crown_register_mark",
    ["tables that were emptied"] = "TRUNCATE crown.crown_register; TRUNCATE crown.crown_register_mark",
    ["a table of records that was emptied"] = "DELETE FROM crown.crown_register" } do
    it("gives " .. what .. " to nobody who has seen the leader", function()
      local one, two = leader_and_follower()
      server:sql(statement)
      assert.equal("denied", two:answered("claim")[1])
      assert.equal("denied", two:answered("claim")[1])
      one:abdicate()
    end)
  end

  it("is not given away at once where older files are put back", function()
    local one, two = leader_and_follower()
    one:abdicate()
    assert.equal("granted", candidate("other"):answered("claim")[1])
    server:down "TERM"
    assert(crown.exec({ "/bin/cp", "-a", server.data, server.dir .. "/backup" }, { timeout = 60 }).code == 0)
    server:up()
    eventually(function() return candidate("two"):claim()[1] ~= "unknown" end, 20)
    server:down()
    assert(crown.exec({ "/bin/sh", "-c", ("rm -rf %s && mv %s %s"):format(server.data, server.dir .. "/backup", server.data) },
      { timeout = 60 }).code == 0)
    server:up()
    assert.equal("denied", two:answered("claim")[1])
    assert.equal("denied", candidate("new"):answered("claim")[1])
  end)
end)
