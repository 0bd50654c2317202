-- What the leader's half and a member do in an order of things that hardly ever comes about: pure, each effect by hand.
local Authority = require "crown.registry.authority"
local candidate = require "crown.registry.candidate"
local elector = require "crown.registry.elector"
local exchange = require "crown.registry.exchange"
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

  it("does not count what a follower held in another term", function()
    ask { node = "b" }
    term:held("r@b", EPOCH - 1, 100)
    assert.same({}, commits)
  end)

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

describe("a leader with many writes that come to count at once", function()
  it("answers some of them in each turn, all in their order", function()
    local commits, later, answered = {}, {}, {}
    local function ignore() end
    local term = Authority.new({ epoch = EPOCH, replica = Replica.new(), replicas = 1, replicate_timeout = 1, most = 1000 },
      MEMBERS, { now = function() return 0 end, acting = function() return true end, soon = ignore, send = ignore,
        after = function(_, fn) later[#later + 1] = fn end, waiting = function() return 0 end, emit = ignore,
        commit = function(_, done) commits[#commits + 1] = done end })
    local function ask(i)
      term:write("r@b", { what = "register", name = "n" .. i, token = "tb", value = "1" }, function(result)
        assert.is_true(result.ok)
        answered[#answered + 1] = i
      end)
    end
    for _, other in ipairs { "r@b", "r@c" } do term:linked(other) end
    ask(1)
    commits[1](true)
    for i = 2, 500 do ask(i) end
    commits[2](true)
    local at_first = #answered
    commits[3](true)
    assert.is_true(#answered > at_first and #answered - at_first <= 100)
    while #answered < 500 do
      local before, now = #answered, later
      later = {}
      for _, fn in ipairs(now) do fn() end
      assert.is_true(#answered > before and #answered - before <= 100)
    end
    for i = 1, 500 do assert.equal(i, answered[i]) end
  end)
end)

describe("a leader that loses members", function()
  local commits, events, term, clock, later

  local function ignore() end

  local function start(strict, members)
    commits, events, clock, later = {}, {}, 0, {}
    term = Authority.new({ epoch = EPOCH, replica = Replica.new(), replicas = 2, replicate_timeout = 1, strict = strict,
      most = 100 }, members, { now = function() return clock end, acting = function() return true end, soon = ignore,
        after = function(_, fn) later[#later + 1] = fn end, send = ignore, waiting = function() return 0 end,
        emit = function(event, fields) events[#events + 1] = { event = event, reason = fields.reason } end,
        commit = function(seq, done)
          commits[#commits + 1] = seq
          done(true)
        end })
  end

  local function ask()
    local told = {}
    term:write("r@a", { what = "register", name = "printer", token = "ta", value = "1" },
      function(result) told.result = result end)
    return told
  end

  local TWO, ONE = { ["r@a"] = { token = "ta" }, ["r@b"] = { token = "tb" } }, { ["r@a"] = { token = "ta" } }

  it("acknowledges nothing with one copy where it is strict", function()
    start(true, TWO)
    term:linked "r@b"
    term:held("r@b", EPOCH, 0)
    local told = ask()
    term:set_members(ONE)
    assert.same({ 0 }, commits)
    assert.is_nil(told.result)
    clock = 2
    for _, fn in ipairs(later) do fn() end
    assert.equal("uncertain", told.result.code)
  end)

  it("acknowledges with one copy where it is not, and says so", function()
    start(false, TWO)
    term:linked "r@b"
    term:held("r@b", EPOCH, 0)
    local told = ask()
    assert.is_nil(told.result)
    term:set_members(ONE)
    assert.is_true(told.result.ok)
    assert.same({ { event = "oracle.registry.degraded", reason = "the registry has 1 member" } }, events)
  end)

  it("counts no copy of somebody who is a member no more, though the link is still there", function()
    start(false, MEMBERS)
    term:linked "r@b"
    term:linked "r@c"
    term:set_members(TWO)
    local told = ask()
    term:held("r@c", EPOCH, 1)
    assert.same({}, commits)
    assert.is_nil(told.result)
    term:held("r@b", EPOCH, 1)
    assert.is_true(told.result.ok)
  end)

  it("drops the names of whoever is a member no more", function()
    start(false, TWO)
    term:linked "r@b"
    term:write("r@b", { what = "register", name = "scanner", token = "tb", value = "1" }, ignore)
    ask()
    term:set_members(ONE)
    assert.is_nil((term.replica:find "scanner"))
    assert.equal("1", (term.replica:find "printer"))
  end)

  it("does not count links to them towards the majority", function()
    local five = { ["r@d"] = { token = "td" }, ["r@e"] = { token = "te" } }
    for id, one in pairs(MEMBERS) do five[id] = one end
    start(false, five)
    for _, id in ipairs { "r@b", "r@c" } do term:linked(id) end
    assert.is_false(term:is_minority())
    five = { ["r@a"] = five["r@a"], ["r@c"] = five["r@c"], ["r@d"] = five["r@d"], ["r@e"] = five["r@e"],
      ["r@f"] = { token = "tf" } }
    term:set_members(five)
    assert.is_true(term:is_minority())
    assert.matches("reaches 2 of 5", ask().result.retry)
  end)
end)

describe("a member", function()
  local asked, events, told_last, peers, beat, clock, hints, later, acts

  local function ignore() end

  -- One whose join has been taken by the store.
  local function start()
    asked, events, peers, beat, clock, hints, later, acts = {}, {}, nil, nil, 0, {}, {}, false
    local member = Member.new({ registry = "r", node = "a", runtime = "x", address = "a:1", ttl = 5, replicas = 2,
      replicate_timeout = 1, snapshot_timeout = 1, most = 100 },
      { now = function() return clock end, random = function() return 0.5 end, soon = ignore, send = ignore,
        told = function(what) hints[what] = (hints[what] or 0) + 1 end,
        after = function(seconds, fn) if seconds == 5 / 3 then beat = fn else later[#later + 1] = fn end end,
        links = function(wanted) peers = wanted end,
        emit = function(event, fields) events[#events + 1], told_last = { event, fields.error }, fields end,
        acting = function() return acts end, wanting = ignore, fresh = function() return "ta" end,
        number = function(last) return last + 1 end,
        ask = function(op, args, done) asked[#asked + 1] = { op = op, args = args, done = done } end })
    member:start()
    asked[1].done(1)
    return member
  end

  local function view(version, members, fields)
    local made = { version = version, epoch = 1, assumed = 1, members = members, now = version, locked = 0, committed_epoch = 0,
      committed = 0 }
    for key, value in pairs(fields or {}) do made[key] = value end
    return made
  end

  local other = elector.member_id("b", "r")
  local b = { token = "tb", runtime = "y", address = "b:1", expires_at = 100 }

  it("does not go back to what the store said before, when answers overtake each other", function()
    local member = start()
    local mine = { token = "ta", runtime = "x", address = "a:1", expires_at = 100 }
    asked[2].done(view(1, { [member.id] = mine }))
    member:heartbeat()
    member:wake()
    assert.same({ "enqueue", "read", "heartbeat", "read" }, { asked[1].op, asked[2].op, asked[3].op, asked[4].op })
    asked[4].done(view(3, { [member.id] = mine, [other] = b }))
    asked[3].done(view(2, { [member.id] = mine }))
    assert.equal(3, member.view.version)
    assert.is_table(member.view.members[other])
  end)

  it("takes nothing over in an epoch in which it has let go, has that processed, and says so again until it is", function()
    local member = start()
    local mine = { token = "ta", runtime = "x", address = "a:1", expires_at = 100 }
    local chosen = { leader = member.id, leader_token = "ta", epoch = 2, committed_epoch = 1, committed = 7 }
    member.linked[other] = true
    asked[2].done(view(1, { [member.id] = mine, [other] = b }, chosen))
    assert.is_table(member.changeover)
    member:abdicate()
    assert.equal("abdicate", asked[3].args.messages[1].kind)
    local stored = chosen
    stored.head = { number = 9, message = asked[3].args.messages[1] }
    asked[3].done(9)
    asked[4].done(view(2, { [member.id] = mine, [other] = b }, stored))
    assert.is_nil(member.changeover)
    assert.equal("decide", asked[5].op)
    assert.is_nil(asked[5].args.state.members[other].aside)
    assert.equal(other, asked[5].args.state.leader)
    for i = 3, #asked do assert.not_equal("assume", asked[i].op) end
    -- The store had not taken it after all.
    stored.head = nil
    local count = #asked
    clock = 1
    member:see(view(3, { [member.id] = mine, [other] = b }, stored))
    beat()
    clock = 4
    beat()
    local again
    for i = count + 1, #asked do again = again or asked[i].op == "enqueue" and asked[i].args.messages[1].kind == "abdicate" end
    assert.is_true(again)
  end)

  local mine = { token = "ta", runtime = "x", address = "a:1", expires_at = 100 }

  local function count_asked(op, kind)
    local found = 0
    for _, one in ipairs(asked) do
      if one.op == op and (not kind or one.args.messages[1].kind == kind) then found = found + 1 end
    end
    return found
  end

  local function gave_way()
    local found = 0
    for _, event in ipairs(events) do found = found + (event[1] == "oracle.registry.gave_way" and 1 or 0) end
    return found
  end

  -- One that leads in epoch 2, of these members besides itself.
  local function start_leading(others)
    local member, members = start(), others
    local chosen = { leader = member.id, leader_token = "ta", epoch = 2 }
    asked[2].done(view(1, { [member.id] = mine }, chosen))
    assert.equal("assume", asked[3].op)
    members[member.id], chosen.assumed, acts = mine, 2, true
    asked[3].done(view(2, members, chosen))
    assert.is_true(member:able())
    return member
  end

  it("gives way after a TTL in which it led and reached less than half of the members", function()
    start_leading { [other] = b, ["r@c"] = b }
    beat()
    clock = 4.9
    beat()
    assert.same({ 0, nil }, { gave_way(), hints.evict })
    clock = 5
    beat()
    assert.same({ 1, 1, 0 }, { gave_way(), hints.evict, count_asked("enqueue", "abdicate") })
    assert.same({ reason = "it reaches 1 of 3 members", epoch = 2, seconds = 5, late = 3.233 }, told_last)
    clock, acts = 10, false
    beat()
    assert.equal(1, count_asked("enqueue", "abdicate"))
  end)

  it("gives way after a TTL in which it led and less than half of the members had a link to it", function()
    local member = start_leading { [other] = b, ["r@c"] = b }
    for _, id in ipairs { other, "r@c" } do member:link_up(id) end
    member:dialled(other, true)
    beat()
    clock = 5
    beat()
    assert.equal(0, gave_way())
    member:dialled(other, false)
    beat()
    clock = 10
    beat()
    assert.same({ 1, 1 }, { gave_way(), hints.evict })
    assert.equal("1 of 3 members reach it", told_last.reason)
  end)

  it("does not give way where it was reached between two looks", function()
    local member = start_leading { [other] = b, ["r@c"] = b }
    for _, id in ipairs { other, "r@c" } do member:link_up(id) end
    beat()
    clock = 2
    member:dialled(other, true)
    member:dialled(other, false)
    clock = 5
    beat()
    assert.equal(0, gave_way())
    member:link_down(other)
    member:link_down "r@c"
    member:dialled(other, true)
    clock = 7
    member:link_up "r@c"
    member:link_down "r@c"
    clock = 10
    beat()
    assert.equal(0, gave_way())
    clock = 15
    beat()
    assert.same({ 1, "it reaches 1 of 3 members" }, { gave_way(), told_last.reason })
  end)

  it("gives way after a TTL in which it was chosen and has not come by the names", function()
    local member = start()
    member.linked[other] = true
    asked[2].done(view(1, { [member.id] = mine, [other] = b },
      { leader = member.id, leader_token = "ta", epoch = 2, committed_epoch = 1, committed = 7 }))
    beat()
    clock = 4.9
    beat()
    assert.equal(0, count_asked("enqueue", "abdicate"))
    clock = 5
    beat()
    assert.same({ 1, 1 }, { gave_way(), count_asked("enqueue", "abdicate") })
    assert.is_nil(member.changeover)
  end)

  it("does not give way while a copy of the names comes", function()
    local member = start()
    member.linked[other] = true
    asked[2].done(view(1, { [member.id] = mine, [other] = b },
      { leader = member.id, leader_token = "ta", epoch = 2, committed_epoch = 1, committed = 7 }))
    assert.is_true(exchange.answered(member, other, { kind = "position", epoch = 2, at = { epoch = 1, seq = 7 } }))
    beat()
    clock = 4
    assert.is_true(exchange.answered(member, other, { kind = "copy", term = 2, epoch = 1, seq = 7, part = 1, last = false, names = {} }))
    clock = 5
    beat()
    assert.equal(0, gave_way())
    clock = 10
    beat()
    assert.equal(1, gave_way())
  end)

  -- Some of them change the copy of the names under a leader that does not know yet that it is none.
  local OF_A_LEADER = { { kind = "seek", says = "position" }, { kind = "fetch", says = "copy" },
    { kind = "resume", from = { epoch = 9, seq = 9 }, says = "gap" }, { kind = "append", first = 1, changes = {}, says = "gap" },
    { kind = "snapshot", seq = 0, part = 1, last = true, names = {}, says = "held" } }
  for _, message in ipairs(OF_A_LEADER) do
    it(("takes and answers nothing as a leader any more, once another one says %s under a later epoch"):format(message.kind),
      function()
        local member, answer, said = start_leading { [other] = b }, nil, {}
        local function hear(epoch)
          said = {}
          message.epoch = epoch
          assert.is_true(exchange.receive(member, other, message, function(one) said[#said + 1] = one.kind end))
        end
        member.authority:write(member.id, { what = "register", name = "n", token = "ta", value = "1" },
          function(result) answer = result end)
        assert.is_nil(answer)
        hear(1)
        assert.same({ "stale" }, said)
        assert.is_table(member.authority)
        hear(3)
        assert.same({ message.says }, said)
        assert.is_string(answer.retry)
        assert.is_nil(member.authority)
      end)
  end

  for outcome, reports in pairs { ["somebody else has"] = 0, ["nobody has"] = 1 } do
    it(("reports a member that is gone when its turn has come and %s"):format(outcome), function()
      local member = start()
      local gone = { token = "tb", runtime = "y", address = "b:1", expires_at = 0 }
      asked[2].done(view(1, { [member.id] = mine, [other] = gone }))
      assert.equal(0, count_asked("enqueue", "member_down"))
      clock = 1
      later[#later]()
      asked[#asked].done(view(2, { [member.id] = mine, [other] = reports == 1 and gone or nil }))
      assert.equal(reports, count_asked("enqueue", "member_down"))
    end)
  end

  it("processes the join of its own after all others could have", function()
    local member = start()
    local join = { kind = "join", id = member.id, token = "ta", runtime = "x", number = 1, address = "a:1", ttl = 5 }
    local head = { head = { number = 1, message = join } }
    asked[2].done(view(1, { [other] = b }, head))
    clock = 0.0051 -- its draw is one half of what each has
    later[#later]()
    asked[#asked].done(view(1, { [other] = b }, head))
    assert.equal(0, count_asked "decide")
    clock = 0.0101
    later[#later]()
    asked[#asked].done(view(1, { [other] = b }, head))
    assert.equal(1, count_asked "decide")
  end)

  it("takes no answer to what it asked before it joined", function()
    local member = start()
    local told = {}
    member.own:write({ what = "register", name = "n", value = "1" }, 5, function(...) told[#told + 1] = { ... } end)
    local before = next(member.own.writes.waiting)
    asked[2].done(view(1, { [member.id] = { token = "ta", runtime = "x", address = "a:1", expires_at = 100 } }))
    member.own.writes:answered(before, { ok = true })
    assert.same({}, told)
    member.own.writes:answered(next(member.own.writes.waiting), { ok = true })
    assert.same({ { true } }, told)
  end)

  it("does not join again once it leaves", function()
    local member = start()
    asked[2].done(view(1, { [member.id] = { token = "ta", runtime = "x", address = "a:1", expires_at = 100 }, [other] = b }))
    candidate.abdicate(member, true, ignore)
    local count = #asked
    assert.equal("member_down", asked[count].args.messages[1].kind)
    asked[count].done(2)
    member:see(view(2, { [other] = b }))
    clock = 4
    beat()
    member:ensure()
    for i = count + 1, #asked do
      assert.is_true(asked[i].op ~= "enqueue" or asked[i].args.messages[1].kind ~= "join")
    end
  end)

  it("dials nobody before it has joined, and learns from what is stored why it was refused", function()
    local member = start()
    local twin = { token = "tt", runtime = "of another", address = "a:2", expires_at = 100 }
    asked[2].done(view(1, { [member.id] = twin, [other] = b }, { head = { number = 1, message = {} }, locked = 1 }))
    assert.same({}, peers)
    assert.same({}, events)
    member:wake()
    asked[3].done(view(2, { [member.id] = twin, [other] = b }))
    assert.same({}, peers)
    assert.same({ { "oracle.error", elector.TAKEN } }, events)
  end)
end)
