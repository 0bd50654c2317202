-- Terms, claims and what is owed over a store that a spec plays by hand, at the instants at which one says something else.
local world = require "support.played_register"

local TTL = 12
local MARGIN = TTL / 100 + 0.25
local EPOCH = 900000 -- of others: above those of a runtime that has begun here
local SESSION, OTHER = "@t-12", "@other-12"

local function used(names)
  local here, members = world(), {}
  for i, name in ipairs(names or { "a" }) do
    members[i] = here.member(name)
    assert.is_true(members[i].claim())
  end
  return here, unpack(members)
end

-- Another runtime's records stand there.
local function strange(here, name, more)
  here.rows[OTHER] = { text = '{"v":1,"serial":1,"memory":"m","ttl":12,"at":1,"node":"o","nonce":"o"}', version = "o1" }
  here.rows[name] = { version = "x1",
    text = ('{"v":1,"serial":20,"memory":"m","epoch":900000,"by":"%s","at":1,"node":"o","nonce":"x"%s}'):format(OTHER, more or "") }
end

local function renewed(here, word)
  here.rows[OTHER] = { text = here.rows[OTHER].text:gsub('"nonce":"[^"]*"', '"nonce":"' .. word .. '"'), version = word }
end

describe("a renewal without an answer (S3)", function()
  it("counts from its sending when a look finds it", function()
    local here, one = used()
    here.pass(4)
    here.mute = true
    assert.is_nil((one.refresh()))
    here.mute = false
    here.pass(1)
    local granted, _, grant = one.refresh()
    assert.same({ true, TTL - 1, 1 }, { granted, grant.ttl, grant.past })
  end)

  it("that was not carried out is made again", function()
    local here, one = used()
    here.pass(4)
    here.closed = true
    assert.is_nil((one.refresh()))
    here.closed = false
    here.pass(1)
    local granted, _, grant = one.refresh()
    assert.same({ true, TTL, nil }, { granted, grant.ttl, grant.past })
  end)

  it("that begins a life counts when a look finds it before its deadline", function()
    local here = world()
    local one = here.member "a"
    here.mute = true
    assert.is_nil((one.claim()))
    local version = here.rows[SESSION].version
    here.mute = false
    here.pass(5)
    local granted, _, grant = one.claim()
    assert.same({ true, TTL - 5, 5 }, { granted, grant.ttl, grant.past })
    assert.equal(version, here.rows[SESSION].version)
  end)

  it("that begins a life is made again after its deadline, in that life", function()
    local here = world()
    local one = here.member "a"
    here.mute = true
    assert.is_nil((one.claim()))
    local life = here.life()
    here.mute = false
    here.pass(TTL - MARGIN)
    local granted, _, grant = one.claim()
    assert.same({ true, TTL, nil }, { granted, grant.ttl, grant.past })
    assert.equal(life, here.life())
  end)

  it("leads no longer than the one before", function()
    local here, one = used()
    here.pass(4)
    here.mute = true
    assert.is_nil((one.refresh()))
    here.mute = false
    here.pass(TTL - MARGIN - 4)
    local granted, why = one.refresh()
    assert.same({ false, "the session was not renewed in time" }, { granted, why.error })
  end)
end)

