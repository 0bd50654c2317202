-- What the registry's statements promise: one suite for the real ones on a real Postgres and for the virtual store that the
-- simulation runs, and random statements given to both.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Pgbouncer = require "support.pgbouncer"
local Postgres = require "support.postgres"
local stores = require "support.registry_stores"

local LONG = 1000 -- seconds that never pass here

local function member(token, fields)
  local made = { token = token, runtime = "runtime " .. token, number = 1, address = "127.0.0.1:1", ttl = LONG, joined_at = 1,
    expires_at = 1 }
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

for label, kind in pairs(stores.all) do
  describe(("the %s store of a registry"):format(label), function()
    local store, close

    setup(kind.start)
    teardown(kind.stop)
    before_each(function() store, close = kind.open() end)
    after_each(function() if close then close() end end)

    local function enqueue(message)
      return assert(store:ask("enqueue", { messages = { message or { kind = "nonsense" } } }))
    end

    local function decide(fields)
      local view = store:ask("read", {})
      local args = { version = view.version, number = view.head and view.head.number or 0, state = view, changed = false,
        lock = LONG }
      for key, value in pairs(fields or {}) do args[key] = value end
      return store:ask("decide", args)
    end

    -- a leads in an epoch, and has taken over.
    local function a_leads(epoch)
      enqueue()
      local state = { members = { ["r@a"] = member "ta", ["r@b"] = member "tb" }, leader = "r@a", leader_token = "ta",
        epoch = epoch or 1 }
      assert.is_true(decide { state = state, changed = true })
      return assert(store:ask("assume", { id = "r@a", token = "ta", epoch = epoch or 1 }))
    end

    local function commit(seq, fields)
      local args = { id = "r@a", token = "ta", epoch = 1, seq = seq }
      for key, value in pairs(fields or {}) do args[key] = value end
      return store:ask("commit", args)
    end

    local function committed()
      local view = store:ask("read", {})
      return { view.committed_epoch, view.committed }
    end

    it("reads like an empty one before anybody has joined", function()
      local view = store:ask("read", {})
      assert.same({ 0, 0, 0, 0, 0, 0 }, { view.version, view.epoch, view.assumed, view.locked, view.committed_epoch,
        view.committed })
      assert.same({}, view.members)
      assert.is_nil(view.leader)
      assert.is_nil(view.head)
      assert.is_false(view.evicted)
      assert.equal("number", type(view.now))
    end)

    it("keeps the messages in their order, and shows the first", function()
      assert.equal(1, enqueue { kind = "one" })
      assert.equal(3, store:ask("enqueue", { messages = { { kind = "two" }, { kind = "three" } } }))
      assert.same({ number = 1, message = { kind = "one" } }, store:ask("read", {}).head)
      assert.same({ 1, 2, 3 }, store:queue())
      assert.is_true(decide())
      assert.same({ number = 2, message = { kind = "two" } }, store:ask("read", {}).head)
      assert.equal(4, enqueue())
    end)

    it("goes on with the numbers that are there when its row was lost", function()
      for _ = 1, 3 do enqueue() end
      store:lose_row()
      assert.equal(4, enqueue())
      assert.equal(5, enqueue())
      assert.same({ 1, 2, 3, 4, 5 }, store:queue())
    end)

    it("never hands out a number that is below one that is there", function()
      for _ = 1, 3 do enqueue() end
      store:set { tail = 1 }
      assert.equal(4, enqueue())
      assert.equal(5, enqueue())
    end)

    it("takes a decision as a whole, with the message that it was about", function()
      enqueue()
      enqueue()
      local state = { members = { ["r@a"] = member "ta" }, leader = "r@a", leader_token = "ta", old_leader = "r@z", epoch = 4 }
      assert.is_true(decide { state = state, changed = true })
      local view = store:ask("read", {})
      assert.same({ "r@a", "ta", "r@z", 4, 1, 0 }, { view.leader, view.leader_token, view.old_leader, view.epoch, view.version,
        view.assumed })
      assert.equal("ta", view.members["r@a"].token)
      assert.same({ 2 }, store:queue())
    end)

    it("takes no decision on what has changed since", function()
      enqueue()
      local view = store:ask("read", {})
      a_leads()
      enqueue()
      local before = store:ask("read", {})
      assert.is_false(decide { version = view.version, state = { members = {}, epoch = 9 }, changed = true })
      local later = store:ask("read", {})
      assert.same({ before.version, before.epoch, before.leader }, { later.version, later.epoch, later.leader })
      assert.same(before.head, later.head)
    end)

    it("takes no decision while it is locked, and the lock comes with another leader only", function()
      enqueue()
      enqueue()
      assert.is_true(decide { changed = false })
      assert.equal(0, store:ask("read", {}).locked)
      assert.is_true(decide { changed = true })
      local locked = store:ask("read", {}).locked
      assert.is_true(locked > LONG / 2 and locked <= LONG)
      enqueue()
      assert.is_false(decide())
      store:unlock()
      assert.is_true(decide())
    end)

    it("forgets an eviction with another leader only", function()
      enqueue()
      enqueue()
      store:set { evicted = true }
      assert.is_true(decide { changed = false })
      assert.is_true(store:ask("read", {}).evicted)
      assert.is_true(decide { changed = true })
      assert.is_false(store:ask("read", {}).evicted)
    end)

    it("prolongs the lease of whoever has the token, and of nobody else", function()
      local before = a_leads()
      local view = store:ask("heartbeat", { id = "r@b", token = "tb", ttl = LONG })
      assert.is_true(math.abs(view.members["r@b"].expires_at - view.now - LONG) < 5)
      assert.equal(1, view.members["r@a"].expires_at)
      assert.equal(before.version + 1, view.version)
      assert.equal("tb", view.members["r@b"].token)
    end)

    it("does nothing for a heartbeat with an old token, or of no member", function()
      local before = a_leads()
      for _, args in ipairs { { id = "r@b", token = "older", ttl = LONG }, { id = "r@z", token = "tb", ttl = LONG },
        { id = "r@b", token = "ta", ttl = LONG } } do
        local view = store:ask("heartbeat", args)
        assert.equal(before.version, view.version)
        assert.same(before.members, view.members)
      end
    end)

    it("lets the chosen one take over, for its own epoch, and ends the lock", function()
      enqueue()
      local state = { members = { ["r@a"] = member "ta" }, leader = "r@a", leader_token = "ta", epoch = 3 }
      assert.is_true(decide { state = state, changed = true })
      for _, args in ipairs { { id = "r@b", token = "ta", epoch = 3 }, { id = "r@a", token = "older", epoch = 3 },
        { id = "r@a", token = "ta", epoch = 2 } } do
        local view = store:ask("assume", args)
        assert.same({ 0, 1 }, { view.assumed, view.version })
        assert.is_true(view.locked > 0)
      end
      local view = store:ask("assume", { id = "r@a", token = "ta", epoch = 3 })
      assert.same({ 3, 0, 2 }, { view.assumed, view.locked, view.version })
    end)

    it("commits for whoever leads, in its own epoch", function()
      a_leads()
      assert.is_true(commit(5))
      assert.same({ 1, 5 }, committed())
      assert.is_false(commit(6, { id = "r@b" }))
      assert.is_false(commit(6, { token = "older" }))
      assert.is_false(commit(6, { epoch = 0 }))
      assert.is_false(commit(6, { epoch = 2 }))
      assert.same({ 1, 5 }, committed())
    end)

    -- A statement that was given up runs when its backend goes on.
    it("does not take back what is committed for a commit that comes late", function()
      a_leads()
      assert.is_true(commit(24))
      assert.is_true(commit(4))
      assert.same({ 1, 24 }, committed())
    end)

    it("begins to count anew with a new epoch", function()
      a_leads()
      assert.is_true(commit(24))
      a_leads(2)
      assert.same({ 1, 24 }, committed())
      assert.is_true(commit(0, { epoch = 2 }))
      assert.same({ 2, 0 }, committed())
    end)
  end)
