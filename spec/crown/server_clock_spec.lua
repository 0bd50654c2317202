local fake_clock = require("crown.testing").fake_clock
local ServerClock = require "crown.oracle.server_clock"

describe("a server's clock", function()
  local clock, server

  before_each(function()
    clock = fake_clock()
    server = ServerClock.new()
  end)
  after_each(function() clock:restore() end)

  -- A question that takes so many seconds each way; the server is ahead by so much.
  local function ask(there, back, ahead)
    local sent = require("crown.core").now()
    clock:advance(there)
    local told = require("crown.core").now() + ahead
    clock:advance(back)
    return server:saw(sent, told)
  end

  it("is believed whatever it says first, and while it goes on", function()
    assert.is_false(ask(0.01, 0.01, 1e9))
    clock:advance(100)
    assert.is_false(ask(0.01, 0.01, 1e9))
  end)

  it("may be late in any way on the way", function()
    ask(0.01, 0.01, 50)
    for _, way in ipairs { { 5, 0 }, { 0, 5 }, { 5, 5 }, { 0, 0 } } do assert.is_false(ask(way[1], way[2], 50)) end
  end)

  it("may drift, and be set back", function()
    ask(0, 0, 50)
    clock:advance(100)
    assert.is_false(ask(0, 0, 50.9))
    assert.is_false(ask(0, 0, 40))
  end)

  it("is found stepped forward when it is ahead by more than it can be", function()
    ask(0.1, 0.1, 50)
    ask(0.01, 0.2, 50)
    assert.is_true(ask(0, 0, 50.1))
    clock:advance(0.01)
    assert.is_false(ask(0, 0, 50.1))
  end)

  it("is found stepped forward from when it was set back, too", function()
    ask(0, 0, 50)
    ask(0, 0, 40)
    assert.is_true(ask(0, 0, 50))
  end)

  it("is due for no less than it showed, but for what clocks drift, and for less once it was set back", function()
    local core = require "crown.core"
    local function is_due_to_be_ahead(seconds)
      local ahead = server:due() - core.now()
      assert.is_true(math.abs(ahead - seconds) < 1e-4, ahead)
    end
    assert.equal(0, server:due())
    ask(0.1, 0.3, 50)
    is_due_to_be_ahead(50 - 0.3 - 0.02)
    ask(0.3, 0.1, 50)
    is_due_to_be_ahead(50 - 0.1 - 0.02)
    ask(0.1, 0.3, 50)
    clock:advance(9.6)
    is_due_to_be_ahead(50 - 0.1 - 0.1 - 0.02)
    ask(1, 0, 49) -- it may be the question that was late
    is_due_to_be_ahead(50 - 0.1 - 0.11 - 0.02)
    ask(0, 0, 40)
    is_due_to_be_ahead(40 - 0.02)
  end)

  it("is due for what it showed, also after an answer that was long on its way from a clock that has drifted", function()
    local core = require "crown.core"
    ask(0, 0, 50)
    ask(0, 5, 49.99) -- servers tell milliseconds
    assert.near(50 - 0.05 - 0.02, server:due() - core.now(), 1e-4)
    clock:advance(95)
    ask(0, 5, 49.5)
    assert.near(50 - 1.05 - 0.02, server:due() - core.now(), 1e-4)
  end)

  it("is stepped by no less than a few milliseconds, also when a question was long on its way before", function()
    ask(0, 0, 50)
    assert.is_false(ask(0, 0, 50.01))
    assert.is_false(ask(5, 0, 50))
    assert.is_true(ask(0, 0, 53))
  end)

  it("stays in doubt until that is written down", function()
    local core = require "crown.core"
    local function is_doubted(ahead) return server:is_doubted(core.now(), core.now() + ahead) end
    assert.is_false(is_doubted(50))
    clock:advance(1)
    assert.is_true(is_doubted(60))
    clock:advance(1)
    assert.is_true(is_doubted(60))
    clock:advance(1)
    assert.is_true(is_doubted(70)) -- stepped again meanwhile
    clock:advance(1)
    server:settle()
    assert.is_false(is_doubted(70))
  end)

  it("is not believed by who had asked before that was found", function()
    ask(0, 0, 50)
    local sent = require("crown.core").now()
    assert.is_true(ask(0, 0, 60))
    clock:advance(1)
    assert.is_true(server:saw(sent, sent + 60))
    assert.is_false(ask(0, 0, 60))
  end)
end)
