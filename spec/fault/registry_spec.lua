-- The registry when things break: whatever happens to the leader, to a follower, to the links or to the store, one leads at
-- most, and what was acknowledged is there.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Network = require "support.network"
local Postgres = require "support.postgres"
local promise = require "crown.core.promise"
local Registry = require "support.registry"
local takeover = require "support.takeover"
local ticks = require "support.ticks"
local WrongClock = require "support.wrong_clock"

local SECRET = "a secret of the specs"
local clock = WrongClock.new(0)
local server = Postgres.start { clock = clock, config = "listen_addresses = '*'",
  hba = "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all 10.0.0.0/8 trust\n" }

takeover("a leader of a registry", {
  url = server.url:gsub("^postgres", "registry+postgres") .. "?listen=127.0.0.1:0&secret=" .. SECRET:gsub(" ", "-"),
  port = server.port, clock = clock, often = "&refresh=0.2",
  reset = function() server:empty() end,
  drop = function() server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'" end,
  down = function() server:down "immediate" end,
  up = function() server:up() end,
})

-- Registrations of many names by several members at once; `finish` waits for the last and tells who was told yes.
local function fill(members, count)
  local runs = {}
  for i, member in ipairs(members) do
    local run = { member = member, prefix = member.node .. "-", done = promise() }
    runs[i] = run
    crown.spawn(function()
      local twin = member:twin()
      run.yes = twin:ask("fill", { prefix = run.prefix, from = 1, to = count, timeout = 20 }) or {}
      twin:close()
      run.done:resolve(true)
    end)
  end
  return function()
    for _, run in ipairs(runs) do run.done:wait(40) end
    return runs
  end
end

local function check_names(runs, members)
  local acknowledged = 0
  for _, run in ipairs(runs) do
    acknowledged = acknowledged + #run.yes
    for _, member in ipairs(members) do
      eventually(function()
        local names = member:ask "names" or {}
        for _, i in ipairs(run.yes) do
          local entry = names[run.prefix .. i]
          if not entry or entry.owner ~= run.member.node then return false end
        end
        return true
      end, 10)
    end
  end
  return acknowledged
end

