-- Who is next in a queue of etcd leads as soon as it hears that the leader has gone, where what it knows is enough for that.
local core = require "crown.core"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Players = require "support.etcd_players"

local TTL = 600 -- so that nothing is asked just because the time has come
local PAST = 9 -- where a verdict has for how long the lease had counted

local overhear = Players.overhear
local server = Etcd.start():trusted()

describe("who is next in a queue of etcd", function()
  local _, candidate = Players.of_each_test(function() return server.url end, TTL)

  -- Its lease was kept since it saw that it is next.
  local function is_ready(two)
    local place, session = two.state.place, two.state.session
    return place.next and place.next < session.from
  end

  -- @return a leader, and a follower that is ready to take over
  local function pair(options)
    local one, two = candidate "one", candidate("two", options)
    one:win()
    assert.equal("denied", two:claim()[1])
    eventually(function() return is_ready(two) end, 20)
    return one, two
  end

  local function looks(two)
    eventually(function() return two:message() == "look" end, 20)
    return two:call("handle_info", "look")
  end

  it("leads without a question when the leader has gone, from when its lease was kept, and has that kept again", function()
    local one, two = pair()
    local session, count = two.state.session, overhear(two)
    local epoch = one.state.epoch
    one:abdicate()
    eventually(function() return two:message() == "look" end, 20)
    local kept, before, asked = session.from, core.now(), next(count)
    local verdict = two:call("handle_info", "look")
    assert.same({ "granted", TTL }, { verdict[1], verdict[3] })
    assert.is_nil(asked)
    assert.is_true(before - kept <= verdict[PAST] and verdict[PAST] <= core.now() - kept)
    assert.is_true(verdict[2] + verdict[PAST] <= session.delay)
    assert.is_true(verdict[4] > epoch)
    eventually(function() return session.from > kept end, 20)
    assert.equal("granted", two:refresh()[1])
  end)

  it("loses what it has won so where its lease turns out to have ended", function()
    local one, two = pair()
    local function ended(path, answer, ...)
      if path == "/v3/lease/keepalive" and two.state.place.leading then answer = { ID = answer.ID } end
      return answer, ...
    end
    overhear(two, ended)
    one:abdicate()
    assert.equal("granted", looks(two)[1])
    assert.equal("denied", looks(two)[1])
  end)

  it("asks where its lease was kept before it saw that", function()
    local one, two = candidate "one", candidate "two"
    one:win()
    assert.equal("denied", two:claim()[1])
    local place, session = two.state.place, two.state.session
    eventually(function() return is_ready(two) end, 20)
    place.next = core.now()
    assert.is_true(place.next > session.from)
    local count = overhear(two)
    one:abdicate()
    local verdict = looks(two)
    assert.same({ "granted", nil, true }, { verdict[1], verdict[PAST], count["/v3/lease/keepalive"] ~= nil })
  end)

  it("asks where its lease was kept for longer than a leader goes without", function()
    local one, two = pair { refresh = 0.5 }
    overhear(two, function(path, answer, problem, code)
      if path == "/v3/lease/keepalive" then return nil, "cut off", "closed" end
      return answer, problem, code
    end)
    local kept = two.state.session.from
    eventually(function() return core.now() - kept > 0.5 end, 20)
    one:abdicate()
    assert.same({ "unknown", "cut off" }, looks(two))
  end)

  it("asks where etcd has begun to count its leases anew since it saw that", function()
    local one, two = pair()
    local session = two.state.session
    local memory = session.memory
    function memory.look(self)
      memory.look = nil
      return self:look(), true
    end
    assert(session.claims:ask())
    assert.is_false(is_ready(two) or false)
    local count = overhear(two)
    one:abdicate()
    local verdict = looks(two)
    assert.same({ "granted", nil, 1 }, { verdict[1], verdict[PAST], count["/v3/kv/txn"] })
  end)

  it("asks where another one stood between it and the leader", function()
    local one, two, three = candidate "one", candidate "two", candidate "three"
    one:win()
    assert.equal("denied", two:claim()[1])
    assert.equal("denied", three:claim()[1])
    local session = three.state.session
    local kept = session.from
    session.claims:ask()
    assert.is_true(session.from > kept)
    two:abdicate()
    assert.equal("denied", looks(three)[1])
    eventually(function() return is_ready(three) end, 20) -- now only the leader is before it
    one:abdicate()
    assert.is_truthy(looks(three)[PAST])
  end)
end)

teardown(function() server:destroy() end)