describe("a session's record", function()
  it("that another runtime has written ends all terms", function()
    local here, one, two = used { "a", "b" }
    here.rows[SESSION] = { text = here.rows[SESSION].text:gsub('"serial":%d+', '"serial":99'):gsub('"nonce":"%d+"', '"nonce":"z"'),
      version = "another" }
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, "another runtime writes the record of this session" }, { granted, why.error })
    assert.is_nil(why.amnesia)
    granted, why = two.refresh()
    assert.same({ false, "another runtime writes the record of this session" }, { granted, why.error })
  end)

  it("that is missing ends all terms, as with a store that forgot", function()
    local here, one = used()
    here.rows[SESSION] = nil
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, true, "the store has no record of this session any more" }, { granted, why.amnesia, why.error })
  end)

  it("has the number of a life above the last one that stands there, and above the time", function()
    local here = world()
    here.rows[SESSION] = { version = "old", text = '{"v":1,"serial":1,"memory":"m","ttl":12,"at":999999999,"node":"n","nonce":"o"}' }
    assert.is_true(here.member("a").claim())
    assert.equal(1000000000, here.life())
    here = world()
    assert.is_true(here.member("a").claim())
    assert.equal(100000, here.life())
  end)

  it("of a later version is left alone", function()
    local here = world()
    here.rows[SESSION] = { version = "new", text = '{"v":2}' }
    local granted, problem, code = here.member("a").claim()
    assert.same({ n = 3, nil, "a newer version of crown-lua wrote the record of '@t-12'", "store" },
      { n = 3, granted, problem, code })
  end)

  it("is not written again by a claim while much of it is left", function()
    local here, one, two = used { "a", "b" }
    local version = here.rows[SESSION].version
    two.release()
    here.pass(TTL / 2 - 0.01)
    local granted, _, grant = two.claim()
    assert.is_true(granted)
    assert.near(TTL / 2 + 0.01, grant.ttl, 1e-9)
    assert.equal(version, here.rows[SESSION].version)
    two.release()
    here.pass(0.01)
    granted, _, grant = two.claim()
    assert.same({ true, TTL }, { granted, grant.ttl })
    assert.is_true((one.refresh()))
  end)

  it("is renewed in the memory of a store that was restarted, and so are its terms (S9)", function()
    local here, one, two = used { "a", "b" }
    local epoch = here.record("a").epoch
    here.memory = "another"
    here.pass(4)
    assert.is_true((one.refresh()))
    assert.is_true((two.refresh()))
    for _, name in ipairs { "a", "b", SESSION } do assert.equal("another", here.record(name).memory) end
    assert.same({ epoch, SESSION }, { here.record("a").epoch, here.record("a").by })
  end)

  it("waits to begin another life until the trees of the last one have passed their deadlines", function()
    local here, one, two = used { "a", "b" }
    here.rows[SESSION] = nil
    here.pass(4)
    assert.is_false((one.refresh()))
    local granted, why = one.claim() -- its own tree has gone, that of the other one may last
    assert.is_false(granted)
    assert.near(TTL - 4, why.wait, 1e-9)
    assert.is_nil(here.rows[SESSION])
    here.pass(why.wait)
    assert.is_nil(here.rows[SESSION])
    assert.is_true((one.claim()))
    assert.is_false((two.refresh()))
  end)

  it("waits for the last of those trees", function()
    local here, names = world(), { "a", "b", "c", "d", "e", "f" }
    local members = {}
    for i, name in ipairs(names) do members[i] = here.member(name) end
    for _, one in ipairs(members) do
      assert.is_true((one.claim()))
      here.pass(0.1)
    end
    here.pass(3.4)
    assert.is_true((members[3].refresh())) -- its tree lives longest
    here.rows[SESSION] = nil
    here.pass(4)
    assert.is_false((members[3].refresh()))
    local granted, why = members[1].claim()
    assert.is_false(granted)
    assert.near(TTL - 4, why.wait, 1e-9)
  end)

  it("begins another life at once when the trees of the last one have gone", function()
    local here, one, two = used { "a", "b" }
    local life = here.life()
    here.rows[SESSION] = nil
    here.pass(4)
    assert.is_false((one.refresh()))
    two.release()
    here.pass(0.001)
    assert.is_true((one.claim()))
    assert.is_true(here.life() > life)
  end)
end)

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

