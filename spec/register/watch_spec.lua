-- What a runtime watches of the sessions that hold what it follows, over a store that a spec plays by hand.
local record = require "crown.register.record"
local Seen = require "crown.register.seen"
local Watch = require "crown.register.watch"
local world = require "support.played_register"

local TTL = 12
local STANDS = TTL * 1.01 + 0.25
local OTHER = "@other-12"

local function renew(here, word, more)
  here.rows[OTHER] = { version = word,
    text = ('{"v":1,"serial":%d,"memory":"m","ttl":12,"at":1,"node":"o","nonce":"%s"%s}'):format(here.now(), word, more or "") }
end

-- Candidates that another runtime's session keeps off.
local function followers(count, is_unsure)
  local here, all = world(), {}
  renew(here, "first")
  for i = 1, count do
    local name = "a" .. i
    here.rows[name] = { version = name,
      text = ('{"v":1,"serial":1,"memory":"m","epoch":7,"by":"%s","at":1,"node":"o","nonce":"x"}'):format(OTHER) }
    all[i] = here.member(name)
    assert.is_false((all[i].claim()))
    here.watch:add(all[i], is_unsure)
  end
  return here, all
end

local function told(all)
  local count = 0
  for _, one in ipairs(all) do count = count + one.told end
  return count
end

local function looks(here)
  local asked = {}
  here.on_look = function(names) asked[#asked + 1] = table.concat(names, " ") end
  return asked
end

describe("a watch", function()
  it("looks each second, at the session alone, while that is renewed", function()
    local here, all = followers(3)
    for i = 1, 40 do
      here.pass(0.5)
      renew(here, "r" .. i)
    end
    assert.equal(0, told(all))
    local asked = looks(here)
    here.pass(3)
    assert.same({ OTHER, OTHER, OTHER }, asked)
  end)

  it("tells all when the session has stood for long enough, and no sooner", function()
    local here, all = followers(3)
    here.pass(STANDS - 0.01)
    assert.equal(0, told(all))
    here.pass(0.02)
    assert.same({ 1, 1, 1 }, { all[1].told, all[2].told, all[3].told })
    here.pass(30)
    assert.equal(3, told(all))
  end)

  it("counts from the last renewal that it saw", function()
    local here, all = followers(1)
    here.pass(5)
    renew(here, "r")
    here.pass(STANDS)
    assert.equal(0, told(all)) -- it was seen a moment after it was written
    here.pass(1)
    assert.equal(1, told(all))
  end)

  it("renews its own session when that is due, so that a claim need not wait for it", function()
    local here, all = followers(1)
    local renewals = 0
    here.on_swap = function() renewals = renewals + 1 end
    for i = 1, 40 do
      here.pass(1)
      renew(here, "r" .. i)
    end
    assert.is_true(renewals >= 9 and renewals <= 11, renewals)
    assert.equal(0, told(all)) -- held until here: a watch does not keep who follows
  end)

  it("tells all when the session is in another life, over, gone, back or in another memory", function()
    for _, change in ipairs {
      function(here) here.rows[OTHER] = { version = "new",
        text = '{"v":1,"serial":200,"memory":"m","ttl":12,"at":2,"node":"o","nonce":"new"}' } end,
      function(here) renew(here, "over", ',"over":1') end,
      function(here) here.rows[OTHER] = nil end,
      function(here) here.rows[OTHER] = { version = "back",
        text = '{"v":1,"serial":3,"memory":"m","ttl":12,"at":1,"node":"o","nonce":"back"}' } end,
      function(here) here.memory = "another" end,
      function(here) here.rows[OTHER] = { version = "bad", text = "nonsense" } end,
      function(here) here.deaf = true end,
    } do
      local here, all = followers(2)
      here.pass(0.5)
      change(here)
      here.pass(1)
      assert.same({ 1, 1 }, { all[1].told, all[2].told })
    end
  end)

  it("tells those who do not know whether the holder lives of its first renewal, unless they are many", function()
    for count, wanted in pairs { [1] = 1, [16] = 16, [17] = 0 } do
      local here, all = followers(count, true)
      here.pass(1.5)
      assert.equal(0, told(all))
      renew(here, "r")
      here.pass(1)
      assert.equal(wanted, told(all))
      renew(here, "s")
      here.pass(1)
      assert.equal(wanted, told(all))
    end
  end)

  it("does not tell of a renewal who knows that the holder lives", function()
    local here, all = followers(2)
    here.watch:add(all[2], true)
    here.pass(0.5)
    renew(here, "r")
    here.pass(1)
    assert.same({ 0, 1 }, { all[1].told, all[2].told })
  end)

  it("tells those whom a session holds that the store says is over, and no others", function()
    local here, all = followers(2)
    here.watch:hear "@nobody"
    assert.equal(0, told(all))
    here.watch:hear(OTHER)
    assert.equal(2, told(all))
  end)

  it("looks a moment after somebody follows, and then each second", function()
    local here, all = followers(1)
    local asked = looks(here)
    here.pass(0.09)
    assert.same({}, asked)
    here.pass(0.02)
    assert.same({ OTHER, "@t-12" }, asked)
    here.pass(0.98)
    assert.same({ OTHER, "@t-12" }, asked)
    here.pass(0.05)
    assert.same({ OTHER, "@t-12", OTHER }, asked)
    assert.equal(0, told(all))
  end)

  it("ends with the last that follows", function()
    local here = followers(1)
    collectgarbage()
    here.pass(2)
    local asked = looks(here)
    here.pass(30)
    assert.same({}, asked)
  end)

  it("tells who follows what is no session any more at once", function()
    local here = world()
    local one = here.member "a"
    one.slot.holder = { name = OTHER }
    here.watch:add(one)
    assert.equal(1, one.told)
  end)
end)

describe("the watch over the sessions that others follow", function()
  it("has its own session renewed a moment after somebody follows, and then each second", function()
    local now, renewed, member = 0, {}, { slot = {}, tell = function() end }
    local text = record.text({ v = 1, serial = 1, memory = "m", at = 1, ttl = 12, node = "ann" }, "n")
    local answer = { text = text, version = 1, memory = "m" }
    local env = { now = function() return now end, atomic = function(fn, ...) return fn(...) end,
      detach = function(fn, ...) fn(...) end, sleep = function(seconds) now = now + seconds end }
    local session = { env = env, seen = Seen.new(env.now), store = { look = function() return { ["@ann-12"] = answer } end },
      is_due = function() return true end }
    local watch = Watch.new(session, 1)
    function session.renew()
      renewed[#renewed + 1] = now
      if #renewed == 3 then watch:hear "@ann-12" end -- nobody follows it any more
    end
    member.slot.holder = session.seen:of "@ann-12"
    session.seen:note(member.slot.holder, answer, 0)
    watch:add(member)
    assert.same({ 0.1, 1.1, 2.1 }, renewed)
  end)
end)
