local elector = require "crown.registry.elector"

describe("the elector", function()
  local NOW = 1000
  local number

  before_each(function() number = 0 end)

  local function empty()
    return { members = {}, epoch = 0, assumed = 0, epoch_floor = 0, locked = 0, now = NOW }
  end

  local function join(node, token, fields)
    number = number + 1
    local message = { kind = "join", id = "r@" .. node, token = token, runtime = "runtime of " .. node, number = number,
      address = node .. ":1", ttl = 10 }
    for key, value in pairs(fields or {}) do message[key] = value end
    return message
  end

  -- What comes of several messages, processed by one node.
  local function after(state, winner, ...)
    for _, message in ipairs { ... } do state = assert(elector.decide(state, message, winner, NOW)) end
    return state
  end

  local function down(node, token, fields)
    local message = { kind = "member_down", id = "r@" .. node, token = token }
    for key, value in pairs(fields or {}) do message[key] = value end
    return message
  end

  it("makes the first member the leader, in the first epoch", function()
    local state = after(empty(), "r@a", join("a", "t1"))
    assert.equal("r@a", state.leader)
    assert.equal("t1", state.leader_token)
    assert.equal(1, state.epoch)
    assert.equal(NOW, state.members["r@a"].joined_at)
  end)

  it("keeps the incumbent, whoever joins and whoever processes it", function()
    local state = after(empty(), "r@b", join("b", "t1"), join("a", "t2"), join("c", "t3"))
    assert.equal("r@b", state.leader)
    assert.equal(1, state.epoch)
    assert.equal("r@b", after(state, "r@c", join("d", "t4")).leader)
  end)

  it("prefers the node whose transaction won when there is no incumbent", function()
    local state = after(empty(), "r@b", join("b", "t1"), join("a", "t2"), join("c", "t3"))
    local next_state = after(state, "r@c", down("b", "t1", { left = true }))
    assert.equal("r@c", next_state.leader)
    assert.equal(2, next_state.epoch)
  end)

  it("takes the lowest member id when that node is no member", function()
    local state = after(empty(), "r@b", join("b", "t1"), join("c", "t3"), join("a", "t2"))
    assert.equal("r@a", after(state, "r@z", down("b", "t1", { left = true })).leader)
  end)

  it("drops a member_down whose token is not the stored one", function()
    local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"), join("b", "t3"))
    local changed, why = elector.decide(state, down("b", "t2", { left = true }), "r@a", NOW)
    assert.is_nil(changed)
    assert.matches("stale", why)
    assert.is_nil(after(state, "r@a", down("b", "t3", { left = true })).members["r@b"])
  end)

  it("drops a member_down of somebody who was heard of since", function()
    local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"))
    assert.is_nil((elector.decide(state, down("b", "t2"), "r@a", NOW + 9.9)))
    assert.is_nil(assert(elector.decide(state, down("b", "t2"), "r@a", NOW + 10)).members["r@b"])
  end)

  it("drops a member_down of nobody it knows", function()
    assert.is_nil((elector.decide(empty(), down("b", "t2"), "r@a", NOW)))
  end)

  it("refuses another runtime under a node name that is in use", function()
    local state = after(empty(), "r@a", join("a", "t1"))
    local changed, why = elector.decide(state, join("a", "t2", { runtime = "another" }), "r@a", NOW + 9)
    assert.is_nil(changed)
    assert.matches("another runtime", why)
    assert.is_table((elector.decide(state, join("a", "t2", { runtime = "another" }), "r@a", NOW + 10)))
  end)

  it("refuses an older join of the same runtime that comes late", function()
    local late = join("a", "t1")
    local state = after(empty(), "r@a", join("a", "t2"))
    assert.is_nil((elector.decide(state, late, "r@a", NOW)))
  end)

  it("gives a leader that joins anew another epoch, since its names are gone", function()
    local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"), join("a", "t3"))
    assert.equal("r@a", state.leader)
    assert.equal("t3", state.leader_token)
    assert.equal(2, state.epoch)
    assert.is_nil(state.old_leader)
  end)

  it("lets somebody else lead where a leader's runtime has joined anew, if he is the one who processes that", function()
    local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"))
    state = after(state, "r@b", join("a", "t3"))
    assert.equal("r@b", state.leader)
    assert.equal(2, state.epoch)
    assert.equal("r@a", after(state, "r@z", join("a", "t4"), join("b", "t5"), down("b", "t5", { left = true })).leader)
  end)

  it("lets a leader go that abdicates, and passes it over until it asks again", function()
    local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"))
    state = after(state, "r@a", { kind = "abdicate", id = "r@a", token = "t1", epoch = 1 })
    assert.equal("r@b", state.leader)
    assert.equal("r@a", state.old_leader)
    state = after(state, "r@a", { kind = "abdicate", id = "r@b", token = "t2", epoch = 2 })
    assert.is_nil(state.leader)
    state = after(state, "r@b", { kind = "elect", id = "r@a", token = "t1" })
    assert.equal("r@a", state.leader)
    assert.equal(3, state.epoch)
  end)

  it("drops an abdication of another epoch", function()
    local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"))
    assert.is_nil((elector.decide(state, { kind = "abdicate", id = "r@a", token = "t1", epoch = 7 }, "r@a", NOW)))
  end)

  it("elects nobody while the store is not to be trusted, and above the epochs that it may have lost", function()
    local state = empty()
    state.distrust, state.epoch_floor = 3, 1000000
    state = after(state, "r@a", join("a", "t1"))
    assert.is_nil(state.leader)
    state.distrust = nil
    assert.equal(1000001, after(state, "r@a", { kind = "elect", id = "r@a", token = "t1" }).epoch)
  end)

  it("elects nobody whose lease is over", function()
    local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"))
    state.members["r@b"].expires_at = NOW - 1
    assert.is_nil(after(state, "r@b", down("a", "t1", { left = true })).leader)
  end)

  it("does not change the state that it is given", function()
    local state = empty()
    after(state, "r@a", join("a", "t1"))
    assert.same({}, state.members)
    assert.equal(0, state.epoch)
  end)

  it("drops what it does not know, and says so", function()
    local changed, why = elector.decide(empty(), { kind = "nonsense" }, "r@a", NOW)
    assert.is_nil(changed)
    assert.matches("nonsense", why)
  end)

  it("drops what is no message, and tells it from what is only stale", function()
    local fine = join("a", "t1")
    local state = after(empty(), "r@a", fine)
    for kind, fields in pairs { join = { "id", "token", "runtime", "number", "address", "ttl" }, member_down = { "id", "token" },
      abdicate = { "id", "token", "epoch" }, elect = { "id", "token" } } do
      local whole = { kind = kind, id = "r@a", token = "t1", runtime = "runtime of a", number = 9, address = "a:1", ttl = 10,
        epoch = 1 }
      assert.is_table((elector.decide(state, whole, "r@a", NOW + 20)), kind)
      for _, field in ipairs(fields) do
        for _, value in ipairs { {}, false, -1, "" } do
          local message = {}
          for key, one in pairs(whole) do message[key] = one end
          if value == false then message[field] = nil else message[field] = value end
          local changed, why, broken = elector.decide(state, message, "r@a", NOW)
          assert.is_nil(changed)
          assert.is_string(why)
          assert.is_true(broken, kind .. " " .. field)
        end
      end
    end
    for _, message in ipairs { 7, "join", {}, { kind = {} } } do
      assert.is_true((select(3, elector.decide(state, message, "r@a", NOW))))
    end
    assert.is_nil((select(3, elector.decide(state, down("a", "t0"), "r@a", NOW))))
  end)

  describe("as a plan", function()
    it("takes over what it was chosen for, also while the queue is locked", function()
      local state = after(empty(), "r@a", join("a", "t1"))
      state.assumed, state.locked, state.now = 0, 1, NOW
      assert.equal("change_over", (elector.plan(state, "r@a", "t1")))
      assert.equal("change_over", (elector.plan(state, "r@a", "t1", state.epoch - 1)))
      assert.same({ "wait", 1 }, { elector.plan(state, "r@b", "t2") })
    end)

    it("takes nothing over in an epoch in which it has let go", function()
      local state = after(empty(), "r@a", join("a", "t1"))
      state.assumed, state.locked, state.now = 0, 0, NOW
      state.head = { number = 1, message = {} }
      assert.equal("decide", (elector.plan(state, "r@a", "t1", state.epoch)))
    end)

    it("processes the queue's head unless the queue is locked", function()
      local state = empty()
      state.head = { number = 1, message = {} }
      assert.equal("decide", (elector.plan(state, "r@a", "t1")))
      state.locked = 0.5
      assert.same({ "wait", 0.5 }, { elector.plan(state, "r@a", "t1") })
    end)

    it("reports who is gone, with the token that was stored, and waits for the next", function()
      local state = after(empty(), "r@a", join("a", "t1"), join("b", "t2"), join("c", "t3"))
      state.assumed, state.locked, state.now = 1, 0, NOW + 4
      assert.same({ "wait", 6 }, { elector.plan(state, "r@a", "t1") })
      state.members["r@b"].expires_at = NOW
      assert.same({ "report", { { kind = "member_down", id = "r@b", token = "t2" } } }, { elector.plan(state, "r@a", "t1") })
    end)
  end)
end)