describe("a term", function()
  it("is over when its record is another one of the same version", function()
    local here, one = used()
    local version = here.rows.a.version
    strange(here, "a")
    here.rows.a.version = version
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, "o" }, { granted, why.node })
  end)

  it("is over when another session holds its election", function()
    local here, one = used()
    strange(here, "a")
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, { node = "o", epoch = EPOCH } }, { granted, why })
    assert.is_false(one.stands)
    assert.is_true(one.told > 0)
    assert.equal("x1", here.rows.a.version)
  end)

  it("is over when its election is doubted", function()
    local here, one = used()
    here.rows.a = { text = '{"v":1,"serial":20,"memory":"m","epoch":900000,"doubt":24,"nonce":"x"}', version = "x1" }
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, { epoch = EPOCH, amnesia = true } }, { granted, why })
  end)

  it("is over when its record is missing, which is doubted (S8)", function()
    local here, one = used()
    here.rows.a = nil
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, true, "the store has no record of this term any more" }, { granted, why.amnesia, why.error })
    assert.equal(2 * TTL, here.record("a").doubt)
    assert.equal(here.record("a").epoch, why.epoch)
  end)

  it("goes on when what was missing is back before it is written over", function()
    local here, one = used()
    local row = here.rows.a
    here.rows.a = nil
    here.pass(4)
    here.on_swap = function(writes)
      if writes[1].name == "a" then here.rows.a = row end
    end
    assert.is_true((one.refresh()))
    assert.equal(row, here.rows.a)
  end)

  it("has its candidate asked to go once, and goes on until it is given back (S10)", function()
    local here, one = used()
    local record = here.record "a"
    here.rows.a = { text = here.rows.a.text:gsub("^{", '{"directive":"evict",'), version = "evict" }
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, { evicted = true } }, { granted, why })
    assert.same({ false, 1 }, { one.stands, one.told })
    assert.is_true((one.refresh()))
    one.release()
    here.pass(2)
    assert.same({ nil, nil, record.epoch }, { here.record("a").by, here.record("a").directive, here.record("a").epoch })
  end)

  it("has no other wish for its end", function()
    local here, one = used()
    here.rows.a = { text = here.rows.a.text:gsub("^{", '{"directive":"another",'), version = "wish" }
    here.pass(4)
    assert.is_true((one.refresh()))
    assert.is_true(one.stands)
  end)

  it("is looked at at once where its record has changed", function()
    local here, one, two = used { "a", "b" }
    assert.is_nil((one.look()))
    strange(here, "a")
    assert.same({ false, { node = "o", epoch = EPOCH } }, { one.look() })
    assert.is_nil((two.look()))
    here.deaf = true
    assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, two.look() })
    here.deaf = false
    here.rows.b = { text = here.rows.b.text:gsub("^{", '{"directive":"evict",'), version = "evict" }
    assert.same({ false, { evicted = true } }, { two.look() })
  end)

  it("is nobody's after its end", function()
    local here, one = used()
    one.release()
    here.pass(2)
    local granted, why = one.refresh()
    assert.same({ false, "the lease in the store is not this term's" }, { granted, why.error })
    assert.is_nil(here.record("a").by)
  end)

  it("keeps another candidate of its runtime off", function()
    local here, one = used()
    local two = here.member "a"
    here.pass(4)
    local granted, why = two.claim()
    assert.same({ false, "n", here.record("a").epoch, TTL - 4 }, { granted, why.node, why.epoch, why.wait })
    two.release()
    assert.equal(SESSION, here.record("a").by)
    assert.is_true((one.refresh()))
  end)

  it("keeps another candidate of its runtime off until its tree has passed its deadline", function()
    local here, one = used()
    local two = here.member "a"
    strange(here, "a")
    here.pass(4)
    assert.is_false((one.refresh()))
    local granted, why = two.claim()
    assert.same({ false, "n", nil, TTL - 4 }, { granted, why.node, why.epoch, why.wait })
    here.pass(TTL - 4)
    granted, why = two.claim()
    assert.same({ false, "o" }, { granted, why.node })
  end)

  it("ends at its deadline where its candidate refreshes it too late", function()
    local here, one, two = used { "a", "b" }
    for _ = 1, 2 do
      here.pass(5)
      assert.is_true((two.refresh()))
    end
    here.pass(2)
    local granted, why = one.refresh()
    assert.same({ false, "the lease was not refreshed in time" }, { granted, why.error })
    here.pass(2)
    assert.is_nil(here.record("a").by)
    assert.equal(SESSION, here.record("b").by)
  end)

  it("is given back after its deadline where its candidate asks nothing more (S7)", function()
    local here, _, two = used { "a", "b" }
    for _ = 1, 3 do
      here.pass(3.9)
      assert.is_true((two.refresh()))
    end
    assert.equal(SESSION, here.record("a").by)
    here.pass(3.9)
    assert.is_true((two.refresh()))
    here.pass(1)
    assert.is_nil(here.record("a").by)
  end)

  it("goes on past what its oracle has said where its core has a later deadline", function()
    local here, one, two = used { "a", "b" }
    for _ = 1, 2 do
      here.pass(5)
      assert.is_true((two.refresh()))
    end
    local deadline = here.now() + 6
    function one.deadline() return deadline end -- by renewals that count for all terms
    here.pass(2)
    assert.is_true((one.refresh()))
    assert.equal(SESSION, here.record("a").by)
  end)
