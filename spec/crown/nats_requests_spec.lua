local core = require "crown.core"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Requests = require "crown.nats.requests"

local MOST = 256

describe("questions on a connection to NATS", function()
  local requests, sent, answers, asked

  before_each(function()
    sent, answers, asked = {}, {}, 0
    requests = Requests.new(function(one) sent[#sent + 1] = one end)
  end)

  local function ask(name, options)
    local one = { name = name, timeout = options and options.timeout or 600, new = options and options.new }
    crown.spawn(function()
      asked = asked + 1
      answers[name] = { requests:ask(one) }
    end)
  end

  local function fill()
    for i = 1, MOST do ask(i) end
    eventually(function() return #sent == MOST end, 20)
  end

  local function asked_reach(count)
    eventually(function() return asked == count end, 20)
  end

  it("wait without an answer so many at once and no more; an answer makes room for the next one", function()
    fill()
    ask "one more"
    asked_reach(MOST + 1)
    assert.equal(MOST, #sent)
    requests:answer(sent[7].id, "yes")
    eventually(function() return answers[sent[7].name] end, 20)
    assert.same({ "yes" }, answers[sent[7].name])
    assert.equal("one more", sent[MOST + 1].name)
  end)

  it("go out in their order, those that go on with something before those that begin", function()
    fill()
    for _, name in ipairs { "new 1", "new 2" } do ask(name, { new = true }) end
    asked_reach(MOST + 2)
    for _, name in ipairs { "begun 1", "begun 2" } do ask(name) end
    asked_reach(MOST + 4)
    for i = 1, 4 do requests:answer(sent[i].id, true) end
    local names = {}
    for i = 1, 4 do names[i] = sent[MOST + i].name end
    assert.same({ "begun 1", "begun 2", "new 1", "new 2" }, names)
  end)

  it("are not sent when they have waited for their turn for too long", function()
    fill()
    ask("late", { timeout = 0.01 })
    eventually(function() return answers.late end, 20)
    requests:answer(sent[1].id, true)
    ask "in time"
    eventually(function() return #sent == MOST + 1 end, 20)
    assert.equal("in time", sent[MOST + 1].name)
    assert.same({ nil, "busy" }, { answers.late[1], answers.late[3] })
  end)

  it("have the whole time for their answer however long they waited for their turn", function()
    fill()
    ask("last", { timeout = 5 })
    asked_reach(MOST + 1)
    local at = core.now()
    core.sleep(0.2)
    requests:answer(sent[1].id, true)
    assert.is_true(sent[MOST + 1].over >= at + 5.2)
  end)

  it("leave their room to others when their answer is overdue, also where nobody waits for it any more", function()
    for i = 1, MOST do -- a wait that is refused: it never comes to its end
      pcall(coroutine.wrap(function() requests:ask { name = i, timeout = 0.05 } end))
    end
    assert.equal(MOST, #sent)
    eventually(function()
      ask("after " .. asked)
      core.sleep(0.05)
      return #sent > MOST
    end, 20)
  end)

  -- Asks many as one.
  local function ask_lot(count, timeout)
    local lot = { name = "lot", timeout = timeout or 600, count = count, answers = {} }
    crown.spawn(function()
      asked = asked + 1
      answers.lot = { requests:ask(lot) }
    end)
    return lot
  end

  it("may be many at once, which go out when there is room for all, before what comes later", function()
    fill()
    local lot = ask_lot(3)
    asked_reach(MOST + 1)
    ask "after"
    asked_reach(MOST + 2)
    for i = 1, 2 do requests:answer(sent[i].id, true) end
    assert.equal(MOST, #sent)
    requests:answer(sent[3].id, true)
    assert.equal(lot, sent[MOST + 1])
    assert.equal(MOST + 1, #sent)
    for i = 2, 0, -1 do requests:answer(lot.id + i, "answer " .. i) end
    eventually(function() return answers.lot end, 20)
    assert.same({ true }, answers.lot)
    assert.same({ "answer 0", "answer 1", "answer 2" }, lot.answers)
    assert.equal("after", sent[MOST + 2].name)
  end)

  it("of which not all are answered have the answers of the others", function()
    local lot = ask_lot(3, 0.05)
    eventually(function() return lot.sent end, 20)
    requests:answer(lot.id + 2, "third")
    eventually(function() return answers.lot end, 20)
    assert.same({ nil, "timeout" }, { answers.lot[1], answers.lot[3] })
    assert.same({ [3] = "third" }, lot.answers)
  end)

  it("are all told when the connection closes, sent or not, and so is who asks then", function()
    fill()
    ask "one more"
    asked_reach(MOST + 1)
    requests:give_up "gone"
    eventually(function() return answers["one more"] and answers[1] end, 20)
    for _, name in ipairs { 1, MOST, "one more" } do assert.same({ nil, "gone", "closed" }, answers[name]) end
    assert.same({ nil, "gone", "closed" }, { requests:ask { name = "too late", timeout = 5 } })
    assert.equal(MOST, #sent)
  end)
end)
