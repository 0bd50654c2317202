-- A registry's store that is not believed for a while: its epochs went back, or its server's clock was set back and put right, so
-- that leases end too early by it (R12, R14).
local candidate = require "crown.registry.candidate"
local clocked_postgres = require "support.clocked_postgres"
local crown = require "crown"
local elector = require "crown.registry.elector"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local Store = require "crown.registry.store"

local HOUR = 3600
local TTL = 20

describe("a registry's store", function()
  local clock, server, name, opened

  clocked_postgres(function(...) server, clock = ... end)
  before_each(function()
    name, opened = ("spec-%d"):format(math.random(1e9)), {}
  end)
  after_each(function()
    for _, store in ipairs(opened) do store:close() end
  end)

  -- As another runtime has it.
  local function open()
    local store = assert(Store.open { url = server.url, registry = name, ttl = TTL, timeout = 5, amnesia_wait = 0, trust_empty = true,
      emit = function() end, heard = function() end })
    opened[#opened + 1] = store
    return store
  end

  -- a and b are members, and a leads.
  local function a_leads(store, epoch)
    assert(store:ask("enqueue", { messages = { { kind = "nonsense" } } }))
    local view, members = assert(store:ask("read", {})), {}
    for _, one in ipairs { "a", "b" } do
      members[elector.member_id(one, name)] = { token = "t" .. one, runtime = "r" .. one, number = 1, address = "127.0.0.1:1", ttl = TTL,
        joined_at = view.now, expires_at = view.now + TTL }
    end
    assert.is_true(store:ask("decide", { version = view.version, number = view.head.number, changed = true, lock = TTL,
      state = { members = members, leader = elector.member_id("a", name), leader_token = "ta", epoch = epoch } }))
    return assert(store:ask("assume", { id = elector.member_id("a", name), token = "ta", epoch = epoch }))
  end

  local function heartbeat(store, node)
    return assert(store:ask("heartbeat", { id = elector.member_id(node, name), token = "t" .. node, ttl = TTL }))
  end

  local function is_doubted(view)
    assert.is_true(view.distrust ~= nil and view.distrust > TTL / 2 and view.distrust < 2 * TTL, tostring(view.distrust))
  end

  local function counted()
    return server:sql "SELECT set_back FROM crown_store_v1 WHERE part = 'registry'"[1].set_back
  end

  describe("whose epochs went back", function()
    -- An older state that was put back, and has written more since than it had lost: nothing else shows it.
    local function go_back() server:sql("UPDATE crown_registry_v1 SET epoch = 3, assumed = 3 WHERE registry = $1", name) end

    it("is sat out by who has read them, and goes on above the last", function()
      local store = open()
      assert.is_nil(a_leads(store, 7).distrust)
      go_back()
      local view = assert(store:ask("read", {}))
      is_doubted(view)
      assert.is_true(view.epoch_floor > 7)
      is_doubted(assert(open():ask("read", {})))
    end)

    it("is sat out by a member that only sends its heartbeat", function()
      local store = open()
      a_leads(store, 7)
      go_back()
      is_doubted(heartbeat(store, "b"))
    end)

    it("is sat out where its row is gone", function()
      local store = open()
      a_leads(store, 7)
      server:sql "ALTER TABLE crown_registry_v1 DISABLE TRIGGER crown_registry_v1_keep"
      server:sql("DELETE FROM crown_registry_v1 WHERE registry = $1", name)
      server:sql "ALTER TABLE crown_registry_v1 ENABLE TRIGGER crown_registry_v1_keep"
      local view = assert(store:ask("read", {}))
      is_doubted(view)
      assert.is_true(view.epoch_floor > 7)
    end)

    it("is sat out by who has read the last of them as it wrote down another doubt", function()
      local store = open()
      a_leads(store, 2)
      server:sql [[CREATE FUNCTION led_on() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN UPDATE crown_registry_v1 SET epoch = 7, assumed = 7; RETURN NULL; END']] -- by another member, right then
      server:sql "CREATE TRIGGER led_on AFTER UPDATE ON crown_store_v1 FOR EACH ROW EXECUTE FUNCTION led_on()"
      clock:set(HOUR)
      local view = assert(store:ask("read", {}))
      is_doubted(view)
      assert.equal(7, view.epoch)
      server:sql "DROP FUNCTION led_on CASCADE"
      server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch', epoch_floor = 0" -- as if that were over
      go_back()
      is_doubted(assert(store:ask("read", {})))
    end)

    it("is believed again when it was sat out, and is not doubted for ever", function()
      local store = open()
      a_leads(store, 7)
      go_back()
      assert(store:ask("read", {}))
      server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch'" -- as if that were over
      assert.is_nil(assert(store:ask("read", {})).distrust)
    end)
  end)

  describe("whose tables are dropped beneath a connection that lasts", function()
    -- All that members ask for works again, for who had a connection before.
    local function dropped(gone)
      local store = open()
      a_leads(store, 7)
      server:sql("DROP TABLE " .. gone)
      local view
      eventually(function() view = store:ask("read", {}) return view end, 20)
      assert(store:ask("enqueue", { messages = { { kind = "nonsense" } } }))
      return view
    end

    it("makes them anew, and is sat out", function()
      for _, gone in ipairs { "crown_registry_v1, crown_registry_queue_v1, crown_store_v1", "crown_registry_v1", "crown_store_v1" } do
        is_doubted(dropped(gone))
        server:empty()
      end
    end)

    it("makes a column anew, and is sat out: what it said is lost", function()
      for _, column in ipairs { "epoch", "members", "leader" } do
        local store = open()
        a_leads(store, 7)
        server:sql("ALTER TABLE crown_registry_v1 DROP COLUMN " .. column)
        local view
        eventually(function() view = store:ask("read", {}) return view end, 20)
        is_doubted(view)
        is_doubted(assert(open():ask("read", {})))
        assert.is_true(view.epoch_floor > 7)
        server:empty()
      end
    end)

    it("says what to do where a column is gone that cannot be made anew", function()
      local store, problem = open(), nil
      a_leads(store, 7)
      server:sql "ALTER TABLE crown_registry_queue_v1 DROP COLUMN message"
      eventually(function()
        problem = select(2, store:ask("read", {}))
        return problem and problem:find "DROP TABLE crown_registry_queue_v1, and all of it is made anew"
      end, 20)
    end)

    it("makes its queue anew, and is believed", function()
      assert.is_nil(dropped("crown_registry_queue_v1").distrust)
    end)
  end)

  for what, members in pairs { text = '"x"', nothing = "null", ["a list"] = "[1]", ["no member"] = '{"r@a": 7}',
    ["a member without its lease"] = '{"r@a": {"token": "ta", "runtime": "ra", "number": 1, "address": "h:1", "ttl": 5}}',
    ["a member whose lease ends at no time"] = '{"r@a": {"expires_at": "x"}}' } do
    it("whose members somebody has made " .. what .. " says so, and what to do, also to who comes anew", function()
      local store = open()
      a_leads(store, 7)
      server:sql("UPDATE crown_registry_v1 SET members = $2::jsonb WHERE registry = $1", name, members)
      for _, one in ipairs { store, open() } do
        local view, problem = one:ask("read", {})
        assert.is_nil(view)
        assert.is_truthy(problem:find(("the members of '%s' in crown_registry_v1 are none"):format(name), 1, true), problem)
        assert.is_truthy(problem:find("SET members = '{}'", 1, true), problem)
      end
      local env = { CROWN_ORACLE = "registry+" .. server.url }
      local shown = run({ "info" }, { env = env })
      assert.equal(0, shown.code, shown.stderr)
      local warning = ("Warning    the members of '%s' in crown_registry_v1 are none: stop all of them, then UPDATE"):format(name)
      assert.is_truthy(shown.stdout:find(warning, 1, true), shown.stdout)
      assert.matches("\n" .. name:gsub("%-", "%%-") .. " +%- +7", shown.stdout)
      local evicted = run({ "evict", "--force", name }, { env = env })
      assert.is_truthy(evicted.stderr:find(("nobody leads '%s'"):format(name), 1, true), evicted.stderr)
    end)
  end

  describe("whose clock was set back and put right", function()
    it("is sat out by who has not seen that, where the leader has sent a heartbeat by it", function()
      local one, two = open(), open()
      a_leads(one, 1)
      assert.is_nil(heartbeat(two, "b").distrust)
      clock:set(-HOUR)
      for _ = 1, 2 do assert.is_nil(heartbeat(one, "a").distrust) end
      assert.equal(1, counted())
      clock:set(0)
      is_doubted(assert(two:ask("read", {})))
    end)

    it("is sat out where that is found by a heartbeat, too", function()
      local one, two = open(), open()
      a_leads(one, 1)
      assert.is_nil(heartbeat(two, "b").distrust)
      clock:set(-HOUR)
      heartbeat(one, "a")
      clock:set(0)
      is_doubted(heartbeat(two, "b"))
    end)

    it("is sat out where the leader has looked before its heartbeat", function()
      local one, two = open(), open()
      a_leads(one, 1)
      assert.is_nil(heartbeat(two, "b").distrust)
      clock:set(-HOUR)
      assert.is_nil(assert(one:ask("read", {})).distrust)
      heartbeat(one, "a")
      clock:set(0)
      is_doubted(assert(two:ask("read", {})))
    end)

    it("is waited for no longer than a lease lasts while it is behind", function()
      local view = { members = { ["r@a"] = { token = "ta", ttl = TTL, expires_at = HOUR } }, leader = "r@a", leader_token = "ta",
        epoch = 1, assumed = 1, now = 1 }
      local follower, told = { joined = true, id = "r@b", heartbeat = function(_, done) done(view) end,
        leads = function() return false end }, nil
      candidate.claim(follower, function(_, holder) told = holder end)
      assert.equal(TTL, told.expires_in)
    end)

    it("is doubted where only who came anew has used it while it was set back", function()
      a_leads(open(), 1)
      clock:set(-HOUR)
      assert.is_nil(heartbeat(open(), "a").distrust)
      assert.equal(1, counted())
      clock:set(0)
      is_doubted(assert(open():ask("read", {})))
    end)

    it("drops no member by who comes anew before its lease ends too early", function()
      local one = open()
      a_leads(one, 1)
      clock:set(-TTL / 2)
      for _ = 1, 2 do heartbeat(one, "b") end
      clock:set(0)
      local two = open()
      assert(two:ask("read", {}))
      server:sql([[UPDATE crown_registry_v1 SET members =
        jsonb_set(members, ARRAY[$1, 'expires_at'], to_jsonb(extract(epoch FROM clock_timestamp())))]], elector.member_id("b", name))
      local view = assert(two:ask("read", {}))
      local left = view.members[elector.member_id("b", name)].expires_at - view.now
      assert.is_true(left > 0.4 * TTL and left <= TTL / 2, left)
      assert.is_nil(view.distrust)
    end)

    it("is known by the time of the last heartbeat", function()
      local one = open()
      a_leads(one, 1)
      local before = crown.now()
      eventually(function() return crown.now() > before + 1 end)
      heartbeat(one, "a")
      clock:set(-0.5)
      heartbeat(open(), "b")
      assert.equal(1, counted())
    end)

    it("is doubted by who has seen nothing else where a lease may have ended too early, and only then", function()
      local one = open()
      a_leads(one, 1)
      clock:set(-HOUR)
      heartbeat(one, "a")
      assert.is_nil(assert(open():ask("read", {})).distrust)
      clock:set(0)
      is_doubted(assert(open():ask("read", {})))
    end)
  end)
end)
