-- Many who ask one store: crown.link.crowd.
local core = require "crown.core"
local crown = require "crown"
local Crowd = require "crown.link.crowd"
local eventually = require("crown.testing").eventually
local promise = require "crown.core.promise"

describe("a crowd before a store", function()
  local store, crowd, calls

  -- A call of the store waits until it is let go, where it is held.
  local function asked(kind, list)
    local names = {}
    for i, one in ipairs(list) do names[i] = type(one) == "table" and one.name or one end
    local call = { kind = kind, names = names, answer = promise() }
    calls[#calls + 1] = call
    if store.held then return call.answer:wait(math.huge) end
  end

  before_each(function()
    calls = {}
    store = { rows = {}, deaf = true }
    function store:look(names)
      local one, problem, code = asked("look", names)
      if one == false then return nil, problem, code end
      local answers = {}
      for _, name in ipairs(names) do answers[name] = { text = self.rows[name] or false, version = self.rows[name] or false } end
      return answers
    end
    function store:swap(writes)
      local one, problem, code = asked("swap", writes)
      if one == false then return nil, problem, code end
      if one == "error" then error("out of order", 0) end
      local results = {}
      for i, write in ipairs(writes) do
        results[i] = (self.rows[write.name] or false) == write.version and write.text
        if results[i] then self.rows[write.name] = write.text end
        if write.text == "lost" then results[i] = nil end
      end
      return results
    end
    function store:names() return { self == store } end
    crowd = Crowd.new(store, function(name) return name:sub(1, 1) == "@" end)
  end)

  -- Asks in a task of its own. @return where the answer will be
  local function ask(kind, list)
    local place = {}
    place.task = crown.spawn(function() place.answer = { crowd[kind](crowd, list) } end)
    return place
  end

  local function write(name, text, version) return { name = name, version = version or false, text = text, memory = "m" } end

  local function all_answered(places)
    eventually(function()
      for _, place in ipairs(places) do
        if not place.answer then return false end
      end
      return true
    end)
  end

  it("asks once for what is asked in one turn, and for each name once", function()
    store.rows.session = "s"
    local places = {}
    for i = 1, 100 do places[i] = ask("look", { "e" .. i, "session" }) end
    all_answered(places)
    assert.equal(1, #calls)
    assert.equal(101, #calls[1].names)
    for i = 1, 100 do
      assert.equal("s", places[i].answer[1].session.text)
      assert.is_false(places[i].answer[1]["e" .. i].text)
    end
  end)

  it("answers no look from a call that is under way", function()
    store.held = true
    local one = ask("look", { "a" })
    eventually(function() return #calls == 1 end)
    store.rows.a = "new"
    local two = ask("look", { "a" })
    eventually(function() return #calls == 2 end)
    calls[2].answer:resolve(true)
    eventually(function() return two.answer end)
    assert.is_nil(one.answer)
    calls[1].answer:resolve(true)
    eventually(function() return one.answer end)
  end)

  it("joins what waits while two calls are under way", function()
    store.held = true
    local places = {}
    for i = 1, 10 do
      places[i] = ask("look", { "e" .. i })
      core.sleep(0.002)
    end
    assert.equal(2, #calls)
    store.held = false
    for i = 1, 2 do calls[i].answer:resolve(true) end
    all_answered(places)
    assert.is_true(#calls <= 4)
  end)

  it("sends at most 128 writes in a call, those of an urgent name first", function()
    store.held = true
    local places = {}
    for i = 1, 400 do places[i] = ask("swap", { write("e" .. i, "x" .. i) }) end
    eventually(function() return #calls == 2 end)
    places[401] = ask("swap", { write("@session", "renewed") })
    core.sleep(0)
    store.held = false
    for i = 1, 2 do calls[i].answer:resolve(true) end
    all_answered(places)
    assert.equal("@session", calls[3].names[1])
    for i, call in ipairs(calls) do assert.is_true(#call.names <= 128, tostring(i)) end
    for i = 1, 400 do assert.equal("x" .. i, places[i].answer[1][1]) end
  end)

  it("puts two writes of one name into two calls", function()
    local one, two, other = ask("swap", { write("a", "1") }), ask("swap", { write("a", "2") }), ask("swap", { write("b", "3") })
    all_answered { one, two, other }
    assert.equal(2, #calls)
    assert.same({ "1", false, "3" }, { one.answer[1][1], two.answer[1][1], other.answer[1][1] })
    assert.same({ { true }, { "4", false } }, { { crowd:swap({ write("c", "4") })[1] == "4" },
      crowd:swap { write("d", "4"), write("d", "5") } })
  end)

  it("tells all writers of a call that ends unknown that nobody knows, and goes on", function()
    store.held = true
    local one, two = ask("swap", { write("a", "1") }), ask("swap", { write("b", "2"), write("c", "3") })
    eventually(function() return #calls == 1 end)
    calls[1].answer:resolve(false, "no answer", "timeout")
    all_answered { one, two }
    assert.same({ { nil, "no answer", "timeout" }, { nil, "no answer", "timeout" } }, { one.answer, two.answer })
    local three = ask("swap", { write("a", "1") })
    eventually(function() return #calls == 2 end)
    calls[2].answer:resolve "error"
    all_answered { three }
    assert.same({ nil, "out of order" }, three.answer)
    store.held = false
    assert.same({ "1" }, crowd:swap { write("a", "1") })
  end)

  it("says of one write that nobody knows", function()
    local results = crowd:swap { write("a", "lost"), write("b", "2") }
    assert.same({ nil, "2" }, { results[1], results[2] })
    assert.same({ nil, "nobody knows whether it was written", "store" }, { crowd:swap { write("c", "lost") } })
  end)

  it("answers the others when one who asked is cancelled, also the first one", function()
    store.held = true
    local places = {}
    for i = 1, 3 do places[i] = ask("look", { "a", "e" .. i }) end
    places[1].task:cancel()
    eventually(function() return #calls == 1 end)
    places[2].task:cancel()
    calls[1].answer:resolve(true)
    all_answered { places[3] }
    assert.is_truthy(places[3].answer[1].a)
    assert.same({ "cancelled", "cancelled" }, { places[1].answer[3], places[2].answer[3] })
    store.held = false
    assert.is_truthy(crowd:look { "a" })
  end)

  it("sends no write whose writer was cancelled before", function()
    store.held = true
    local places = {}
    for i = 1, 2 do
      places[i] = ask("swap", { write("e" .. i, "x") })
      eventually(function() return #calls == i end)
    end
    local late, other = ask("swap", { write("late", "x") }), ask("swap", { write("other", "x") })
    core.sleep(0)
    late.task:cancel()
    core.sleep(0)
    store.held = false
    for i = 1, 2 do calls[i].answer:resolve(true) end
    all_answered { places[1], places[2], other }
    assert.same({ "other" }, calls[3].names)
    assert.is_nil(store.rows.late)
  end)

  it("asks parts that fail apart one by one", function()
    function store.part_of(_, name) return name:sub(1, 1) end
    store.held = true
    local one, two = ask("look", { "a1" }), ask("look", { "b1" })
    eventually(function() return #calls == 2 end)
    calls[1].answer:resolve(true)
    eventually(function() return one.answer or two.answer end)
    assert.is_nil(one.answer and two.answer)
    calls[2].answer:resolve(false, "down", "timeout")
    all_answered { one, two }
    local both = ask("look", { "a1", "b1" })
    eventually(function() return #calls == 4 end)
    calls[3].answer:resolve(true)
    calls[4].answer:resolve(false, "down", "timeout")
    all_answered { both }
    assert.same({ nil, "down", "timeout" }, both.answer)
  end)

  it("has all that the store has", function()
    assert.same({ { true }, true, nil }, { crowd:names(), crowd.deaf, crowd.hear })
    store.deaf = false
    assert.is_false(crowd.deaf)
    assert.same({}, crowd:look {})
    assert.same({}, crowd:swap {})
  end)
end)