end

describe("a registry's row whose epoch is above all that can be given", function()
  local store, close

  setup(stores.all.real.start)
  teardown(stores.all.real.stop)
  after_each(function() close() end)

  it("is told in words, whatever is asked", function()
    store, close = stores.all.real.open()
    local above = "9007199254740994"
    assert(store:ask("enqueue", { messages = { { kind = "nonsense" } } }))
    local view = store:ask("read", {})
    assert.is_true(store:ask("decide", { version = view.version, number = view.head.number, changed = true, lock = 0,
      state = { members = { ["r@a"] = member "ta" }, leader = "r@a", leader_token = "ta", epoch = 1 } }))
    store:set { epoch = above }
    for op, args in pairs { read = {}, heartbeat = { id = "r@a", token = "ta", ttl = LONG },
      assume = { id = "r@a", token = "ta", epoch = 2 ^ 53 + 2 } } do
      local found, problem = store:ask(op, args)
      assert.is_nil(found, op)
      assert.truthy(problem:find(above, 1, true), op .. ": " .. problem)
    end
  end)
end)

describe("a registry's store behind a pooler", function()
  local server, replica, pooler, store, close

  before_each(function()
    server = Postgres.start()
    pooler = Pgbouncer.start(server)
    store, close = stores.at(pooler.url, server)
    store:ask("enqueue", { messages = { { kind = "one" }, { kind = "two" } } })
    assert.is_true(store:ask("decide", { version = 0, number = 1, changed = true, lock = 0, state = { members = {
      ["r@a"] = member "ta" }, leader = "r@a", leader_token = "ta", epoch = 7 } }))
    assert.equal(7, store:ask("assume", { id = "r@a", token = "ta", epoch = 7 }).assumed)
    replica = server:replica()
    assert.is_true(store:ask("commit", { id = "r@a", token = "ta", epoch = 7, seq = 4 }))
  end)

  after_each(function()
    close()
    pooler:destroy()
    server:destroy()
    replica:destroy()
  end)

  local function row_there()
    return replica:sql("SELECT version, epoch, assumed, committed, members::text AS members FROM crown_registry_v1")[1]
  end

  local statements = {
    decide = function(view) return { version = view.version, number = 2, changed = true, lock = 0, state = { members = {},
      epoch = 8 } } end,
    heartbeat = function() return { id = "r@a", token = "ta", ttl = LONG } end,
    assume = function() return { id = "r@a", token = "ta", epoch = 7 } end,
    commit = function() return { id = "r@a", token = "ta", epoch = 7, seq = 9 } end,
    read = function() return {} end,
  }

  for op, args in pairs(statements) do
    it(("does not believe a promoted replica that takes its server's place: %s"):format(op), function()
      local view = store:ask("read", {})
      assert.is_nil(view.distrust)
      -- As far as the replica has come: then nothing but the place tells them apart.
      eventually(function() return row_there().committed == 4 end)
      replica:promote()
      local before = row_there()
      pooler:lead_to(replica)
      eventually(function()
        local client = crown.postgres.connect(pooler.url)
        local rows = client and client:query "SELECT inet_server_port() AS port"
        if client then client:close() end
        return rows and rows[1].port == replica.port
      end)
      local answer = store:ask(op, args(view))
      assert.is_not_true(answer)
      assert.same(before, row_there())
      local now = store:ask("read", {})
      assert.is_true(now.distrust > 0)
      assert.is_true(now.epoch_floor >= 1000000)
      assert.equal(7, now.epoch)
    end)
  end
end)

