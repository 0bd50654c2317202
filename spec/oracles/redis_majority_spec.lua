-- Elections on most of several independent Redis servers.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Proxy = require "support.proxy"
local Redis = require "support.redis"
local redis_lease = require "support.redis_lease"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local candidate = redis_lease.candidate

describe("a majority of Redis servers", function()
  local servers, urls

  before_each(function()
    redis_lease.name_anew()
    servers, urls = {}, {}
    for i = 1, 3 do
      servers[i] = Redis.start()
      urls[i] = servers[i].url
    end
  end)
  after_each(function()
    for _, one in ipairs(servers) do one:destroy() end
  end)

  local function member(node, options)
    options = options or {}
    options.urls, options.timeout = urls, options.timeout or 20
    return candidate(nil, node, options)
  end

  -- A claim is granted by the first two of three. What the third has not granted by then, a refresh claims.
  local function await_all(leader)
    eventually(function()
      leader:refresh()
      for _, server in ipairs(servers) do
        if redis_lease.field(server, "node") ~= "one" then return false end
      end
      return true
    end)
  end

  it("decides, with one server down; with two down nobody does", function()
    local one, two = member("one", { timeout = 5 }), member("two", { timeout = 5 })
    local epoch = one:claim()[4]
    await_all(one)
    assert.equal("denied", two:claim()[1])
    servers[2]:down()
    assert.same({ "granted", epoch }, { one:refresh()[1], one:refresh()[4] })
    assert.equal("denied", two:claim()[1])
    one:abdicate()
    local verdict
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end)
    assert.is_true(verdict[4] > epoch)
    servers[3]:down()
    verdict = two:refresh()
    assert.equal("unknown", verdict[1])
    assert.matches("1 of 3 servers granted, 2 are needed", verdict[2])
  end)

  it("is not known to have decided where one server denies and the others are down", function()
    local one, two = member("one", { timeout = 5 }), member("two", { timeout = 5 })
    one:claim()
    eventually(function() return redis_lease.field(servers[1], "node") == "one" end)
    for i = 2, 3 do servers[i]:down() end
    assert.equal("unknown", two:claim()[1])
  end)

  it("leads in the highest epoch of any server that answers, which a majority has then", function()
    servers[3]:freeze()
    finally(function() servers[3]:thaw() end)
    servers[1]:call("SET", redis_lease.key "epoch", "9000000000000000")
    assert.equal(9000000000000001, member("one", { timeout = 5 }):claim()[4])
    for i = 1, 2 do assert.equal(9000000000000001, redis_lease.field(servers[i], "epoch")) end
  end)

  it("is brought to the term's epoch where a server granted a lower one, so that another server may fail", function()
    local one, epoch = member("one", { timeout = 5 }), 9000000000000001
    servers[3]:freeze()
    finally(function() servers[3]:thaw() end)
    servers[1]:call("SET", redis_lease.key "epoch", ("%.0f"):format(epoch - 1))
    assert.equal(epoch, one:claim()[4])
    servers[3]:thaw()
    eventually(function()
      one:refresh()
      return redis_lease.field(servers[3], "epoch") == epoch
    end)
    servers[1]:down()
    local verdict = one:answered "refresh"
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
  end)

  it("does not wait for a server that hangs when the others decide", function()
    local one, two = member("one", { timeout = 20 }), member("two", { timeout = 20 })
    one:claim()
    one:abdicate()
    servers[1]:freeze()
    finally(function() servers[1]:thaw() end)
    local from = crown.now()
    local epoch = one:claim()[4]
    for _ = 1, 3 do assert.same({ "granted", epoch }, { one:refresh()[1], one:refresh()[4] }) end
    assert.same({ "denied", "one" }, { two:claim()[1], two:claim()[3] })
    one:abdicate()
    assert.equal("granted", two:claim()[1])
    assert.is_true(crown.now() - from < 10)
  end)

  -- As an older version of crown-lua keeps a lease.
  local function older(server, node)
    local key = redis_lease.key "lease"
    server:call("HSET", key, "token", "x-" .. node, "node", node, "epoch", "9", "claim", "1")
    server:call("PEXPIRE", key, "30000")
    server:call("SET", redis_lease.key "epoch", "9")
  end

  it("is asked again soon where one gives no answer and the others are not agreed", function()
    local one = member("one", { timeout = 20 })
    one:claim()
    one:abdicate()
    servers[3]:freeze()
    finally(function() servers[3]:thaw() end)
    local key, text = redis_lease.key(), servers[1]:call("HGET", redis_lease.key(), "record")
    servers[1]:call("HSET", key, "version", "by-hand", "record", (text:gsub('"memory":"[^"]*"', '"memory":"another"')))
    local from, verdict = crown.now(), one:claim()
    assert.is_true(crown.now() - from < 5)
    assert.equal("denied", verdict[1])
    assert.is_true((verdict[6] or verdict[2]) <= 1)
  end)

  -- Nobody's again, as after a release that was not told.
  local function free(server)
    local text = server:call("HGET", redis_lease.key(), "record"):gsub('"by":"[^"]*",?', ""):gsub(",}", "}")
    server:call("HSET", redis_lease.key(), "version", "by-hand", "record", text)
  end

  it("takes back what a server grants that was not waited for", function()
    local one, two = member("one", { timeout = 20 }), member("two", { timeout = 20 })
    one:claim()
    await_all(one)
    free(servers[3])
    local before = redis_lease.field(servers[3], "epoch")
    servers[3]:freeze()
    finally(function() servers[3]:thaw() end)
    assert.equal("denied", two:claim()[1])
    servers[3]:thaw()
    eventually(function() return redis_lease.field(servers[3], "epoch") ~= before end)
    eventually(function() return redis_lease.field(servers[3], "by") == nil end)
  end)

  it("gives the term back to a server that was away for longer than it lasts, which then decides again", function()
    local one = member("one", { ttl = 3, timeout = 0.5 })
    local epoch = one:claim()[4]
    await_all(one)
    servers[3]:freeze()
    local until_then = crown.now() + 3.2
    eventually(function()
      assert.equal("granted", one:answered("refresh")[1])
      return crown.now() > until_then
    end)
    servers[3]:thaw()
    local stale = redis_lease.field(servers[3], "at")
    eventually(function()
      one:refresh()
      local at = redis_lease.field(servers[3], "at")
      return at and at > stale -- a new life of its session there
    end)
    servers[2]:down()
    for _ = 1, 3 do
      local verdict = one:answered "refresh"
      assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    end
  end)

  it("is not claimed without end where the leader does not reach one of them", function()
    local all = {}
    for i = 1, 3 do
      local ports = { servers[1].port, servers[2].port, i == 1 and 1 or servers[3].port }
      local url = ("redis+majority://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?ttl=5&trust_empty=true"):format(unpack(ports))
      all[i] = Candidate.start { args = { "run", "--oracle", url, redis_lease.name(), "--", "sleep", "60" }, node = "node" .. i,
        log = tempdir() .. "/log" }
      eventually(function() return all[i]:output():find(i == 1 and "leading" or "following", 1, true) end, 20)
    end
    finally(function()
      for _, one in ipairs(all) do one:destroy() end
    end)
    local function asked() return tonumber(servers[3]:call("INFO", "commandstats"):match "cmdstat_evalsha:calls=(%d+)") or 0 end
    local before = asked()
    crown.sleep(2)
    assert.is_true(asked() - before < 30, asked() - before)
  end)

  local function all()
    local hosts = {}
    for i, url in ipairs(urls) do hosts[i] = url:match "//([^/?]+)" end
    return ("redis+majority://%s?ttl=5&amnesia_wait=0&trust_empty=true&timeout=1"):format(table.concat(hosts, ","))
  end

  local function info()
    local result = run { "info", "--json", "--oracle", all() }
    assert.equal(0, result.code, result.stderr)
    local found = crown.json.decode(result.stdout)
    for _, one in ipairs(found.elections) do
      if one.name == redis_lease.name() then return one, found end
    end
  end

  it("is named by one URL, shown by info as most of the servers say, and evicted on all", function()
    local one = Candidate.start { args = { "run", "--quiet", "--oracle", all(), redis_lease.name(), "sleep", "60" }, node = "one",
      log = tempdir() .. "/log" }
    finally(function() one:destroy() end)
    eventually(function() return #one:pids "child" == 1 end)
    local led = info()
    assert.equal("one", led.node)
    assert.is_nil(led.token)
    servers[1]:down()
    local still, found
    eventually(function() -- a server that was late with the win has its epoch with the next renewal
      still, found = info()
      return still.node == "one" and still.epoch == led.epoch
    end)
    assert.equal("3 servers, of which 2 decide", found.store.store)
    assert.matches("no answer", found.store.server_1)
    assert.equal(1, #found.warnings)
    local evicted = run { "evict", "--force", "--oracle", all(), redis_lease.name() }
    assert.equal(0, evicted.code, evicted.stderr)
    assert.matches("evicted one from", evicted.stdout)
    servers[2]:down()
    local lonely = run { "info", "--oracle", all() }
    assert.equal(3, lonely.code)
    assert.matches("1 of 3 servers answer, 2 are needed: ", lonely.stderr)
    servers[3]:down()
    local steps = { info = 3, run = 1 } -- one behind each server that is named
    for verb, words in pairs { info = { "info", "--oracle", all() }, run = { "run", "--once", "--oracle", all(), "x", "true" } } do
      local told = run(words).stderr
      assert.equal(steps[verb], select(2, told:gsub("; is the server running", "")), told)
    end
  end)

  it("is shown and evicted without waiting for a server that hangs", function()
    local one = Candidate.start { args = { "run", "--quiet", "--oracle", all(), redis_lease.name(), "sleep", "60" }, node = "one",
      log = tempdir() .. "/log" }
    finally(function() one:destroy() end)
    eventually(function() return #one:pids "child" == 1 end)
    servers[2]:freeze()
    finally(function() servers[2]:thaw() end)
    local from = crown.now()
    local led, found = info()
    assert.equal("one", led.node)
    assert.matches("no answer", found.store.server_2)
    local evicted = run { "evict", "--force", "--oracle", (all():gsub("&timeout=1", "")), redis_lease.name() }
    assert.equal(0, evicted.code, evicted.stderr)
    assert.is_true(crown.now() - from < 15) -- 5 s for each of four times that they are asked would be more
  end)

  it("reads a login in its one URL as that of one server: up to the last @ before the query", function()
    for _, server in ipairs(servers) do
      assert.equal("OK", server:call("ACL", "SETUSER", "u", "on", ">p/q@r", "~*", "&*", "+@all"))
    end
    for _, path in ipairs { "", "/0" } do
      local url = all():gsub("//", "//u:p/q@r@"):gsub("%?", path .. "?")
      local result = run { "info", "--json", "--oracle", url }
      assert.equal(0, result.code, result.stderr)
      assert.same({}, crown.json.decode(result.stdout).warnings)
    end
  end)

  it("shows nobody as leader whose lease a minority has, as of an older version", function()
    older(servers[1], "n")
    local shown = info()
    assert.same({ 9 }, { shown.epoch })
    assert.is_nil(shown.node)
    local nobody = run { "evict", "--force", "--oracle", all(), redis_lease.name() }
    assert.equal(1, nobody.code)
    assert.matches("nobody leads", nobody.stderr)
  end)

  local function places(...)
    local hosts = { ... }
    for i, host in ipairs(hosts) do hosts[i] = type(host) == "number" and "127.0.0.1:" .. servers[host].port or host end
    return ("redis+majority://%s?ttl=5&amnesia_wait=0&trust_empty=true&timeout=5"):format(table.concat(hosts, ","))
  end

  it("is refused where two names are the same", function()
    local app = tempdir() .. "/app.lua"
    write_file(app, ('require("crown").elect { name = "x", oracle = { "redis", urls = { "%s", "%s/0", "%s" } } }')
      :format(urls[1], urls[1], urls[2]))
    for _, args in ipairs { { "run", "--oracle", places(1, 1, 1), "x", "true" }, { "run", "--oracle", places(1, 2, 1), "x", "true" },
      { "run", "--oracle", places("h", "H:6379", "i"), "x", "true" },
      { "run", "--oracle", places("[::1]", "i", "[::1]:6379"), "x", "true" },
      { "info", "--oracle", places(1, 1, 2) }, { "check", app } } do
      local result = run(args)
      assert.equal(2, result.code, result.stdout .. result.stderr)
      assert.matches("two of these servers are one: [%w.:%[%]]+", result.stdout .. result.stderr)
    end
  end)

  it("shows nothing of a login that ends too early where two names are the same", function()
    local result = run { "info", "--oracle", "redis+majority://hun,hun,hun?ter@127.0.0.1:1,127.0.0.1:2" }
    assert.equal(2, result.code)
    assert.matches("percent%-encode it", result.stderr)
    assert.is_nil(result.stderr:find "hun" or result.stderr:find "ter@")
  end)

  it("says that two names lead to one server, where nobody leads by its word alone", function()
    local alias = "localhost:" .. servers[1].port
    local one = Candidate.start { args = { "run", "--quiet", "--oracle", places(1, alias, 2), redis_lease.name(), "sleep", "60" },
      node = "one", log = tempdir() .. "/log" }
    finally(function() one:destroy() end)
    local words = ("two of these names lead to one server: 127.0.0.1:%d and %s"):format(servers[1].port, alias)
    eventually(function() return one:output():find(words, 1, true) end)
    assert.equal(0, #one:pids "child")
    servers[2]:down()
    local check = run { "check", "--store", "--oracle", places(1, alias, 3), "run", "x", "true" }
    assert.equal(2, check.code, check.stdout .. check.stderr)
    assert.truthy(check.stdout:find("PROBLEM", 1, true) and check.stdout:find(words, 1, true), check.stdout)
    local shown = run { "info", "--json", "--oracle", places(1, alias, 3) }
    assert.equal(0, shown.code, shown.stderr)
    assert.same({ words }, crown.json.decode(shown.stdout).warnings)
  end)

  it("is no majority any more when two of its names come to lead to one server", function()
    local moved = Proxy.start(servers[2].port)
    finally(function() moved:destroy() end)
    urls[2] = ("redis://127.0.0.1:%d"):format(moved.port)
    local one = member("one", { timeout = 5 })
    assert.equal("granted", one:claim()[1])
    moved:destroy()
    moved = Proxy.start(servers[1].port, moved.port)
    local verdict
    eventually(function() verdict = one:refresh() return verdict[1] == "unknown" and verdict[2]:find "lead to one server" end)
    assert.equal("usage", verdict[3])
  end)
end)
