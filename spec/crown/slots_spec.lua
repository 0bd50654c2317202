-- One candidate in several slots: it leads one at most, whatever its oracle grants.
local crown = require "crown"
local eventually = require("crown.testing").eventually

local serial = 0

-- Grants every claim, each after a while, and every message too.
local function generous(asked)
  local function granted(state)
    asked.now = (asked.now or 0) + 1
    asked.most = math.max(asked.most or 0, asked.now)
    crown.sleep(0.02)
    asked.now, asked[state] = asked.now - 1, (asked[state] or 0) + 1
    return true, 60, { epoch = 1 + (asked.given_back or 0), ttl = 120 }
  end
  return {
    init = function(opts)
      asked.send = asked.send or {}
      asked.send[opts.crown_name] = opts.send
      return { opts.crown_name }
    end,
    claim = function(state) return granted(state[1]) end,
    refresh = function(state) return granted(state[1]) end,
    abdicate = function(state) asked.given_back = (asked.given_back or 0) + (asked[state[1]] and 1 or 0) end,
    handle_info = function(state) return granted(state[1]) end,
  }
end

describe("a candidate in several slots", function()
  local slots, asked

  local function start(count)
    serial, asked = serial + 1, {}
    slots = crown.elect { name = "slots-" .. serial, slots = count, oracle = generous(asked) }
    return slots
  end

  after_each(function()
    slots:stop()
    eventually(function() return slots:status().phase == "finishing" end)
  end)

  local function led()
    local names = {}
    for _, one in ipairs(slots.elections) do
      if one:is_leader() then names[#names + 1] = one.name end
    end
    assert.is_true(#names <= 1, table.concat(names, " "))
    return names[1]
  end

  it("leads one of them, asks for one at a time, and takes no other one by a message", function()
    start(4)
    eventually(led)
    local first = led()
    assert.same({ first, true }, { slots:current().name, slots:is_leader() })
    for _, one in ipairs(slots.elections) do asked.send[one.name] "look" end
    for _ = 1, 20 do
      crown.sleep(0.01)
      assert.equal(first, led())
    end
    assert.equal(1, asked.most)
    local total = 0
    for _, one in ipairs(slots.elections) do
      if one.name ~= first then total = total + (asked[one.name] or 0) end
    end
    assert.equal(0, total)
  end)

  it("takes another one as soon as it has given one up", function()
    start(3)
    eventually(led)
    local first = led()
    slots:abdicate()
    eventually(function()
      local now = led()
      return now and now ~= first
    end)
    assert.equal(1, asked.given_back)
  end)

  it("asks on when a call of one slot was dropped in its midst, and gives back what that was granted", function()
    start(3)
    crown.sleep(0.005) -- the first claim is under way
    assert.is_true((asked.now or 0) > 0)
    for _, one in ipairs(slots.elections) do
      one.handle:bar("paused", "for this test")
      one.handle:allow "paused"
    end
    local began = crown.now()
    eventually(led, 20)
    assert.is_true(crown.now() - began < 9, "it waited for a call that nobody carries out any more")
    eventually(function() return (asked.given_back or 0) > 0 end)
  end)

  it("is told apart by a table of one election each", function()
    start(2)
    assert.same({ "slots-" .. serial .. ".1", "slots-" .. serial .. ".2" }, { slots.elections[1].name, slots.elections[2].name })
    assert.equal("slots-" .. serial, slots.name)
    assert.is_true(slots:send "look")
  end)
end)

describe("the option slots", function()
  local function problem(options)
    options.name = options.name or "bad-slots"
    local _, why = pcall(crown.elect, options)
    return tostring(why)
  end

  it("refuses what makes no sense", function()
    for _, count in ipairs { 0, 65, 1.5, "3" } do assert.matches("elect 'bad%-slots': slots", problem { slots = count }) end
    assert.matches("follower_child has no place beside slots", problem { slots = 2, follower_child = { "true" } })
    assert.matches("mode 'signal' has no place beside slots", problem { slots = 2, child = { command = { "x" }, mode = "signal" } })
    assert.matches("at most 128 characters", problem { slots = 10, name = ("x"):rep(126) })
    assert.matches("name", problem { slots = 2, name = 3 })
  end)
end)