describe("the two stores of a registry", function()
  local real, virtual, close

  setup(stores.all.real.start)
  teardown(stores.all.real.stop)
  before_each(function()
    real, close = stores.all.real.open()
    virtual = stores.all.virtual.open()
  end)
  after_each(function() close() end)

  local state

  -- The same statements each time.
  local function dice()
    state = state * 16807 % 2147483647
    return state / 2147483647
  end

  local function pick(list) return list[1 + math.floor(dice() * #list)] end

  local NODES, TOKENS = { "r@a", "r@b", "r@c" }, { "t1", "t2" }

  local function random_state(view)
    local members = {}
    for _, id in ipairs(NODES) do
      if dice() < 0.7 then members[id] = member(pick(TOKENS)) end
    end
    local leader = dice() < 0.9 and pick(NODES) or nil
    return { members = members, leader = leader, leader_token = leader and pick(TOKENS),
      old_leader = dice() < 0.3 and pick(NODES) or nil, epoch = view.epoch + math.floor(dice() * 2) }
  end

  -- Near enough to the truth that much of it is taken.
  local random = {}
  function random.read() return {} end
  function random.enqueue() return { messages = { { kind = "join", id = pick(NODES) }, { kind = "elect" } } } end
  function random.decide(view)
    return { version = view.version - (dice() < 0.3 and 1 or 0), number = view.head and view.head.number or 0,
      state = random_state(view), changed = dice() < 0.5, lock = pick { 0, LONG } }
  end
  function random.heartbeat() return { id = pick(NODES), token = pick(TOKENS), ttl = pick { LONG, 2 * LONG } } end
  function random.assume(view)
    return { id = dice() < 0.8 and view.leader or pick(NODES), token = pick(TOKENS), epoch = view.epoch - math.floor(dice() * 2) }
  end
  function random.commit(view)
    local args = random.assume(view)
    args.seq = math.floor(dice() * 20)
    return args
  end
  local OPS = { "read", "enqueue", "decide", "decide", "heartbeat", "heartbeat", "assume", "assume", "commit", "commit" }

  -- Times differ by what the real one needs.
  local function plain(view)
    if type(view) ~= "table" then return view end
    local members = {}
    for id, one in pairs(view.members) do
      local copy = {}
      for key, value in pairs(one) do copy[key] = value end
      copy.expires_at = math.max(0, math.floor((one.expires_at - view.now) / LONG + 0.5))
      members[id] = copy
    end
    return { version = view.version, epoch = view.epoch, leader = view.leader, leader_token = view.leader_token,
      old_leader = view.old_leader, assumed = view.assumed, members = members, evicted = view.evicted,
      committed_epoch = view.committed_epoch, committed = view.committed, head = view.head, distrust = view.distrust,
      epoch_floor = view.epoch_floor, locked = view.locked > 0 }
  end

  it("answer the same to whatever they are asked", function()
    local taken = {}
    state = 20261
    for step = 1, 1500 do
      local view = virtual:ask("read", {})
      local op = pick(OPS)
      local args = random[op](view)
      local expected, got = plain(virtual:ask(op, args)), plain(real:ask(op, args))
      assert.same(expected, got, ("step %d: %s"):format(step, op))
      assert.same(plain(virtual:ask("read", {})), plain(real:ask("read", {})), ("after step %d: %s"):format(step, op))
      if expected == true or type(expected) == "table" and expected.version > view.version then
        taken[op] = (taken[op] or 0) + 1
      end
      if view.locked > 0 and dice() < 0.2 then
        virtual:unlock()
        real:unlock()
      end
    end
    for _, op in ipairs { "decide", "heartbeat", "assume", "commit" } do assert.is_true((taken[op] or 0) > 10, op) end
  end)
end)

-- A disk that is full takes no writes, and answers whoever reads.
describe("a registry's store that takes no writes", function()
  local server, store, close
  setup(function()
    server = Postgres.start()
    store, close = stores.at(server.url, server)
  end)
  teardown(function()
    close()
    server:destroy()
  end)

  it("says so once, until it takes them again", function()
    local function write() return store:ask("enqueue", { messages = { { kind = "one" } } }) end
    local function errors()
      local count = 0
      for _, one in ipairs(store.events) do count = count + (one.event == "oracle.error" and 1 or 0) end
      return count
    end
    local function fill()
      server:sql [[CREATE OR REPLACE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$]]
      server:sql [[CREATE TRIGGER is_full BEFORE INSERT OR UPDATE ON crown_registry_v1 FOR EACH ROW EXECUTE FUNCTION is_full()]]
    end
    assert.is_number(write())
    for times = 1, 2 do
      fill()
      for _ = 1, 5 do
        assert.is_nil(write())
        assert.is_table(store:ask("read", {}))
      end
      assert.equal(times, errors())
      server:sql "DROP TRIGGER is_full ON crown_registry_v1"
      assert.is_number(write())
    end
  end)
end)
