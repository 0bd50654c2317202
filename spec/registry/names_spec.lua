-- Names, with real runtimes and a real Postgres.
local base64 = require "crown.text.base64"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local Node = require "crown.registry.node"
local Registry = require "support.registry"

-- Where nothing is to run out: a busy machine stands still for longer than what the other tests wait for.
local CALM = { ttl = 20, snapshot_timeout = 5, replicate_timeout = 5 }

describe("what is asked of a registry in a wrong way", function()
  local registry = require "crown.registry"
  Node.new { registry = "misused" } -- it is not even started
  local mine = registry.of "misused"

  for words, misuse in pairs {
    ["timeout must be a number, not a table"] = function() mine:register("n", 1, { timeout = {} }) end,
    ["timeout must be at least 0"] = function() mine:register("n", 1, { timeout = -1 }) end,
    ["timeout is not a number"] = function() mine:unregister("n", { timeout = 0 / 0 }) end,
    ["options must be a table, not a number"] = function() mine:unregister("n", 5) end,
    ["prefix must be a string, not a number"] = function() mine:names(5) end,
    ["a name must be a string, not a nil"] = function() mine:whereis(nil) end,
    ["unknown option 'timout' %(did you mean 'timeout'%?%)"] = function() mine:register("n", 1, { timout = 5 }) end,
    ["unknown option 'wait'"] = function() mine:unregister("n", { wait = 5 }) end,
    ["a value must fit JSON: number: must not be NaN or Inf"] = function() mine:register("n", { port = 0 / 0 }) end,
    ["a value must fit JSON: function: type not supported"] = function() mine:register("n", print) end,
    ["a value must fit JSON: table: excessively sparse array"] = function() mine:register("n", { [1] = 1, [1000] = 1 }) end,
  } do
    it("is an error that names the argument, at the caller: " .. words, function()
      local fine, problem = pcall(misuse)
      assert.is_false(fine)
      assert.matches("names_spec.lua:%d+: " .. words .. "$", problem)
    end)
  end
end)

