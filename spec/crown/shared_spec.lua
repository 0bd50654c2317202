local crown = require "crown"
local eventually = require("crown.testing").eventually
local promise = require "crown.core.promise"
local Reconnecting = require "crown.link.reconnecting"
local Shared = require "crown.link.shared"

-- The next who writes down its place computes for so long in the middle of it that others would have their turn.
local function interrupted()
  return setmetatable({}, { __newindex = function(waiting, place, one)
    setmetatable(waiting, nil)
    local began = os.clock()
    while os.clock() - began < 0.15 do end
    waiting[place] = one
  end })
end

describe("a shared answer", function()
  it("serves all who asked before its run began, and nobody who asked later", function()
    local runs, gate = 0, promise()
    local shared = Shared.new(function()
      runs = runs + 1
      local run = runs
      if run == 1 then gate:wait() end
      return run
    end)
    local answers = {}
    local function ask() crown.spawn(function() table.insert(answers, (shared:ask(5))) end) end
    ask()
    ask()
    eventually(function() return runs == 1 end)
    ask()
    ask()
    gate:resolve(true)
    eventually(function() return #answers == 4 end)
    assert.same({ 1, 1, 2, 2 }, answers)
    assert.equal(3, shared:ask(5))
  end)

  it("is a failure for all when the function raises, and goes on", function()
    local broken = true
    local shared = Shared.new(function() if broken then error "no luck" end return "fine" end)
    local answer, problem = shared:ask(5)
    assert.is_nil(answer)
    assert.matches("no luck", problem)
    broken = false
    assert.equal("fine", shared:ask(5))
  end)

  it("loses nobody who is interrupted while it asks", function()
    local shared, answers = Shared.new(function() return "fine" end), {}
    shared.waiting = interrupted()
    for i = 1, 3 do crown.spawn(function() answers[i] = { shared:ask(2) } end) end
    eventually(function() return answers[1] and answers[2] and answers[3] end, 20)
    assert.same({ { "fine" }, { "fine" }, { "fine" } }, answers)
  end)
end)

describe("a connection that is made anew", function()
  it("is handed to all who wait for it, also one who is interrupted while it asks", function()
    local gate, connection, answers = promise(), {}, {}
    local link = Reconnecting.new { open = function() gate:wait() return connection end, store = "a store", timeout = 5 }
    link.waiting = interrupted()
    for i = 1, 3 do crown.spawn(function() answers[i] = link:ready(2) or "nothing" end) end
    eventually(function() return #link.waiting == 3 end, 20)
    gate:resolve(true)
    eventually(function() return answers[1] and answers[2] and answers[3] end, 20)
    link.connection = nil -- it has nothing to close
    link:close()
    for i = 1, 3 do assert.equal(connection, answers[i]) end
  end)
end)
