-- Candidates that follow, over a store that a spec plays by hand, at the instants at which one says something else.
local held = require "support.held_register"
local world = require "support.played_register"

local TTL, MARGIN, EPOCH, OTHER, strange, renewed = held.TTL, held.MARGIN, held.EPOCH, held.OTHER, held.strange, held.renewed

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
    assert.matches('^\'a\': the store\'s value is not a record of an election: "nonsense"; is this', why.error)
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
    assert.same({ n = 3, nil, "'a': the store's value is not a record of an election: \"nonsense\"; "
      .. "is this the right store? If so, stop its candidates, delete that in the store, and start them again", "store" },
      { n = 3, granted, problem, code })
    here.rows.a, here.deaf = nil, true
    granted, problem, code = here.member("b").claim()
    assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, granted, problem, code })
  end)
end)
