-- Who wants to hear of names that change hears of each, whatever the way on which they do.
local Changes = require "crown.registry.changes"
local Member = require "crown.registry.member"
local Replica = require "crown.registry.replica"
local Watch = require "crown.registry.watch"

describe("a watch on a copy of the names", function()
  local function watched()
    local woken = { count = 0 }
    local changes = Changes.new(function() woken.count = woken.count + 1 end)
    return Replica.new { changes }, changes, woken
  end

  local function all(changes)
    local found, names = {}, changes:take(10)
    while names do
      for _, name in ipairs(names) do found[#found + 1] = name end
      names = changes:take(10)
    end
    table.sort(found)
    return found
  end

  local function fill(replica, owner, from, to, value)
    for i = from, to do replica:apply { "+", "n" .. i, owner, "t", value or "1" } end
  end

  it("tells of what is registered, changed and given up, once however often it was, and wakes once", function()
    local replica, changes, woken = watched()
    fill(replica, "r@a", 1, 2)
    replica:apply { "+", "n1", "r@a", "t", "2" }
    replica:apply { "-", "n2" }
    replica:apply { "-", "nobody's" }
    assert.equal(1, woken.count)
    assert.same({ "n1", "n2" }, all(changes))
    replica:apply { "-", "n1" }
    assert.equal(2, woken.count)
    assert.same({ "n1" }, all(changes))
  end)

  it("tells of the names of an owner who is gone", function()
    local replica, changes = watched()
    fill(replica, "r@a", 1, 3)
    replica:apply { "+", "n4", "r@b", "t", "1" }
    all(changes)
    replica:apply { "x", "r@a", "t" }
    replica:apply { "+", "n2", "r@b", "t", "1" }
    while replica:sweep(1) do end
    assert.same({ "n1", "n2", "n3" }, all(changes))
  end)

  local function adopt(replica, other)
    local walk, seq = other:walk(), 0
    repeat
      local part = other:part(walk, { epoch = 2, seq = seq })
      replica:gather(part, "r@x")
    until part.last
    replica:adopt()
  end

  it("tells of what is another in a copy that is taken whole, also while changes go on and another one is taken", function()
    local replica, changes = watched()
    fill(replica, "r@a", 1, 3000)
    all(changes)
    local other = Replica.new()
    fill(other, "r@a", 2, 3000)
    fill(other, "r@a", 3001, 3002)
    other:apply { "+", "n7", "r@a", "t", "7" }
    other:apply { "+", "n8", "r@b", "t", "1" }
    adopt(replica, other)
    changes:take(10)
    replica:apply { "+", "n3000", "r@a", "t", "9" }
    fill(other, "r@b", 9, 9)
    adopt(replica, other)
    local found, seen = {}, {}
    for _, name in ipairs(all(changes)) do -- some more than once
      if not seen[name] then found[#found + 1] = name end
      seen[name] = true
    end
    assert.same({ "n1", "n3000", "n3001", "n3002", "n7", "n8", "n9" }, found)
  end)

  it("lets go in steps of the copy that was there before, when all who watch have compared it", function()
    local replica, changes = watched()
    local others = Changes.new(function() end)
    table.insert(replica.watchers, others)
    fill(replica, "r@a", 1, 3000)
    all(changes)
    local old = replica.names
    adopt(replica, Replica.new())
    all(changes)
    assert.is_false(replica:sweep(1000))
    assert.equal(3000, old:places())
    all(others)
    assert.is_true(replica:sweep(1000))
    assert.equal(2000, old:places())
    while replica:sweep(1000) do end
    assert.equal(0, old:places())
  end)

  it("lets go of it also when one who watches ends before he has compared it", function()
    local replica, changes = watched()
    local other = Watch.new(function() end, function() end, function() end)
    other.replica = replica
    table.insert(replica.watchers, other.changes)
    fill(replica, "r@a", 1, 3000)
    all(changes)
    local old = replica.names
    adopt(replica, Replica.new())
    all(changes)
    other:cancel()
    assert.is_true(replica:sweep(1000))
    assert.equal(2000, old:places())
  end)

  it("lets go of it in a follower to whom nobody sends anything meanwhile", function()
    local changes, later = Changes.new(function() end), {}
    local function ignore() end
    local member = Member.new({ registry = "r", node = "a", runtime = "x", ttl = 5, watchers = { changes } },
      { now = function() return 0 end, soon = ignore, links = ignore, told = ignore, fresh = ignore,
        after = function(_, fn) later[#later + 1] = fn end })
    fill(member.replica, "r@a", 1, 3000)
    all(changes)
    local old = member.replica.names
    adopt(member.replica, Replica.new())
    all(changes)
    member:see { members = {}, epoch = 1 }
    while later[1] do table.remove(later, 1)() end
    assert.equal(0, old:places())
  end)

  it("tells of who is gone also when another copy is taken before their rows have gone", function()
    local replica, changes = watched()
    fill(replica, "r@a", 1, 3)
    all(changes)
    replica:apply { "x", "r@a", "t" }
    adopt(replica, Replica.new())
    assert.same({ "n1", "n2", "n3" }, all(changes))
  end)
end)
