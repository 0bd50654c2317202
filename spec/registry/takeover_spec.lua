-- How a new leader comes by the names, and how a copy of them is made: pure, each effect by hand.
local Changeover = require "crown.registry.changeover"
local Replica = require "crown.registry.replica"

local EPOCH = 7

describe("a change-over", function()
  it("takes the names from whoever has them all, though a member no more", function()
    local sent, events, replica, is_done = {}, {}, Replica.new(), false
    local members = { ["r@a"] = { token = "ta" }, ["r@b"] = { token = "tb" } }
    local change = Changeover.new({ me = "r@a", epoch = EPOCH, replica = replica, members = members,
      committed = { epoch = 6, seq = 1 }, timeout = 1, strict = false }, { ["r@b"] = true, ["r@gone"] = true },
      { now = function() return 0 end, after = function() end, send = function(id, message) sent[#sent + 1] = { id, message.kind } end,
        emit = function(event) events[#events + 1] = event end }, function() is_done = true end)
    change:position("r@b", { epoch = 6, seq = 0 })
    assert.is_false(is_done)
    change:position("r@gone", { epoch = 6, seq = 1 })
    assert.same({ "r@gone", "fetch" }, sent[#sent])
    change:copy("r@gone", { epoch = 6, seq = 1, part = 1, last = true, names = { { "n", "r@b", "tb", "1" } } })
    assert.is_true(is_done)
    assert.same({}, events)
    assert.equal("1", (replica:find "n"))
  end)

  it("waits for a copy that comes slowly, as long as it comes", function()
    local limits, replica, is_done, fetches = {}, Replica.new(), false, 0
    local change = Changeover.new({ me = "r@a", epoch = EPOCH, replica = replica,
      members = { ["r@a"] = {}, ["r@b"] = {} }, committed = { epoch = 6, seq = 1 }, timeout = 1 }, { ["r@b"] = true },
      { now = function() return 0 end, after = function(_, fn) limits[#limits + 1] = fn end,
        send = function(_, message) if message.kind == "fetch" then fetches = fetches + 1 end end, emit = function() end },
      function() is_done = true end)
    change:position("r@b", { epoch = 6, seq = 1 })
    for part = 1, 5 do
      change:copy("r@b", { epoch = 6, seq = 1, part = part, last = part == 5, names = { { "n" .. part, "r@b", "tb", "1" } } })
      if part < 5 then table.remove(limits)() end
    end
    assert.equal(1, fetches)
    assert.is_true(is_done)
    assert.equal(5, replica:count())
  end)
end)

describe("a copy of the names", function()
  it("is whole with the changes that come between its parts", function()
    local from, to = Replica.new(), Replica.new()
    for i = 1, 5 * Replica.PART_ROWS do from:apply { "+", "n" .. i, "r@a", "ta", "1" } end
    from.at = { epoch = 3, seq = 0 }
    local walk = from:walk()
    local function change(what)
      from:apply(what)
      from.at.seq = from.at.seq + 1
      assert.is_nil(to:follow(3, from.at.seq, { what }))
    end
    repeat
      local part = from:part(walk, { epoch = 3, seq = from.at.seq })
      assert.equal(part.last, to:gather(part, "r@a"))
      if not part.last then
        change { "-", "n" .. part.part }
        change { "+", "n" .. from.names:places(), "r@b", "tb", "2" }
        change { "+", "new" .. part.part, "r@b", "tb", "3" }
      end
    until part.last
    to:adopt()
    assert.same(from.at, to.at)
    assert.equal(from:count(), to:count())
    for place = from.names:places(), 1, -1 do
      local name, value, owner, token, gone = from.names:at(place)
      if not gone then assert.same({ value, owner, token }, { unpack({ to:find(name) }, 1, 3) }) end
    end
  end)
end)