end)

describe("a release without an answer (S5)", function()
  it("is repeated until it is answered", function()
    local here, one = used()
    here.closed = true
    one.release()
    here.pass(3)
    assert.equal(SESSION, here.record("a").by)
    here.closed = false
    here.pass(1)
    assert.is_nil(here.record("a").by)
  end)

  it("finds out that it was carried out", function()
    local here, one = used()
    local epoch = here.record("a").epoch
    here.mute = true
    one.release()
    here.mute = false
    local version = here.rows.a.version
    here.pass(2)
    assert.same({ version, epoch }, { here.rows.a.version, here.record("a").epoch })
    assert.is_true((one.claim()))
  end)

  it("is given over a wish that came meanwhile", function()
    local here, one = used()
    here.rows.a = { text = here.rows.a.text:gsub("^{", '{"directive":"evict",'), version = "evict" }
    one.release()
    assert.same({ nil, nil }, { here.record("a").by, here.record("a").directive })
  end)

  it("is not given in another memory", function()
    local here, one = used()
    here.memory = "another"
    local version = here.rows.a.version
    one.release()
    here.pass(2)
    assert.equal(version, here.rows.a.version)
  end)

  it("frees nothing in a store that went back, while a later term lasts (S9)", function()
    local here, one = used()
    local backup = { a = here.rows.a, [SESSION] = here.rows[SESSION] }
    here.mute = true
    one.release()
    here.mute = false
    here.begin "later"
    assert.is_true((here.member("a").claim()))
    here.rows.a, here.rows[SESSION], here.rows["@later-12"], here.memory = backup.a, backup[SESSION], nil, "another"
    here.pass(2) -- the first runtime looks whether its release was carried out
    here.begin "third"
    local granted, why = here.member("a").claim()
    assert.is_false(granted)
    assert.is_true(why.wait >= TTL)
  end)
end)

