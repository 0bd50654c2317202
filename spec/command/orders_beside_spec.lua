-- Operators' orders in stores whose elections are in the format of others: the orders stand beside them. With real processes on
-- real servers.
local crown = require "crown"
local Election = require "support.ordered_election"
local stores = require "torture.stores"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"
local Wire = require "support.nats_wire"
local zookeeper = require "crown.zookeeper.wire"

local GARBAGE = '{"pause":"yes"}'

-- Each: `spoil(store, name)` makes its orders unreadable; `knows`: who is a candidate, so that a hand-over to nobody is refused;
-- `has_no_ttl`.
local STORES = {
  { name = "etcd", knows = true, spoil = function(store, name)
    store.server:ctl("--user", "root:secret", "put", name .. ".orders", GARBAGE)
  end },
  { name = "kubernetes", spoil = function(store, name)
    store.server:edit(name, function(found) found.metadata.annotations = { ["crown-lua/orders"] = GARBAGE } end)
  end },
  { name = "advisory", spoil = function(store, name)
    store.hands.server:sql("INSERT INTO crown_advisory_orders_v1 VALUES ($1, $2) ON CONFLICT (lock_name) DO UPDATE "
      .. " SET orders = excluded.orders", name, GARBAGE)
    store.hands.server:sql("SELECT pg_notify('crown_advisory_orders_v1', $1)", name)
  end },
  { name = "file", has_no_ttl = true, spoil = function(store, name)
    write_file(store.dir .. ("/%s.orders"):format(name), GARBAGE)
  end },
  { name = "nats", spoil = function(store, name)
    local wire = Wire.open(store.server.port)
    pcall(wire.make_bucket, wire, "SPEC_orders", 0) -- it may be there
    assert(wire:ask("$KV.SPEC_orders." .. name, nil, GARBAGE).seq)
    wire.connection:write(("PUB crown.evict.SPEC.%s 6\r\norders\r\n"):format(name))
  end },
  { name = "zookeeper", knows = true, spoil = function(store, name)
    store.server:ask("create", "/torture/@orders", "", zookeeper.OPEN, zookeeper.PERSISTENT)
    assert(store.server:ask("create", "/torture/@orders/" .. name, GARBAGE, zookeeper.OPEN, zookeeper.PERSISTENT))
    assert(store.server:ask("set", "/torture/@orders", "", -1))
  end },
}

local SOON = Election.SOON
local TTL = 4 -- seconds

local function describe_store(one)
  describe("an operator's order on " .. one.name, function()
    local store, dir, election, name

    setup(function() store, dir = stores.start(one.name), tempdir() end)
    teardown(function() store.server:destroy() end)

    before_each(function()
      local text = store.url()
      if not one.has_no_ttl then text = ("%s%sttl=%g"):format(text, text:find "?" and "&" or "?", TTL) end
      election = Election.new(text, dir)
      name = election.name
    end)
    after_each(function() election:destroy() end)

    it("has nobody lead until resume, and says since when, by whom and why", function()
      local first, second = election:leader "one", election:follower "two"
      assert.matches("^'[%w-]+' is paused until crown%-lua resume\none leads no more\n$",
        election:command(0, "pause", name, "--why", "a new disk", "--wait", SOON))
      local said = "paused since %d+%-%d+%-%d+ %d+:%d+:%d+ [+-]%d%d%d%d by [%w@.-]+: a new disk"
      election:says(first, "leadership.lost [^\n]*reason=paused error=\"" .. said)
      election:says(second, "leadership.barred [^\n]*reason=paused error=\"" .. said)
      local third = election:start "three"
      election:says(third, "leadership.barred [^\n]*reason=paused")
      assert.equal(0, election:count(first, second, third))
      local listed = crown.json.decode(election:command(0, "info", name, "--json")).elections[1]
      assert.same({ true, "a new disk", nil }, { listed.orders.pause, listed.orders.why, listed.node })
      assert.matches(said, election:command(0, "info", name))
      assert.equal(("'%s' may be led again\n"):format(name), election:command(0, "resume", name))
      election:is_led_by_one_of(first, second, third)
      assert.matches("is not paused", election:command(1, "resume", name))
    end)

    it("lets who leads go on through a pause, and nobody follow when that is killed", function()
      local first, second = election:leader "one", election:follower "two"
      assert.matches("; one leads on\n$", election:command(0, "pause", name, "--keep"))
      election:says(second, "leadership.barred [^\n]*; a leader may go on")
      election:leads(first)
      first:hurt("KILL", "supervise", "runtime")
      crown.sleep(2 * TTL) -- in which the lease ends, and would be claimed
      assert.equal(0, election:count(second))
      election:command(0, "resume", name)
      election:leads(second)
    end)

    it("has a node lead next, there and back", function()
      local first, second, third = election:leader "one", election:follower "two", election:follower "three"
      assert.matches("^'[%w-]+' is led by three now %(epoch %d+%)\n$",
        election:command(0, "handover", name, "--to", "three", "--wait", SOON))
      election:leads(third)
      assert.matches("is led by one now", election:command(0, "handover", name, "--to", "one", "--wait", SOON))
      election:leads(first)
      assert.equal(0, election:count(second, third))
      election:says(first, "leadership.lost [^\n]*reason=handover error=\"handed over to three since")
      election:says(first, "leadership.allowed")
      assert.matches("one leads '[%w-]+' already", election:command(1, "handover", name, "--to", "one"))
      if one.knows then
        assert.matches("no runtime of the node 'nobody' is known", election:command(1, "handover", name, "--to", "nobody"))
      else
        assert.matches("nobody did not come: '[%w-]+' is led by %a+ now",
          election:command(1, "handover", name, "--to", "nobody", "--within", 1, "--wait", SOON))
      end
      election:command(0, "pause", name, "--keep")
      assert.matches("is paused since .*: resume it first", election:command(1, "handover", name, "--to", "two"))
    end)

    it("has that node lead also where the leader is killed in the middle", function()
      local first, second, third = election:leader "one", election:follower "two", election:follower "three"
      first:hurt("STOP", "supervise", "runtime")
      election:command(nil, "handover", name, "--to", "three", "--wait", 0, "--within", 60)
      first:hurt("KILL", "supervise", "runtime")
      election:leads(third)
      assert.equal(0, election:count(second))
    end)

    it("that cannot be read keeps nobody from leading, and gives way to the next", function()
      local first = election:leader "one"
      one.spoil(store, name)
      election:says(first, "the orders of '[%w-]+' cannot be read, and nobody obeys them")
      local second = election:follower "two"
      assert.same({ 1, 0 }, { election:count(first), election:count(second) })
      election:command(0, "pause", name, "--wait", SOON)
      assert.equal(0, election:count(first, second))
      election:command(0, "resume", name)
      election:is_led_by_one_of(first, second)
    end)
  end)
end

for _, one in ipairs(STORES) do describe_store(one) end
