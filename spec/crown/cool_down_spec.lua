-- The pause between winning and acting, by the app's option and by what an oracle grants: each row happens twice to one candidate,
-- since a second cool-down must be what the first one was.
local crown = require "crown"
local Elections = require "support.elections"
local testing = require "crown.testing"

local PAUSE, TTL, REFRESH, RETRY = 30, 24, 8, 1 -- seconds; it acts after three refreshes, and after more than a TTL

local KINDS = {
  ["the app's"] = { app = PAUSE },
  ["the oracle's"] = { oracle = PAUSE },
  ["the longer one, the app's"] = { app = PAUSE, oracle = PAUSE / 3 },
  ["the longer one, the oracle's"] = { app = PAUSE / 3, oracle = PAUSE },
}

local TOLD = { "leadership.claimed", "leadership.acting", "leadership.changed", "leadership.lost", "leadership.evicted",
  "leadership.abdicated" }

describe("a candidate that cools down", function()
  local mine, clock = Elections.new(), nil
  local world

  after_each(function()
    world.over = true -- its subscriptions stay
    mine:stop()
    clock:restore()
  end)

  -- From now on it is granted, each win under a new epoch.
  local function grant()
    local given = { ttl = TTL, cool_down = world.kind.oracle }
    local function refresh()
      given.epoch = world.epoch
      return true, REFRESH, given
    end
    world.fake:answer("claim", { function()
      world.epoch = world.epoch + 1
      return refresh()
    end })
    world.fake:answer("refresh", { refresh })
    world.fake:answer("handle_info", { {} })
  end

  local function tell(format, ...) world.story[#world.story + 1] = format:format(...) end

  -- What was told since, with `epoch` and `self` for those of the term, so that both times read the same.
  local function story()
    local text = table.concat(world.story, "; ")
    world.story = {}
    return (text:gsub("%f[%d]" .. world.epoch .. "%f[%D]", "epoch"))
  end

  local function status() return world.election:status() end
  local function advance(seconds) clock:advance(seconds) end

  local function declare(kind)
    local name = Elections.unique()
    world = { kind = kind, epoch = 0, story = {}, fake = testing.fake_oracle() }
    local here = world
    for _, event in ipairs(TOLD) do
      crown.on(event, function(told)
        if told.name ~= name or here.over then return end
        tell("%s %s%s", event:match "%.(.*)", told.phase, told.reason and " " .. told.reason or "")
      end)
    end
    clock = testing.fake_clock()
    grant()
    world.election = mine:elect { name = name, node = "self", oracle = world.fake, cool_down = kind.app, retry = RETRY, handlers = {
      won = function(term) tell("won %d", term.epoch) end,
      lost = function(reason) tell("lost(%s)", reason) end,
      leader = function(node, epoch) tell("leader %s %d", node, epoch) end,
      campaign = function(phase) world.campaign = phase end,
    } }
    advance(0.01)
  end

  -- It has won a moment ago.
  local function assert_cooling(since)
    local now = status()
    local left = PAUSE - since
    assert.same({ "cooling", "self", world.epoch }, { now.phase, now.leader, now.epoch })
    assert.is_true(math.abs(now.acts_in - left) < 0.3, now.acts_in)
    assert.same({ false, nil }, { world.election:is_leader(), now.term })
  end

  local ACTS = "acting leading; won epoch; changed leading; leader self epoch"

  -- Each begins right after a win, and ends when the next claim is due within a second.
  local ROWS = {
    ["acts when that is over, and not before"] = function()
      advance(PAUSE - 0.5)
      assert_cooling(PAUSE - 0.5)
      assert.equal("", story())
      advance(0.5)
      assert.equal(ACTS, story())
      assert.same({ "leading", nil, true }, { status().phase, status().acts_in, world.election:is_leader() })
      world.election:abdicate()
      advance(0.5)
      assert.equal("lost finishing abdicated; lost(abdicated); abdicated following", story())
    end,

    ["refreshes meanwhile, which neither ends nor prolongs it"] = function()
      local before = world.fake:count "refresh"
      advance(PAUSE - 0.5)
      assert.is_true(world.fake:count "refresh" - before >= 2)
      assert.equal("cooling", world.campaign)
      assert_cooling(PAUSE - 0.5)
      advance(0.5)
      assert.equal(ACTS, story())
      world.election:abdicate()
      advance(0.5)
      story()
    end,

    ["has not led when a refresh is refused"] = function()
      world.fake:deny { node = "other", epoch = world.epoch + 1, expires_in = 5 }
      advance(REFRESH)
      world.epoch = world.epoch + 1
      assert.equal("lost following denied; changed following; leader other epoch", story())
      assert.same({ "following", "other", nil }, { status().phase, status().leader, status().acts_in })
      grant()
      advance(5)
    end,

    ["has not led when its lease ends without a word of the store's"] = function()
      world.fake:answer("refresh", { { nil, "no answer" } })
      advance(TTL * 0.7)
      assert_cooling(TTL * 0.7)
      advance(TTL * 0.1)
      assert.equal("lost finishing expired; abdicated following", story())
      grant()
    end,

    ["hears of an eviction, gives its lease back, and lets the others go first"] = function()
      local released, claims = world.fake:count "abdicate", world.fake:count "claim"
      world.fake:answer("handle_info", { { false, { evicted = true } } })
      world.election:send "evict"
      advance(0.01)
      assert.equal("evicted finishing; lost finishing evicted; abdicated following", story())
      assert.equal(released + 1, world.fake:count "abdicate")
      advance(RETRY / 2)
      assert.equal(claims, world.fake:count "claim")
      grant()
    end,

    ["gives its lease back when it is told to step down"] = function()
      local released = world.fake:count "abdicate"
      world.election:abdicate()
      advance(0.01)
      assert.equal("lost finishing abdicated; abdicated following", story())
      assert.equal(released + 1, world.fake:count "abdicate")
    end,

    ["sits out a store that forgot, and has not led"] = function()
      world.fake:deny { amnesia = true, expires_in = 7 }
      advance(REFRESH)
      assert.equal("lost following denied", story())
      assert.is_nil(status().acts_in)
      local claims = world.fake:count "claim"
      advance(6)
      assert.equal(claims, world.fake:count "claim")
      grant()
    end,
  }

  for word, kind in pairs(KINDS) do
    describe("for as long as " .. word .. " says", function()
      for title, happens in pairs(ROWS) do
        it(title, function()
          declare(kind)
          for _ = 1, 2 do
            for _ = 1, 20 do -- until the claim that is due
              if status().phase == "cooling" then break end
              advance(0.1)
            end
            assert_cooling(0)
            assert.equal("claimed cooling", story())
            happens()
          end
        end)
      end

      it("ends when the election is stopped", function()
        for _ = 1, 2 do
          declare(kind)
          assert_cooling(0)
          story()
          world.election:stop()
          advance(0.01)
          assert.equal("lost finishing shutdown; abdicated finishing", story())
          assert.same({ 1, true }, { world.fake:count "abdicate", world.election.handle:finished() })
          world.over = true
          clock:restore()
        end
      end)
    end)
  end

  it("does so for no time that is none", function()
    for _, wrong in ipairs { -1, 0 / 0, math.huge, "4" } do
      local verdict, problem = require("crown.election.contract").verdict("claim", {}, true, 1, { ttl = 3, cool_down = wrong })
      assert.equal("unknown", verdict)
      assert.matches("a cool_down of", problem)
    end
    declare { oracle = 0 }
    assert.same({ "leading", nil }, { status().phase, status().acts_in })
  end)
end)
