-- What tools make of records in a store that is a table.
local crown = require "crown"
local tools = require "crown.register.tools"

local HELD = '{"v":1,"serial":%d,"memory":"m","epoch":3,"by":"@t-12","at":5,"node":"there","nonce":"%d"}'

describe("tools on a register", function()
  local rows, store, looks

  before_each(function()
    rows, looks = {}, {}
    store = {}
    function store.look(_, names)
      looks[#looks + 1] = table.concat(names, " ")
      if store.deaf and #looks >= store.deaf then return nil, "no answer", "timeout" end
      local answers = {}
      for _, name in ipairs(names) do
        local row = rows[name] or { text = false, version = false }
        answers[name] = { text = row.text, version = row.version, memory = "m", peer = row.peer, age = row.age }
      end
      return answers
    end
    function store.swap(_, writes)
      local write = writes[1]
      if store.closed then return nil, "no answer", "timeout" end
      if store.before then store.before() end
      local row = rows[write.name] or { version = false }
      if row.version ~= write.version or write.memory ~= "m" then return { false } end
      rows[write.name] = { text = write.text, version = row.version + 1 }
      return { row.version + 1 }
    end
  end)

  local function hold(name, more)
    rows[name] = { text = HELD:format(1, 1), version = 1 }
    for key, value in pairs(more or {}) do rows[name][key] = value end
  end

  it("list elections by name, and no sessions", function()
    hold "b"
    hold "a"
    rows.c = { text = '{"v":1,"serial":1,"memory":"m","epoch":9}', version = 1 }
    rows["@t-12"] = { text = '{"v":1,"serial":1,"ttl":12,"at":5}', version = 1, age = 4 }
    assert.same({ { name = "a", node = "there", epoch = 3, renewed_ago = 4 }, { name = "b", node = "there", epoch = 3, renewed_ago = 4 },
      { name = "c", epoch = 9 } }, tools.list(store, { "@store", "c", "b", "a", "@t-12", "gone" }))
    assert.same({ "c b a gone", "@t-12" }, looks)
  end)

  it("say that the lease of a session is over that was not renewed for longer, as its followers count it", function()
    hold "a"
    for age, over in pairs { [12] = false, [13] = true } do
      rows["@t-12"] = { text = '{"v":1,"serial":1,"ttl":12,"at":5}', version = 1, age = age }
      local found = tools.list(store, { "a" })[1]
      assert.same({ "there", age, over or nil }, { found.node, found.renewed_ago, found.over })
      assert.equal(over, tools.health(store, "a").facts[1][2]:find("its lease is over", 1, true) ~= nil)
    end
  end)

  it("list no age of a session that is missing", function()
    hold "a"
    rows["@t-12"] = { text = false, version = false, age = 4 }
    assert.is_nil(tools.list(store, { "a" })[1].renewed_ago)
  end)

  it("list why a record cannot be read", function()
    rows.a = { text = "nonsense", version = 1 }
    hold "b"
    local found = tools.list(store, { "a", "b" })
    assert.same({ { name = "a", trouble = "the store's value is not a record of an election" }, { name = "b", node = "there", epoch = 3 } },
      found)
    assert.equal(found[1].trouble, tools.health(store, "a").facts[1][2])
  end)

  it("say where a store takes longer for an answer than a candidate waits", function()
    hold "a"
    assert.same({}, tools.health(store, "a", 5).problems)
    local look = store.look
    function store.look(...)
      crown.sleep(0.02)
      return look(...)
    end
    finally(function() store.look = look end)
    local found = tools.health(store, "a", 0.01).problems
    assert.equal(1, #found)
    assert.matches("^the store took 0%.%d+ s to answer, and a candidate with this ttl waits 0%.01 s", found[1])
    assert.same({}, tools.health(store, "a").problems)
  end)

  it("list a peer, and for how long it holds the lease", function()
    local peer = { node = "peer", epoch = 8, wait = 2.5 }
    hold("a", { peer = peer })
    rows.b = { text = false, version = 2, peer = peer }
    rows.c = { text = "nonsense", version = 2, peer = peer }
    assert.same({ { name = "a", node = "peer", epoch = 8, expires_in = 2.5 }, { name = "b", node = "peer", epoch = 8, expires_in = 2.5 },
      { name = "c", trouble = "the store's value is not a record of an election" } }, tools.list(store, { "a", "b", "c" }))
  end)

  it("say why they know nothing", function()
    hold "a"
    for deaf = 1, 2 do
      for _, ask in ipairs { function() return tools.list(store, { "a" }) end, function() return tools.health(store, "a") end } do
        looks, store.deaf = {}, deaf
        local found, problem, code = ask()
        assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, found, problem, code })
      end
    end
    looks, store.deaf = {}, 1
    for _, ask in ipairs { tools.ask_to_go, tools.has_gone } do
      local found, problem, code = ask(store, "a", { by = "@t-12", at = 5, epoch = 3 })
      assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, found, problem, code })
    end
    store.deaf, store.closed = nil, true
    local found, problem, code = tools.ask_to_go(store, "a")
    assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, found, problem, code })
    rows.a.text = "nonsense"
    found, problem = tools.ask_to_go(store, "a")
    assert.same({ n = 2, nil, "'a': the store's value is not a record of an election: \"nonsense\"; "
      .. "is this the right store? If so, stop its candidates, delete that in the store, and start them again" }, { n = 2, found, problem })
    rows.a.text = '{"v":2}'
    found, problem = tools.ask_to_go(store, "a")
    assert.same({ nil, "a newer version of crown-lua wrote the record of 'a': use that version" }, { found, problem })
  end)

  it("ask a leader to go", function()
    hold "a"
    local leader = tools.ask_to_go(store, "a")
    assert.same({ "@t-12", 5, 3, nil }, { leader.by, leader.at, leader.epoch, leader.directive })
    assert.is_truthy(rows.a.text:find('"directive":"evict"', 1, true))
    assert.is_truthy(rows.a.text:find('"serial":2', 1, true))
    assert.is_false(tools.has_gone(store, "a", leader))
  end)

  it("find nobody to ask", function()
    assert.is_false(tools.ask_to_go(store, "a"))
    rows.a = { text = '{"v":1,"serial":1,"epoch":3}', version = 1 }
    assert.is_false(tools.ask_to_go(store, "a"))
    rows.a.peer = { node = "peer", epoch = 8, wait = 0 }
    assert.is_false(tools.ask_to_go(store, "a"))
  end)

  it("cannot ask a peer", function()
    hold("a", { peer = { node = "peer", epoch = 8, wait = 2.5 } })
    assert.same({ nil, "'a' is led by peer, which takes no evictions; its lease ends in 2.5 s unless it is refreshed" },
      { tools.ask_to_go(store, "a") })
  end)

  it("order, and take orders back, over the holder's record", function()
    hold "a"
    local before = tools.order(store, "a", { pause = true, why = "disk" })
    assert.same({ "@t-12", nil }, { before.by, before.orders })
    local listed = tools.list(store, { "a" })[1]
    assert.same({ "there", "paused: disk", { pause = true, why = "disk" } }, { listed.node, listed.ordered, listed.orders })
    assert.equal("there, epoch 3; paused: disk", tools.health(store, "a").facts[1][2])
    assert.same({ nil, "'a' is paused: disk: resume it first", tools.REFUSED }, { tools.order(store, "a", { to = "b" }) })
    assert.same({ pause = true, why = "disk" }, tools.order(store, "a", false).orders)
    assert.same({ nil, "'a' is not paused", tools.REFUSED }, { tools.order(store, "a", false) })
    assert.is_truthy(rows.a.text:find('"by":"@t-12"', 1, true))
  end)

  it("order nothing where there is no record, or a peer leads", function()
    assert.is_false(tools.order(store, "a", { pause = true }))
    assert.is_nil(rows.a)
    hold("a", { peer = { node = "peer", epoch = 8, wait = 2.5 } })
    assert.same({ nil, "'a' is led by peer, which takes no orders; its lease ends in 2.5 s unless it is refreshed", tools.REFUSED },
      { tools.order(store, "a", { pause = true }) })
  end)

  it("know the nodes whose sessions are not over", function()
    local session = '{"v":1,"serial":1,"ttl":12,"at":5,"node":"%s"%s}'
    for name, one in pairs { ["@a-12"] = { "lives", "", 3 }, ["@b-12"] = { "untold", "" }, ["@c-12"] = { "over", ',"over":5' },
      ["@d-12"] = { "old", "", 13 } } do
      rows[name] = { text = session:format(one[1], one[2]), version = 1, age = one[3] }
    end
    hold "a"
    assert.same({ lives = true, untold = true }, tools.nodes(store, { "a", "@store", "@a-12", "@b-12", "@c-12", "@d-12", "@e-12" }))
  end)

  it("ask again while the record changes, five times", function()
    local function change_for(times)
      hold "a"
      local done = 0
      function store.before()
        done = done + 1
        if done <= times then rows.a = { text = HELD:format(1 + done, done + 1), version = rows.a.version + 1 } end
      end
    end
    change_for(4)
    assert.is_table(tools.ask_to_go(store, "a"))
    change_for(5)
    assert.same({ nil, "the record of 'a' changes faster than it can be written" }, { tools.ask_to_go(store, "a") })
  end)

  it("say that a store writes nothing where nothing changes there", function()
    hold "a"
    function store.swap() return { false } end
    assert.matches("^the store does not write the record of 'a', which nobody else changes", (select(2, tools.ask_to_go(store, "a"))))
  end)

  it("leave alone what a session and the store keep", function()
    local session = '{"v":1,"serial":1,"ttl":12,"at":5,"memory":"m"}'
    rows["@t-12"] = { text = session, version = 1 }
    assert.is_false(tools.ask_to_go(store, "@t-12"))
    assert.is_false(tools.order(store, "@t-12", { pause = true, since = 1, by = "me" }))
    assert.is_false(tools.runs(store, "@t-12", true))
    assert.equal(session, rows["@t-12"].text)
  end)

  it("see that a term is over by session, life and epoch", function()
    hold "a"
    for _, case in ipairs { { "@t-12", 5, 3, false }, { "@u-12", 5, 3, true }, { "@t-12", 4, 3, true }, { "@t-12", 5, 2, true } } do
      assert.equal(case[4], tools.has_gone(store, "a", { by = case[1], at = case[2], epoch = case[3] }))
    end
    rows.a = nil
    assert.is_true(tools.has_gone(store, "a", { by = "@t-12", at = 5, epoch = 3 }))
  end)
end)