local function split(members, leader)
  local leading, others = nil, {}
  for _, one in ipairs(members) do
    if one.node == leader then leading = one else others[#others + 1] = one end
  end
  return leading, others
end

describe("a registry under registrations", function()
  local cluster
  before_each(function()
    cluster = Registry.new { url = server.url, name = ("spec-%d"):format(math.random(1e9)) }
  end)
  after_each(function() cluster:finish() end)

  it("loses none of a thousand that were acknowledged while its leaders end in order", function()
    local members = { cluster:join_all({ "a", "b", "c", "d", "e" }, { child = true }) }
    local writers = { members[4], members[5] }
    local finish = fill(writers, 500)
    for _ = 1, 2 do
      local leader = cluster:await(members)
      local leading, others = split(members, leader)
      if leading == writers[1] or leading == writers[2] then
        server:sql("UPDATE crown_registry_v1 SET evicted = TRUE WHERE registry = $1 RETURNING pg_notify($2, $3)",
          cluster.options.name, "crown_registry_v1", "evict " .. cluster.options.name)
      else
        leading.candidate:signal "TERM"
        leading.candidate:wait(10)
        members = others
      end
    end
    local runs = finish()
    cluster:await(members)
    assert.equal(1000, check_names(runs, members))
    ticks.settle(cluster.ticks)
  end)

  it("loses none that was acknowledged while its leaders are killed, and gives none to two", function()
    local members = { cluster:join_all({ "a", "b", "c", "d", "e" }, { child = true }) }
    local finish = fill(members, 250)
    for _ = 1, 2 do
      local leader = cluster:await(members)
      local leading, others = split(members, leader)
      leading.candidate:hurt("KILL", "supervise", "runtime", "keeper", "warden")
      members = others
      cluster:await(members)
    end
    local runs = finish()
    local left = {}
    for _, run in ipairs(runs) do
      for _, one in ipairs(members) do
        if one == run.member then left[#left + 1] = run end
      end
    end
    assert.equal(3, #left)
    assert.is_true(check_names(left, members) > 500)
    ticks.settle(cluster.ticks)
  end)
end)

describe("whoever holds the lock", function()
  local cluster, name
  before_each(function()
    name = ("spec-%d"):format(math.random(1e9))
    cluster = Registry.new { url = server.url, name = name, ttl = 5 } -- who is stopped is a member for as long as a test needs
  end)
  after_each(function()
    server:sql "DROP TRIGGER IF EXISTS hold_up ON crown_registry_v1"
    cluster:finish()
  end)

  local function row()
    return server:sql([[SELECT *, locked_until > clock_timestamp() AS locked FROM crown_registry_v1 WHERE registry = $1]], name)[1]
  end

  -- b leads and leaves; a is chosen, since c is stopped meanwhile and wins no transaction; c has to take over from there.
  local function three()
    local b = cluster:join "b"
    cluster:await { b }
    local a, c = cluster:join("a", { child = true }), cluster:join("c", { child = true })
    cluster:await { a, b, c }
    assert.is_true(c:ask("register", { name = "kept", value = 1 }))
    c.candidate:hurt("STOP", "supervise", "runtime")
    return a, b, c
  end

  local function is_taken_over(c)
    c.candidate:hurt("CONT", "supervise", "runtime")
    eventually(function() return c:ask "leader" == "c" and not row().locked end, 15)
    cluster:await { c }
    assert.equal("c", ({ c:ask("whereis", { name = "kept" }) })[2])
    ticks.settle(cluster.ticks)
  end

  it("may be killed before it has done anything", function()
    local a, b, c = three()
    a.candidate:hurt("STOP", "supervise", "runtime")
    b.candidate:signal "TERM"
    eventually(function() return row().leader == name .. "@a" and row().locked end, 5)
    a.candidate:hurt("KILL", "supervise", "runtime")
    is_taken_over(c)
  end)

  it("may be killed when it has the names and says so", function()
    server:sql [[CREATE OR REPLACE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(3); RETURN NEW; END $$]]
    local a, b, c = three()
    server:sql [[CREATE TRIGGER hold_up BEFORE UPDATE ON crown_registry_v1 FOR EACH ROW
      WHEN (NEW.assumed > OLD.assumed AND NEW.leader LIKE '%@a') EXECUTE FUNCTION hold_up()]]
    b.candidate:signal "TERM"
    eventually(function()
      return server:sql("SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'")[1].n > 0
    end, 5)
    a.candidate:hurt("KILL", "supervise", "runtime")
    is_taken_over(c)
  end)

  it("may be killed the moment it leads", function()
    local a, b, c = three()
    local client = assert(crown.postgres.connect(server.url))
    client:listen("crown_registry_v1", function(payload)
      if payload:find(("leader %s "):format(name), 1, true) == 1 and payload:find "@a$" then
        a.candidate:hurt("KILL", "supervise", "runtime")
      end
    end)
    Postgres.await_listener(function() return client end)
    b.candidate:signal "TERM"
    eventually(function() return #a.candidate:pids "runtime" == 0 end, 5)
    is_taken_over(c)
    client:close()
  end)
end)

local on_hosts = Network.is_possible() and describe or pending

on_hosts("a registry whose network is parted", function()
  local cluster, network
  local NODES = { "a", "b", "c", "d", "e" }
  local LASTING = 6 -- a TTL where the leader is not to change

  after_each(function()
    cluster:finish()
    network:destroy()
  end)

  local function start(count, ttl)
    local nodes = { unpack(NODES, 1, count) }
    network = Network.new(nodes)
    cluster = Registry.new({ url = ("postgres://crown@%s:%d/crown"):format(network.here, server.port),
      name = ("spec-%d"):format(math.random(1e9)), ttl = ttl }, network)
    local members = { cluster:join_all(nodes, { child = true }) }
    local leading, others = split(members, (cluster:await(members)))
    return members, leading, others
  end

  local function register(member, name)
    return member:ask("register", { name = name, timeout = 1.5 })
  end

  local function is_registered(member, name)
    assert.is_true(member:ask("register", { name = name, timeout = 20 }))
  end

  local function heals(members, names)
    network:heal()
    cluster:await(members, 20)
    for name, owner in pairs(names) do
      for _, one in ipairs(members) do
        eventually(function() return ({ one:ask("whereis", { name = name }) })[2] == owner end, 10)
      end
    end
    ticks.settle(cluster.ticks)
  end

  for _, count in ipairs { 3, 5 } do
    it(("has one leader of %d, and no name lost, when its leader is cut off from everything"):format(count), function()
      local members, leading, others = start(count)
      is_registered(others[1], "before")
      for _, one in ipairs(others) do network:cut(leading.node, one.node) end
      network:cut_port(leading.node, server.port)
      cluster:await(others)
      assert.is_nil((register(leading, "refused")))
      eventually(function() return #leading.candidate:pids "child" == 0 end, 5)
      is_registered(others[2], "meanwhile")
      heals(members, { before = others[1].node, meanwhile = others[2].node })
      assert.is_nil((leading:ask("whereis", { name = "refused" })))
    end)

    it(("keeps its leader of %d when a follower is cut off, and takes it back"):format(count), function()
      local members, leading, others = start(count, LASTING)
      local _, epoch = leading:ask "leader"
      local away = table.remove(others, 1)
      for _, one in ipairs(members) do
        if one ~= away then network:cut(away.node, one.node) end
      end
      network:cut_port(away.node, server.port)
      assert.is_nil((register(away, "refused")))
      others[#others + 1] = leading
      local now_leading, now_epoch = cluster:await(others)
      assert.same({ leading.node, epoch }, { now_leading, now_epoch })
      is_registered(leading, "meanwhile")
      heals(members, { meanwhile = leading.node })
    end)

    it(("changes over when the leader of %d loses the store alone"):format(count), function()
      local members, leading, others = start(count)
      is_registered(others[1], "before")
      network:cut_port(leading.node, server.port)
      cluster:await(others)
      assert.is_nil((register(leading, "refused")))
      heals(members, { before = others[1].node })
    end)

    it(("changes over when nobody can dial the leader of %d"):format(count), function()
      local members, leading, others = start(count)
      is_registered(others[1], "before")
      for _, one in ipairs(leading:ask "members") do
        if one.node == leading.node then network:deafen(leading.node, tonumber(one.address:match ":(%d+)$")) end
      end
      eventually(function() return others[1]:ask "leader" ~= leading.node and register(others[2], "meanwhile") end, 20)
      heals(members, { before = others[1].node, meanwhile = others[2].node })
    end)

    it(("throws a follower of %d out that loses the store alone, and takes it back"):format(count), function()
      local members, leading, others = start(count, LASTING)
      local away = table.remove(others, 1)
      is_registered(away, "before")
      network:cut_port(away.node, server.port)
      others[#others + 1] = leading
      assert.equal(leading.node, (cluster:await(others)))
      eventually(function() return ({ leading:ask("whereis", { name = "before" }) })[2] == nil end, 5)
      heals(members, { before = away.node }) -- it registers its names again
    end)

    it(("refuses writes where the leader of %d is in the minority of the links"):format(count), function()
      local members, leading, others = start(count, LASTING)
      for _, one in ipairs(others) do network:cut(leading.node, one.node) end
      eventually(function()
        local fine, problem = register(leading, "refused")
        return fine == nil and problem:find("reaches 1 of " .. count, 1, true)
      end, 10)
      heals(members, {})
      eventually(function() return register(others[1], "after") end, 5)
      heals(members, { after = others[1].node })
    end)
  end
end)

teardown(function()
  server:destroy()
  assert.is_not_nil(server.process.code)
end)