describe("names in a registry", function()
  local cluster, name, server
  Registry.around(function(...) cluster, name, server = ... end)

  local function leader_of(members)
    local leader = cluster:await(members)
    local follower
    for _, one in ipairs(members) do
      if one.node == leader then leader = one else follower = one end
    end
    return leader, follower
  end

  local function owner_of(member, which)
    local _, owner = member:ask("whereis", { name = which })
    return owner
  end

  it("are registered once, and known to every member", function()
    local a, b, c = cluster:join_all({ "a", "b", "c" }, CALM)
    assert.is_true(a:ask("register", { name = "one", value = { port = 1 } }))
    local fine, other = b:ask("register", { name = "one", value = 2 })
    assert.is_false(fine)
    assert.same({ owner = "a", value = { port = 1 } }, other)
    eventually(function() return owner_of(c, "one") == "a" end)
    assert.same({ port = 1 }, (c:ask("whereis", { name = "one" })))
    assert.same({ value = { port = 1 }, owner = "a" }, c:ask("names").one)
  end)

  it("have values whose numbers arrive exactly", function()
    local a, b = cluster:join_all({ "a", "b" }, CALM)
    local value = { 2 ^ 60, -2 ^ 63, 2 ^ 53 - 1, 0.1 + 0.2, 1 / 3, 1e300, 5e-324, 0.1, 100 }
    assert.is_true(a:ask("register", { name = "numbers", value = value }))
    eventually(function() return owner_of(b, "numbers") == "a" end)
    for i, number in ipairs((b:ask("whereis", { name = "numbers" }))) do assert.equal(value[i], number) end
  end)

  it("are written to the leader as well as through a follower", function()
    local leader, follower = leader_of { cluster:join_all({ "a", "b" }, CALM) }
    assert.is_true(leader:ask("register", { name = "one", value = 1 }))
    assert.is_true(follower:ask("register", { name = "two", value = 2 }))
    assert.equal(follower.node, owner_of(leader, "two"))
  end)

  it("can be registered again by their owner, with another value, and by nobody else unregistered", function()
    local a, b = cluster:join_all({ "a", "b" }, CALM)
    assert.is_true(a:ask("register", { name = "one", value = 1 }))
    assert.is_true(a:ask("register", { name = "one", value = 2 }))
    eventually(function() return b:ask("whereis", { name = "one" }) == 2 end)
    local fine, other = b:ask("unregister", { name = "one" })
    assert.is_false(fine)
    assert.equal("a", other.owner)
    assert.is_true(a:ask("unregister", { name = "one" }))
    assert.is_true(b:ask("register", { name = "one" }))
    assert.is_true(a:ask("unregister", { name = "none" }))
  end)

  it("are told of when they change, until nobody wants to hear of it", function()
    local a, b = cluster:join_all { "a", "b" }
    local told = {}
    local function hear()
      for _, one in ipairs(b:ask "changes" or {}) do told[one[1]] = { one[2], one[3] } end
    end
    hear()
    assert.is_true(a:ask("register", { name = "one", value = { port = 1 } }))
    assert.is_true(b:ask("register", { name = "two" }))
    eventually(function() hear() return told.one and told.two end, 20)
    assert.same({ { port = 1 }, "a" }, told.one)
    assert.same({ true, "b" }, told.two)
    assert.is_true(a:ask("unregister", { name = "one" }))
    eventually(function() hear() return told.one[1] == false end, 20)
    told = {}
    assert.is_true(a:ask("register", { name = "three" }))
    a.candidate:hurt("KILL", "supervise", "runtime")
    eventually(function() hear() return told.three and told.three[1] == false end, 20)
    b:ask "cancel"
    b:ask "changes"
    assert.is_true(b:ask("register", { name = "four" }))
    eventually(function() hear() return told.four end, 20)
  end)

  it("can be asked for by what they begin with", function()
    local a, b = cluster:join_all({ "a", "b" }, CALM)
    for _, one in ipairs { "mail/1", "mail/2", "mai", "web" } do assert.is_true(a:ask("register", { name = one, value = one })) end
    for _, member in ipairs { a, b } do
      eventually(function()
        assert.same({ ["mail/1"] = { value = "mail/1", owner = "a" }, ["mail/2"] = { value = "mail/2", owner = "a" } },
          (member:ask("names", { prefix = "mail/" })))
        return true
      end, 20)
    end
    assert.same({}, (a:ask("names", { prefix = "none" })))
  end)

  it("go with their owner's runtime, however it ends", function()
    local members = { cluster:join_all { "a", "b", "c" } }
    for i, hurt in ipairs { function(one) one.candidate:signal "TERM" end,
      function(one) one.candidate:hurt("KILL", "supervise", "runtime") end } do
      local leader, follower = leader_of(members)
      assert.is_true(follower:ask("register", { name = "of " .. i }))
      eventually(function() return owner_of(leader, "of " .. i) == follower.node end)
      hurt(follower)
      eventually(function() return owner_of(leader, "of " .. i) == nil end, 6)
      for k, one in ipairs(members) do
        if one == follower then table.remove(members, k) end
      end
    end
  end)

  it("outlive their leader, in order or not", function()
    for _, signal in ipairs { "TERM", "KILL" } do
      local members = { cluster:join_all { "a" .. signal, "b" .. signal, "c" .. signal } }
      local leader, follower = leader_of(members)
      for i = 1, 20 do assert.is_true(follower:ask("register", { name = signal .. i, value = i })) end
      if signal == "TERM" then leader.candidate:signal "TERM" else leader.candidate:hurt("KILL", "supervise", "runtime") end
      local left = {}
      for _, one in ipairs(members) do
        if one ~= leader then left[#left + 1] = one end
      end
      cluster:await(left)
      for i = 1, 20 do
        for _, one in ipairs(left) do
          eventually(function() return owner_of(one, signal .. i) == follower.node end)
        end
      end
      for _, one in ipairs(left) do
        one.candidate:signal "TERM"
        one.candidate:wait(10)
      end
    end
  end)

  it("are taken over by a member that has just joined, from a leader that leaves", function()
    local a = cluster:join "a"
    cluster:await { a }
    local b = cluster:join "b"
    cluster:await { a, b }
    assert.is_true(b:ask("register", { name = "one", value = 1 }))
    a.candidate:signal "TERM"
    cluster:await { b }
    assert.equal("b", owner_of(b, "one"))
    assert.is_nil(b.candidate:output():find "names_missed")
  end)

  it("are acknowledged by a lone member too, with an event; unless it is strict", function()
    local a = cluster:join "a"
    cluster:await { a }
    assert.is_true(a:ask("register", { name = "one" }))
    eventually(function() return a.candidate:output():find "registry.degraded" end, 20)
    a.candidate:signal "TERM"
    a.candidate:wait(10)
    local b = cluster:join("b", { strict = true })
    eventually(function() return b:ask "leader" == "b" end, 10)
    local fine, problem, code = b:ask("register", { name = "one", timeout = 0.5 })
    assert.is_nil(fine)
    assert.matches("1 member", problem)
    assert.equal("timeout", code)
    local c = cluster:join("c", { strict = true })
    eventually(function() return c:ask "leader" == "b" end, 10)
    eventually(function() return b:ask("register", { name = "one", timeout = 2 }) end, 6)
  end)

  it("refuse what is no name and no value", function()
    local a = cluster:join("a", CALM)
    cluster:await { a }
    local node = require "crown.registry"
    assert.has_error(function() node.open(7) end)
    assert.is_nil((node.of "nobody"))
    assert.is_true(a:ask("register", { name = ("n"):rep(255), value = ("v"):rep(65000) }))
  end)

  it("are not changed by a frame of an older epoch", function()
    local members = { cluster:join_all({ "a", "b" }, CALM) }
    local leader, follower = leader_of(members)
    assert.is_true(leader:ask("register", { name = "one", value = 1 }))
    leader.candidate:signal "TERM"
    cluster:await { follower }
    local third = cluster:join("c", CALM)
    local _, epoch = cluster:await { follower, third }
    local port
    for _, one in ipairs(third:ask "members") do
      if one.node == "c" then port = tonumber(one.address:match ":(%d+)$") end
    end
    local stream = assert(crown.tcp.connect("127.0.0.1", port))
    assert.is_true(handshake.dial(stream, { registry = name, id = name .. "@" .. leader.node, secret = "a secret of the specs",
      runtime = "x" },
      name .. "@c", 5))
    stream:write(frames.encode { kind = "snapshot", epoch = epoch - 1, seq = 9, part = 1, last = true,
      names = { { "false", name .. "@" .. leader.node, "0", "1" } } })
    stream:write(frames.encode { kind = "append", epoch = epoch - 1, first = 10, changes = { { "-", "probe-" .. epoch } } })
    for _ = 1, 2 do assert.same({ kind = "stale", epoch = epoch }, frames.read(stream, 1000, 5, 5)) end
    assert.is_nil(third:ask("names")["false"])
    assert.is_table(third:ask("names")["probe-" .. epoch])
    stream:close()
  end)

  -- As one does who ends in order.
  local function throw_out(member)
    local stored = server:sql("SELECT members -> $2 ->> 'token' AS token FROM crown_registry_v1 WHERE registry = $1", name,
      name .. "@" .. member.node)[1].token
    server:sql([[
WITH r AS (UPDATE crown_registry_v1 SET tail = tail + 1 WHERE registry = $1 RETURNING tail)
INSERT INTO crown_registry_queue_v1 SELECT $1, tail, $2::jsonb FROM r RETURNING pg_notify('crown_registry_v1', 'changed ' || $1)]],
      name, crown.json.encode { kind = "member_down", id = name .. "@" .. member.node, token = stored, left = true })
    eventually(function() return select(3, member:ask "count") ~= stored end)
  end

  it("come to whoever joins, also when a task that sends them fails", function()
    local leader, owner = leader_of { cluster:join_all({ "a", "b" }, CALM) }
    assert.equal(50, #owner:ask("fill", { prefix = "of an owner ", from = 1, to = 50, value = ("v"):rep(30000), timeout = 20 }))
    leader:ask("break_once", { module = "crown.registry.replica", fn = "part" })
    local third = cluster:join("c", CALM)
    eventually(function() return (third:ask "count" or 0) >= 50 end)
    eventually(function() return leader.candidate:output():find "link_cut.-broken on purpose" end)
  end)

  it("come back where an older copy lacks them, also when the task that registers them again fails", function()
    local a = cluster:join_all({ "a" }, CALM)
    assert.is_true(a:ask("register", { name = "one", value = 1 }))
    a:ask("break_once", { module = "crown.registry.writes", fn = "add" })
    local _, lost = a:ask("lose", { name = "one" })
    assert.is_true(lost)
    eventually(function() return owner_of(a, "one") == "a" end)
    eventually(function() return a.candidate:output():find "oracle%.error.-broken on purpose" end, 20)
  end)

  it("come to whoever joins, and back to whoever was thrown out, twenty thousand of them, without holding the loops up", function()
    local COUNT, AT_ONCE, MOST = 20000, 2000, 40 -- milliseconds of processor time
    local members = { cluster:join_all({ "a", "b" }, { ttl = 5, snapshot_timeout = 5 }) }
    local leader, owner = leader_of(members)
    for from = 1, COUNT, AT_ONCE do
      assert.equal(AT_ONCE, #owner:ask("fill", { prefix = "of an owner ", from = from, to = from + AT_ONCE - 1,
        value = ("v"):rep(200), timeout = 60 }))
    end
    for _, one in ipairs(members) do one:ask "turns" end
    members[3] = cluster:join("c", { ttl = 5, snapshot_timeout = 5 })
    eventually(function() return (members[3]:ask "count" or 0) >= COUNT end, 20)
    for _, one in ipairs(members) do
      local longest = one:ask "turns"
      assert.is_true(longest < MOST, ("%s was away for %.1f ms"):format(one.node, longest))
    end
    throw_out(owner)
    eventually(function() return (select(2, owner:ask "count") or 0) >= COUNT end, 40)
    eventually(function() return (members[3]:ask "count" or 0) >= COUNT and leader:ask "count" >= COUNT end)
  end)

  it("are not to be had by a stranger", function()
    local a = cluster:join("a", CALM)
    cluster:await { a }
    local stream = assert(crown.tcp.connect("127.0.0.1", tonumber(a:ask("members")[1].address:match ":(%d+)$")))
    stream:write(frames.encode { version = handshake.VERSION, registry = name, id = name .. "@x", runtime = "x",
      nonce = base64.encode "nonce" })
    assert(frames.read(stream, 1024, 5, 5))
    stream:write(frames.encode { kind = "fetch", epoch = 1 })
    assert.matches("secret is another", frames.read(stream, 1024, 5, 5).error)
    eventually(function() return a.candidate:output():find "registry.link_cut" end)
  end)
end)
