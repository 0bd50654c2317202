local crown = require "crown"
local eventually = require("crown.testing").eventually
local promise = require "crown.core.promise"
local Reconnecting = require "crown.link.reconnecting"
local Requests = require "crown.nats.requests"
local Redis = require "crown.redis.connection"
local Shared = require "crown.link.shared"

-- So long that others have their turn, where they can.
local function compute()
  local began = os.clock()
  while os.clock() - began < 0.15 do end
end

-- The next who writes down its place computes in the middle of it.
local function interrupted()
  return setmetatable({}, { __newindex = function(waiting, place, one)
    setmetatable(waiting, nil)
    compute()
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

describe("a connection that closes while somebody is about to ask", function()
  -- Who looks whether it is closed computes before it goes on.
  local function about_to_close(class, parts, word, ending)
    local looked
    local connection = setmetatable(parts, { __index = function(_, key)
      if key == word and not looked then
        looked = true
        compute()
        return nil
      end
      return class[key]
    end })
    local function close()
      eventually(function() return looked end, 20)
      class[ending](connection, "gone")
    end
    return connection, close
  end

  local function is_told(close, ask)
    local answer
    crown.spawn(function() answer = { ask() } end)
    close()
    eventually(function() return answer end, 20)
    assert.same({ nil, "gone", "closed" }, answer)
  end

  it("tells so, for Redis", function()
    local connection, close = about_to_close(Redis, { waiting = {}, first = 1, last = 0, over = promise(),
      reader = { is_within = function() end }, stream = { close = function() end, reset = function() end, has_come = function() end },
      outbox = { write = function() end } }, "closed", "close")
    is_told(close, function() return connection:call(2, "PING") end)
  end)

  it("tells so, for NATS", function()
    local requests, close = about_to_close(Requests, Requests.new(function() end), "over", "give_up")
    is_told(close, function() return requests:ask { timeout = 2 } end)
  end)
end)
