-- What the leader's half and a member do in an order of things that hardly ever comes about: pure, each effect by hand.
local Authority = require "crown.registry.authority"
local elector = require "crown.registry.elector"
local Member = require "crown.registry.member"
local Replica = require "crown.registry.replica"

local EPOCH = 7
local MEMBERS = { ["r@a"] = { token = "ta" }, ["r@b"] = { token = "tb" }, ["r@c"] = { token = "tc" } }

describe("a leader at the beginning of its term", function()
  local commits, replica, term

  before_each(function()
    commits, replica = {}, Replica.new()
    replica:apply { "+", "printer", "r@b", "tb", "1" }
    local function ignore() end
    term = Authority.new({ epoch = EPOCH, replica = replica, replicas = 2, replicate_timeout = 1, strict = true, most = 100 },
      MEMBERS, { now = function() return 0 end, acting = function() return true end, after = ignore, soon = ignore,
        send = ignore, waiting = function() return 0 end, emit = ignore,
        commit = function(seq, done) commits[#commits + 1] = { seq = seq, done = done } end })
    term:linked "r@b"
    term:linked "r@c"
  end)

  local function ask(op)
    local told = {}
    term:write("r@" .. op.node, { what = op.what or "register", name = "printer", token = "t" .. op.node, value = "1" },
      function(result) told.result = result end)
    return told
  end

  -- The names it took over may be in no other copy: a successor would not know them.
  for answer, op in pairs { yes = { node = "b" }, no = { node = "c" } } do
    it(("says no %s that rests on names that nobody else holds yet"):format(answer), function()
      local told = ask(op)
      assert.same({}, commits)
      assert.is_nil(told.result)
      term:held("r@b", EPOCH, 0)
      assert.equal(0, commits[1].seq)
      assert.is_nil(told.result)
      commits[1].done(true)
      assert.equal(answer == "yes", told.result.ok)
    end)
  end

  it("answers at once when they are committed, and nothing has changed", function()
    term:held("r@b", EPOCH, 0)
    commits[1].done(true)
    assert.is_true(ask({ node = "b" }).result.ok)
    assert.equal(1, #commits)
  end)

  it("asks for everything again when the row is lost, also for what changes nothing", function()
    local told = ask { node = "b" }
    term:held("r@b", EPOCH, 0)
    commits[1].done(false)
    assert.is_string(told.result.retry)
    assert.is_string(ask({ node = "c" }).result.retry)
  end)
end)

describe("a member", function()
  it("does not go back to what the store said before, when answers overtake each other", function()
    local asked = {}
    local function ignore() end
    local member = Member.new({ registry = "r", node = "a", runtime = "x", address = "a:1", ttl = 5, replicas = 2,
      replicate_timeout = 1, snapshot_timeout = 1, most = 100 },
      { now = function() return 0 end, after = ignore, soon = ignore, send = ignore, links = ignore, told = ignore,
        emit = ignore, acting = ignore, wanting = ignore, fresh = function() return "ta" end,
        number = function(last) return last + 1 end,
        ask = function(op, _, done) asked[#asked + 1] = { op = op, done = done } end })
    local function view(version, members)
      return { version = version, epoch = 1, assumed = 1, members = members, now = version, locked = 0, committed_epoch = 0,
        committed = 0 }
    end
    local mine = { token = "ta", address = "a:1", expires_at = 100 }
    member:start()
    asked[1].done(1) -- the join
    asked[2].done(view(1, { [member.id] = mine }))
    member:heartbeat()
    member:wake()
    assert.same({ "enqueue", "read", "heartbeat", "read" }, { asked[1].op, asked[2].op, asked[3].op, asked[4].op })
    local other = elector.member_id("b", "r")
    asked[4].done(view(3, { [member.id] = mine, [other] = { token = "tb", address = "b:1", expires_at = 100 } }))
    asked[3].done(view(2, { [member.id] = mine }))
    assert.equal(3, member.view.version)
    assert.is_table(member.view.members[other])
  end)
end)
