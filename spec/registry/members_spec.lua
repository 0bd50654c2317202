-- Who is a member and who leads, with real runtimes and a real Postgres.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Pgbouncer = require "support.pgbouncer"
local Postgres = require "support.postgres"
local Registry = require "support.registry"
local run = require "support.run"
local tempdir = require "support.tempdir"

local LASTING = { ttl = 30 } -- a lease of which a busy machine makes nobody lose one

describe("members of a registry", function()
  local cluster, server, name
  Registry.around(function(...) cluster, name, server = ... end)

  local function row()
    local found = server:sql("SELECT *, members::text AS members FROM crown_registry_v1 WHERE registry = $1", name)[1]
    found.members = crown.json.decode(found.members)
    return found
  end

  local function enqueue(message)
    server:sql([[
WITH r AS (UPDATE crown_registry_v1 SET tail = tail + 1 WHERE registry = $1 RETURNING tail)
INSERT INTO crown_registry_queue_v1 SELECT $1, tail, $2::jsonb FROM r RETURNING pg_notify('crown_registry_v1', 'changed ' || $1)]],
      name, crown.json.encode(message))
  end

  local function queue_is_empty()
    return server:sql("SELECT count(*)::int AS n FROM crown_registry_queue_v1 WHERE registry = $1", name)[1].n == 0
  end

  it("are told apart by node and registry, each with a token and an address", function()
    local a = cluster:join_all { "a", "b" }
    local found = a:ask "members"
    assert.equal(name .. "@a", found[1].id)
    assert.equal("b", found[2].node)
    assert.matches("^127%.0%.0%.1:%d+$", found[2].address)
    local stored = row().members[name .. "@b"]
    assert.matches("^%x+$", stored.token)
    assert.is_true(stored.joined_at > 1e9)
    assert.same({ stored.token:sub(1, 8), math.floor(stored.joined_at) }, { found[2].join_token, found[2].joined_seconds })
  end)

  it("keep their leader when others come and go", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    local leader, epoch = a:ask "leader"
    local c = cluster:join("c", LASTING)
    local now_leader, now_epoch = cluster:await { a, b, c }
    assert.same({ leader, epoch }, { now_leader, now_epoch })
    c.candidate:signal "TERM"
    assert.equal(0, c.candidate:wait(10))
    assert.same({ leader, epoch }, { cluster:await { a, b } })
  end)

  -- A TTL that no wait here comes near to, and one that is soon over.
  for what, case in pairs {
    ["leave at once when they end in order"] = { 600, function(one) one:signal "TERM" end },
    ["are thrown out when they are killed"] = { 5, function(one) one:hurt("KILL", "supervise", "runtime") end },
  } do
    it(what .. ", and their leader stays", function()
      local a, b = cluster:join_all({ "a", "b" }, { ttl = case[1], refresh = 0.5 })
      local leader = a:ask "leader"
      local other = leader == "a" and b or a
      case[2](other.candidate)
      eventually(function() return row().members[name .. "@" .. other.node] == nil end, 10)
      assert.equal(leader, (row().leader:gsub("^.*@", "")))
    end)
  end

  it("choose another leader when theirs leaves, is killed, or hangs; each time in a new epoch", function()
    local members = { cluster:join_all { "a", "b", "c", "d" } }
    for _, hurt in ipairs {
      function(one) one.candidate:signal "TERM" end,
      function(one) one.candidate:hurt("KILL", "supervise", "runtime") end,
      function(one) one.candidate:hurt("STOP", "supervise", "runtime") end,
    } do
      local leader, epoch = cluster:await(members)
      local left = {}
      for _, one in ipairs(members) do
        if one.node == leader then hurt(one) else left[#left + 1] = one end
      end
      members = left
      local next_leader, next_epoch = cluster:await(members)
      assert.not_equal(leader, next_leader)
      assert.is_true(next_epoch > epoch, ("%s in epoch %d after %s in %d"):format(next_leader, next_epoch, leader, epoch))
    end
  end)

  it("take a runtime back that was killed on a living host, under another token and in another epoch", function()
    local a = cluster:join "a"
    local _, epoch = cluster:await { a }
    local token = row().members[name .. "@a"].token
    a.candidate:hurt("KILL", "runtime")
    eventually(function() return row().assumed > epoch end, 10)
    assert.not_equal(token, row().members[name .. "@a"].token)
    assert.equal(name .. "@a", row().leader)
  end)

  it("stay when a member_down bears an older token", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    local before = row()
    for _, one in ipairs { a, b } do
      enqueue { kind = "member_down", id = name .. "@" .. one.node, token = "0123", left = true }
    end
    eventually(queue_is_empty)
    local later = row()
    assert.equal(before.epoch, later.epoch)
    assert.equal(before.leader, later.leader)
    assert.is_table(later.members[name .. "@b"])
  end)

  it("stay when a member_down comes while they are heard of", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    enqueue { kind = "member_down", id = name .. "@b", token = row().members[name .. "@b"].token }
    eventually(queue_is_empty)
    assert.is_table(row().members[name .. "@b"])
    assert.same({ cluster:await { a, b } }, { a:ask "leader" })
  end)

  it("come back by themselves when they were thrown out, with their names", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    local leader, epoch = a:ask "leader"
    local other = leader == "a" and b or a
    assert.is_true(other:ask("register", { name = "mine", value = 7 }))
    local token = row().members[name .. "@" .. other.node].token
    enqueue { kind = "member_down", id = name .. "@" .. other.node, token = token, left = true }
    eventually(function()
      local stored = row().members[name .. "@" .. other.node]
      return stored and stored.token ~= token
    end, 5)
    eventually(function() return ({ a:ask("whereis", { name = "mine" }) })[2] == other.node end, 5)
    assert.same({ leader, epoch }, { cluster:await { a, b } })
  end)

  it("are told that they were thrown out, and which name another has taken meanwhile", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    local leading, other = a, b
    if a:ask "leader" == "b" then leading, other = b, a end
    local id = name .. "@" .. other.node
    assert.is_true(other:ask("register", { name = "mine", value = 7 }))
    assert.is_true(other:ask("register", { name = "kept", value = 8 }))
    other.candidate:hurt("STOP", "supervise", "runtime")
    enqueue { kind = "member_down", id = id, token = row().members[id].token, left = true }
    eventually(function() return leading:ask("register", { name = "mine", value = 9 }) == true end, 10)
    other.candidate:hurt("CONT", "supervise", "runtime")
    local function told(event, fields)
      return eventually(function()
        for line in other.candidate:output():gmatch "[^\n]+" do
          if line:find(event, 1, true) and line:find(fields, 1, true) then return line end
        end
      end, 20)
    end
    told("oracle.registry.thrown_out", "member=" .. id)
    local lost = told("oracle.registry.name_lost", "lost=mine")
    assert.is_truthy(lost:find("owner=" .. name .. "@" .. leading.node, 1, true), lost)
    eventually(function() return ({ leading:ask("whereis", { name = "kept" }) })[2] == other.node end, 10)
    assert.is_nil(other.candidate:output():find("lost=kept", 1, true))
    assert.is_nil(leading.candidate:output():find("thrown_out", 1, true))
  end)

  it("are answered for while the queue is locked, and the lock ends by itself", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    local leader = a:ask "leader"
    local function lock(seconds)
      server:sql("UPDATE crown_registry_v1 SET locked_until = clock_timestamp() + make_interval(secs => $2) WHERE registry = $1",
        name, seconds)
    end
    lock(600)
    local c = cluster:join("c", LASTING)
    eventually(function() return not queue_is_empty() end)
    assert.equal(leader, (b:ask "leader"))
    assert.equal(2, #a:ask "members")
    assert.is_true(b:ask("register", { name = "meanwhile" }))
    assert.is_true(server:sql("SELECT locked_until > clock_timestamp() AS locked FROM crown_registry_v1 WHERE registry = $1",
      name)[1].locked)
    assert.is_nil(row().members[name .. "@c"])
    lock(0.5)
    assert.equal(leader, (cluster:await { a, b, c }))
  end)

  it("are not thrown out by nonsense in the queue", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    enqueue { kind = "nonsense" }
    enqueue { kind = "abdicate", id = name .. "@a", token = "0", epoch = 99 }
    enqueue { kind = "join", id = name .. "@x", token = "0", runtime = "0", number = 1, address = "127.0.0.1:1" }
    enqueue(7)
    eventually(queue_is_empty)
    eventually(function() return (a.candidate:output() .. b.candidate:output()):find "message_dropped" end)
    assert.same({ cluster:await { a, b } }, { a:ask "leader" })
  end)

  it("refuse a second runtime under a node's name, which learns why, and does them no harm", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    local leader, epoch = a:ask "leader"
    local twin = cluster:join("a", LASTING)
    eventually(function() return twin.candidate:output():find "another runtime is a member under this node's name" end, 5)
    assert.same({ leader, epoch }, { cluster:await { a, b } })
    assert.is_true(a:ask("register", { name = "one" }))
    assert.is_true(b:ask("register", { name = "two" }))
    assert.is_nil(b.candidate:output():find "link_cut")
  end)

  it("tell the world of a new leader, and keep its row where the documentation says", function()
    local heard = {}
    local client = assert(crown.postgres.connect(server.url))
    client:listen("crown_registry_v1", function(payload) heard[#heard + 1] = payload end)
    Postgres.await_listener(function() return client end)
    local a = cluster:join "a"
    local _, epoch = cluster:await { a }
    eventually(function()
      for _, payload in ipairs(heard) do
        if payload == ("leader %s %d %s@a"):format(name, epoch, name) then return true end
      end
    end, 5)
    assert.equal(name .. "@a", row().leader)
    client:close()
  end)

  it("can have their leader evicted", function()
    local a, b = cluster:join_all({ "a", "b" }, LASTING)
    local leader, epoch = a:ask "leader"
    local url = server.url:gsub("^postgres", "registry+postgres")
    local result = run { "evict", "--oracle", url, "--force", name }
    assert.equal(0, result.code, result.stderr)
    assert.not_equal(leader, (cluster:await({ a, b }, nil, epoch)))
    for _, member in ipairs { a, b } do -- nothing was forgotten: who is evicted lets go at once
      assert.is_nil(member.candidate:output():find("oracle.amnesia", 1, true))
    end
  end)

  it("do without notifications behind a connection pooler, and say so", function()
    local pooler = Pgbouncer.start(server)
    cluster:destroy()
    cluster = Registry.new { url = pooler.url, name = name }
    local a, b = cluster:join_all { "a", "b" }
    eventually(function() return a.candidate:output():find "no notifications" end, 20)
    local leader = a:ask "leader"
    local leading, following = a, b
    if leader == "b" then leading, following = b, a end
    leading.candidate:hurt("KILL", "supervise", "runtime")
    assert.equal(following.node, (cluster:await { following }))
    cluster:destroy()
    pooler:destroy()
  end)

  it("are shown by info", function()
    cluster:join_all { "a" }
    local url = server.url:gsub("^postgres", "registry+postgres")
    local result = run { "info", "--oracle", url, "--json", name }
    local shown = crown.json.decode(result.stdout)
    assert.equal("a", (shown.elections[1].leader or shown.elections[1].node))
  end)

  it("cannot lose their row to a DELETE", function()
    cluster:join_all { "a" }
    local client = assert(crown.postgres.connect(server.url))
    local rows, problem = client:query "DELETE FROM crown_registry_v1"
    assert.is_nil(rows)
    assert.matches("keeps the epochs", problem)
    client:close()
  end)

  describe("with options that cannot be", function()
    local function check(options)
      local path = tempdir() .. "/app.lua"
      local file = assert(io.open(path, "w"))
      file:write(([[
local crown = require "crown"
crown.elect { name = "x", oracle = { "registry", %s } }]]):format(options))
      file:close()
      local result = run { "check", path }
      return result.code, result.stdout .. result.stderr
    end
    local FINE = [[url = "postgres://x/y", listen = "127.0.0.1:0", secret = "0123456789abcdef"]]

    it("are told what is missing", function()
      assert.equal(0, (check(FINE)))
      for _, option in ipairs { "url", "listen", "secret" } do
        local code, text = check((FINE:gsub(option .. " = \"[^\"]*\",? ?", "")))
        assert.equal(2, code)
        assert.matches(option .. ": required", text)
      end
    end)

    it("are warned of a secret that can be guessed", function()
      for _, secret in ipairs { "0123456789abcdef", ("ab"):rep(20), "correct horse battery" } do
        local code, text = check((FINE:gsub("0123456789abcdef", secret)))
        assert.equal(0, code)
        assert.matches("warning%s+secret: short or simple", text)
        assert.is_nil(text:find(secret, 1, true))
      end
      for _, secret in ipairs { "9f86d081884c7d659a2feaa0c55ad015", "n4bQgYhMfWWaL+qgxVrQFQ==" } do
        local code, text = check((FINE:gsub("0123456789abcdef", secret)))
        assert.equal(0, code)
        assert.is_nil(text:find "warning")
      end
    end)

    it("are told what is wrong", function()
      for option, words in pairs { ['listen = "0.0.0.0:7400"'] = "advertise", ['secret = "short"'] = "16 bytes",
        ['listen = "here"'] = "port", ["replicas = 0"] = "replicas", ["nonsense = 1"] = "nonsense" } do
        local key = option:match "^%w+"
        local code, text = check(option .. ", " .. FINE:gsub(key .. " = \"[^\"]*\",? ?", ""))
        assert.equal(2, code)
        assert.matches(words, text)
      end
    end)
  end)

  it("say so when the store cannot be reached", function()
    local log = tempdir() .. "/log"
    local one = Candidate.start { node = "x", log = log, args = { "spec/support/registry_app.lua", crown.json.encode {
      name = name, url = "postgres://127.0.0.1:1/x", listen = "127.0.0.1:0", secret = "a secret of the specs" } } }
    eventually(function() return one:output():find("oracle.error", 1, true) and one:output():find("refused", 1, true) end, 30)
    one:destroy()
  end)

  it("do not come to be where the address is taken", function()
    local log = tempdir() .. "/log"
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function() end, { background = true }))
    local one = Candidate.start { node = "x", log = log, args = { "spec/support/registry_app.lua", crown.json.encode {
      name = name, url = server.url, listen = "127.0.0.1:" .. listener:port(), secret = "a secret of the specs" } } }
    eventually(function() return one:output():find "in use" end, 5)
    one:destroy()
    listener:close()
  end)
end)