describe("a follower", function()
  it("is denied for as long as its holder may live, and takes over then (S2)", function()
    local here = world()
    local one = here.member "a"
    strange(here, "a")
    local granted, why = one.claim()
    assert.same({ false, "o", EPOCH, true, true }, { granted, why.node, why.epoch, why.stands, why.unsure })
    assert.near(TTL + MARGIN, why.wait, 1e-9)
    here.pass(4)
    renewed(here, "o2")
    granted, why = one.claim()
    assert.same({ false, false }, { granted, why.unsure })
    assert.near(TTL + MARGIN, why.wait, 1e-9)
    here.pass(TTL)
    assert.near(MARGIN, (select(2, one.claim())).wait, 1e-9)
    here.pass(MARGIN)
    local _, _, grant = one.claim()
    assert.equal(EPOCH + 1, grant.epoch)
  end)

  it("counts the time that an answer took", function()
    local here = world()
    local one = here.member "a"
    strange(here, "a")
    assert.is_false((one.claim()))
    here.lasts = 2
    here.pass(4)
    assert.near(TTL + MARGIN - 4 - 2, (select(2, one.claim())).wait, 1e-9)
  end)

  it("does not look at a session again that it has just been denied by", function()
    local here = world()
    local one, two = here.member "a", here.member "b"
    strange(here, "a")
    strange(here, "b")
    assert.is_false((one.claim()))
    local asked = {}
    here.on_look = function(names) asked[#asked + 1] = table.concat(names, " ") end
    assert.is_false((two.claim()))
    assert.same({ "b" }, asked)
    assert.is_false((two.claim()))
    assert.same({ "b", "b " .. OTHER }, asked)
  end)

  it("doubts what a session holds that is missing, also where the store tells of ages", function()
    local here = world()
    local one = here.member "a"
    strange(here, "a")
    assert.is_false((one.claim()))
    here.age = 1
    here.rows[OTHER] = nil
    local granted, why = one.claim()
    assert.same({ false, true, true }, { granted, why.amnesia, why.back })
    assert.near(2 * TTL * 1.01 + 0.25, why.wait, 1e-9)
    assert.equal(2 * TTL, here.record("a").doubt)
  end)

  it("says whether the store has no record, or may have gone back, for as long as the doubt stands", function()
    for _, case in ipairs {
      { nil, nil }, { '{"v":1,"serial":1,"memory":"l","epoch":3,"nonce":"f"}', true },
      { '{"v":1,"serial":1,"memory":"l","epoch":3,"doubt":24,"nonce":"f"}', false },
    } do
      local here = world()
      here.trusts = false
      here.rows.a = case[1] and { text = case[1], version = "f" }
      local one = here.member "a"
      for _ = 1, 2 do
        local granted, why = one.claim()
        assert.same({ false, true, case[2] or false }, { granted, why.amnesia, why.back or false })
      end
    end
  end)

  it("looks again where another one was faster to write a doubt", function()
    local here, written = world(), 0
    here.trusts = false
    here.on_swap = function(writes)
      if writes[1].name ~= "a" then return end
      written = written + 1
      if written == 1 then strange(here, "a") end
    end
    local granted, denial = here.member("a").claim()
    assert.is_false(granted)
    assert.equal("o", denial.node)
  end)

  it("ends where somebody wrote over its record what nobody can read, and says so", function()
    local here = world()
    local one = here.member "a"
    assert.is_true((one.claim()))
    here.rows.a = { text = "nonsense", version = 1 }
    here.pass(TTL / 3)
    local goes_on, why = one.refresh()
    assert.is_false(goes_on)
    assert.matches('^\'a\': the store\'s value is not a record of an election: "nonsense"; stop', why.error)
  end)

  it("goes on where the store does not tell what stands there", function()
    local here = world()
    local one = here.member "a"
    assert.is_true((one.claim()))
    local look = here.store.look
    function here.store.look(...)
      local answers = look(...)
      if answers.a then answers.a.text, answers.a.trouble = "x", "it is busy" end
      return answers
    end
    here.pass(TTL / 3)
    assert.is_true((one.refresh()))
  end)

  it("says why it knows nothing", function()
    local here = world()
    here.rows.a = { text = "nonsense", version = 1 }
    local granted, problem, code = here.member("a").claim()
    assert.same({ n = 3, nil, "'a': the store's value is not a record of an election: \"nonsense\"; stop its candidates, delete "
      .. "that in the store, and start them again", "store" }, { n = 3, granted, problem, code })
    here.rows.a, here.deaf = nil, true
    granted, problem, code = here.member("b").claim()
    assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, granted, problem, code })
  end)
end)
