-- Claims over a store that a spec plays by hand, at the instants at which one says something else.
local held = require "support.held_register"
local world = require "support.played_register"

local TTL, EPOCH, SESSION, used, strange = held.TTL, held.EPOCH, held.SESSION, held.used, held.strange

describe("a claim without an answer (S4)", function()
  local function unanswered(here, one, how)
    here.on_swap = function(writes) here[how] = here[how] or writes[1].name == "a" end
    local granted = one.claim()
    here.on_swap, here[how] = nil, nil
    assert.is_nil(granted)
  end

  it("is taken back when it was carried out, and then claimed in a higher epoch", function()
    local here, one, other = used { "a", "b" }
    local epoch = here.record("a").epoch
    one.release()
    unanswered(here, one, "mute")
    assert.same({ SESSION, epoch + 1 }, { here.record("a").by, here.record("a").epoch })
    local granted, _, grant = one.claim()
    assert.same({ true, epoch + 2 }, { granted, grant.epoch })
    assert.is_true((other.refresh()))
  end)

  it("is taken back in time by nobody's asking", function()
    local here, one = used()
    one.release()
    unanswered(here, one, "mute")
    assert.equal(SESSION, here.record("a").by)
    here.pass(0.7)
    assert.is_truthy(here.record("a").by)
    here.pass(0.11)
    assert.is_nil(here.record("a").by)
  end)

  it("uses its epoch up when it is still to come", function()
    local here, one = used()
    local epoch = here.record("a").epoch
    one.release()
    local late
    here.on_swap = function(writes)
      late = writes[1]
      here.memory = "nowhere"
    end
    here.mute = true
    assert.is_nil((one.claim()))
    here.on_swap, here.mute, here.memory = nil, false, "m"
    assert.is_nil(here.record("a").by)
    one.release()
    assert.same({ nil, epoch + 1 }, { here.record("a").by, here.record("a").epoch })
    assert.are_not.equal(late.version, here.rows.a.version) -- so it comes too late
  end)

  it("lets nothing be claimed before it is answered", function()
    local here, one = used()
    one.release()
    unanswered(here, one, "mute")
    here.closed = true
    local granted, problem, code = one.claim()
    assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, granted, problem, code })
  end)

  it("leaves alone what another one has claimed meanwhile", function()
    local here, one = used()
    one.release()
    unanswered(here, one, "mute")
    strange(here, "a")
    local granted, why = one.claim()
    assert.same({ false, "o", EPOCH }, { granted, why.node, why.epoch })
    assert.equal("x1", here.rows.a.version)
  end)
end)

describe("a claim that another version stands against", function()
  it("is won where it was carried out twice (S1)", function()
    local here, one = used()
    one.release()
    here.on_swap = function(writes)
      if writes[1].name ~= "a" then return end
      here.on_swap = nil
      here.rows.a = { text = writes[1].text, version = "first" } -- the second time finds the first one's record
    end
    assert.is_true((one.claim()))
    here.pass(4)
    assert.is_true((one.refresh()))
    assert.equal("first", here.rows.a.version)
  end)

  it("is not won where the session ended meanwhile, and taken back", function()
    for _, twice in ipairs { false, true } do
      local here, one = used()
      local epoch = here.record("a").epoch
      one.release()
      here.on_swap = function(writes)
        if writes[1].name ~= "a" then return end
        here.on_swap, here.lasts = nil, TTL
        if twice then here.rows.a = { text = writes[1].text, version = "first" } end
      end
      local granted, problem, code = one.claim()
      assert.same({ n = 3, nil, "the session ended during the claim", "store" }, { n = 3, granted, problem, code })
      assert.equal(SESSION, here.record("a").by)
      here.lasts = 0
      here.pass(2)
      assert.same({ nil, epoch + 1 }, { here.record("a").by, here.record("a").epoch })
      assert.is_true((one.claim()))
    end
  end)

  it("is not won where it was carried out twice in another memory", function()
    local here, one = used()
    one.release()
    here.on_swap = function(writes)
      if writes[1].name ~= "a" then return end
      here.on_swap = nil
      here.rows.a, here.memory = { text = writes[1].text, version = "first" }, "another"
    end
    assert.same({ n = 3, nil, "the session ended during the claim", "store" }, { n = 3, one.claim() })
  end)

  it("is lost where another one was first", function()
    local here, one = used()
    one.release()
    here.on_swap = function(writes)
      if writes[1].name ~= "a" then return end
      here.on_swap = nil
      strange(here, "a")
    end
    local granted, why = one.claim()
    assert.is_false(granted)
    assert.is_true(why.wait > 0)
    assert.equal("x1", here.rows.a.version)
  end)
end)

describe("a claim", function()
  it("looks once, and once at its own session", function()
    local here, asked = world(), {}
    here.on_look = function(names) asked[#asked + 1] = table.concat(names, " ") end
    assert.is_true((here.member("a").claim()))
    assert.same({ "a", SESSION }, asked)
  end)

  it("looks eight times at most while its holder changes", function()
    local here, asked = world(), 0
    here.on_look = function()
      asked = asked + 1
      strange(here, "a")
      here.rows.a.text = here.rows.a.text:gsub("@other", "@other" .. asked)
    end
    assert.same({ n = 3, nil, "the record changed while it was looked at", "store" }, { n = 3, here.member("a").claim() })
    assert.equal(8, asked)
  end)

  it("is given back by one write", function()
    local here, one = used()
    here.on_look = function() error "nothing has to be looked at" end
    one.release()
    assert.is_nil(here.record("a").by)
    here.modules.duties.drop(one.session, one.slot, {}) -- what was settled already
  end)

  it("that a renewal some time ago allows leads no longer than that", function()
    local here, one = used()
    here.pass(3)
    one.release()
    local granted, _, grant = one.claim()
    assert.same({ true, TTL - 3, 3 }, { granted, grant.ttl, grant.past })
    assert.equal(TTL - 3, (select(2, here.member("a").claim())).wait)
  end)
end)
