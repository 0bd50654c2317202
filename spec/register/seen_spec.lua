-- What was seen of a name, and since when.
local Seen = require "crown.register.seen"

local function record(serial, more)
  return ('{"v":1,"serial":%d%s}'):format(serial, more or ',"epoch":3')
end

describe("what a runtime has seen", function()
  local now, seen, entry

  before_each(function()
    now = 100
    seen = Seen.new(function() return now end)
    entry = seen:of "a"
  end)

  local function note(text, version, sent, more)
    local answer = { text = text, version = version, memory = "m" }
    for key, value in pairs(more or {}) do answer[key] = value end
    return assert(seen:note(more and more.entry or entry, answer, sent or now))
  end

  it("has one entry for a name as long as somebody holds it", function()
    assert.equal(entry, seen:of "a")
    assert.are_not.equal(entry, seen:of "b")
    assert.same({ "a", -1, 0 }, { entry.name, entry.serial, entry.epoch })
    collectgarbage()
    assert.is_nil(rawget(seen.entries, "b"))
  end)

  it("stands from the answer that first showed it to the sending of the look that still finds it (S2)", function()
    local text = record(1)
    now = 105
    assert.equal(-5, note(text, 1, 100).stood)
    now = 110
    assert.equal(3, note(text, 1, 108).stood)
    now = 120
    assert.equal(-1, note(text, 2, 119).stood)
    now = 130
    assert.equal(-1, note(record(2), 2, 129).stood)
    now = 140
    assert.equal(0, note(record(2), 2, 140, { memory = "another" }).stood)
    now = 150
    assert.equal(9, note(record(2), 2, 149, { memory = "another" }).stood)
  end)

  it("stands from when it was missing", function()
    note(false, false)
    now = 104
    local found = note(false, false)
    assert.same({ false, 4, -1, 0 }, { found.record, found.stood, found.serial, found.epoch })
  end)

  it("goes back with a lower serial or epoch than was seen or written", function()
    note(record(5, ',"epoch":7'), 1)
    assert.is_falsy(note(record(5, ',"epoch":7'), 2).back)
    assert.is_true(note(record(4, ',"epoch":7'), 3).back)
    assert.is_true(note(record(6, ',"epoch":6'), 4).back)
    assert.is_falsy(note(record(6, ',"epoch":8'), 5).back)
    seen:learn(entry, { serial = 20, epoch = 9 })
    local found = note(record(19, ',"epoch":9'), 6)
    assert.same({ true, 20, 9 }, { found.back, found.serial, found.epoch })
    assert.is_false(note(false, false).back)
  end)

  it("is told as it was before this answer", function()
    note(record(5, ',"epoch":7'), 1)
    local found = note(record(9, ',"epoch":8'), 2)
    assert.same({ 5, 7, 9, 8 }, { found.serial, found.epoch, entry.serial, entry.epoch })
  end)

  it("takes the epoch of a peer for seen", function()
    note(record(5, ',"epoch":7'), 1, now, { peer = { epoch = 30 } })
    assert.equal(30, entry.epoch)
    note(false, 2, now, { peer = { epoch = 20 } })
    assert.equal(30, entry.epoch)
  end)

  it("knows the longest TTL of all sessions and stores", function()
    local session, store = seen:of "@t", seen:of "@store"
    note(record(1, ',"ttl":12,"at":1'), 1, now, { entry = session })
    assert.equal(12, seen.longest)
    note(record(1, ',"longest":30'), 1, now, { entry = store })
    note(record(2, ',"ttl":20,"at":1'), 2, now, { entry = session })
    assert.equal(30, seen.longest)
    seen:learn(session, { serial = 3, ttl = 40 })
    assert.equal(40, seen.longest)
  end)

  it("tells whether a session was renewed before our eyes (S12)", function()
    local session = seen:of "@t"
    local function at(serial) return note(record(serial, ',"ttl":12,"at":1'), serial, now, { entry = session }).renewed end
    assert.is_nil(at(1))
    assert.is_nil(at(1))
    assert.is_true(at(2))
    assert.is_true(at(2))
    assert.same({ 2, 12 }, { session.found.serial, session.found.ttl })
  end)

  it("has no record of what is none, and learns nothing of it", function()
    note(record(5), 1)
    now = 110
    local found, problem = seen:note(entry, { text = "nonsense", version = 2, memory = "m" }, now)
    assert.is_nil(found)
    assert.matches("^'a': the store's value is not a record of an election: \"nonsense\"; is this the right store%? If so, stop", problem)
    assert.equal(10, note(record(5), 1).stood)
  end)
end)
