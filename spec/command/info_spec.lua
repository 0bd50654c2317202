-- crown-lua info and evict, on every oracle that lists its elections.
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Terminal = require "support.terminal"

describe("info and evict", function()
  local server, redis, etcd, nats, started
  local database = 0

  setup(function()
    server, redis, etcd, nats = Postgres.start(), Redis.start(), Etcd.start(), Nats.start()
  end)
  teardown(function()
    for _, one in ipairs { server, redis, etcd, nats } do one:destroy() end
  end)
  before_each(function() started = {} end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function lead(oracle, name, node)
    local one = Candidate.start { args = { "run", "--oracle", oracle, name, "sleep", "60" }, node = node or "one",
      log = tempdir() .. "/log" }
    started[#started + 1] = one
    return one
  end

  local function leads(one)
    eventually(function() return #one:pids "child" == 1 end)
  end

  local function terminal(options)
    local one = Terminal.start(options)
    started[#started + 1] = one
    return one
  end

  local function elections(oracle, ...)
    return crown.json.decode(run({ "info", "--oracle", oracle, "--json", ... }).stdout).elections
  end

  local ORACLES = {
    file = function() return "file:" .. tempdir() end,
    postgres_lease = function() return server.url .. "?ttl=6" end,
    postgres_advisory = function() return (server.url:gsub("^postgres", "postgres+advisory")) .. "?ttl=6" end,
    redis = function()
      database = database + 1 -- a new one, which is sat out for a TTL
      return ("%s/%d?ttl=4&amnesia_wait=0"):format(redis.url, database)
    end,
    etcd = function()
      etcd:ctl("del", "", "--prefix")
      etcd:trusted()
      return etcd.url .. "?ttl=6"
    end,
    nats_kv = function() return ("%s/B%d?ttl=4&amnesia_wait=0"):format(nats.url, math.random(1e9)) end,
  }

  for oracle_name, url_of in pairs(ORACLES) do
    describe("on " .. oracle_name, function()
      local url

      before_each(function()
        url = url_of()
        server:empty()
      end)

      it("show who leads, in which epoch, for people and for programs", function()
        leads(lead(url, "task_scheduler"))
        leads(lead(url, "other"))
        local text = run({ "info", "--oracle", url }).stdout
        assert.matches("Oracle     %S+", text)
        assert.matches("Elections  2\n", text)
        assert.matches("Election        Leader  Epoch +Expires in[^\n]*\n", text)
        local known = elections(url, "^task_.*r$")[1]
        assert.matches(("task_scheduler  one     %d "):format(known.epoch), text)
        assert.equal(1, #elections(url, "^task_.*r$"))
        assert.equal(0, #elections(url, "nothing like it"))
        assert.equal("one", elections(url, "task")[1].node)
      end)

      it("show the TTL that the store knows, not one of ours", function()
        leads(lead(url, "timed"))
        local told = crown.json.decode(run({ "info", "--oracle", (url:gsub("%?.*", "")), "--json" }).stdout)
        local is_register = oracle_name == "redis" or oracle_name == "postgres_lease"
        local ttl = not is_register and tonumber(url:match "ttl=([%d.]+)") or nil
        local one = told.elections[1]
        if is_register then assert.is_true(one.renewed_ago >= 0) end -- a register knows no TTL of an election
        assert.same({ "timed", ttl }, { one.name, oracle_name == "etcd" and one.ttl or told.ttl })
        if ttl then assert.is_true(one.expires_in > 0 and one.expires_in <= ttl) end
        if oracle_name == "nats_kv" then
          assert.is_true(one.revision >= one.epoch)
          assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d", one.written)
        end
      end)

      it("evict the leader in order, and say who leads now", function()
        local one = lead(url, "evicted")
        leads(one)
        local two = lead(url, "evicted", "two")
        two:follows()
        local epoch = elections(url)[1].epoch
        local result = run { "evict", "--oracle", url, "--force", "evicted" }
        assert.equal(0, result.code, result.stderr)
        local pattern = ("^evicted one from 'evicted' %%(epoch %d%%)\n'evicted' is led by two now %%(epoch (%%d+)%%)\n$"):format(epoch)
        assert.is_true(tonumber(result.stdout:match(pattern)) > epoch, result.stdout)
      end)

      it("say that nobody leads", function()
        leads(lead(url, "there"))
        local result = run { "evict", "--oracle", url, "--force", "not-there" }
        assert.equal(1, result.code)
        assert.equal(("crown-lua: evict: nobody leads 'not-there' in %s\n"):format(require("crown.core").redact(url)), result.stderr)
      end)
    end)
  end

  it("tell about the store, and warn of what makes elections unsafe or slow", function()
    local text = run({ "info", "--oracle", server.url .. "?ttl=0.5" }).stdout
    assert.matches("Store      PostgreSQL %d+%.%d+, primary, 0 replicas", text)
    assert.matches("Warning    a TTL of 0.5 s", text)
    local one = lead(server.url, "x")
    leads(one)
    server:sql "ALTER TABLE crown_lease_v1 SET UNLOGGED"
    assert.matches("is UNLOGGED: a crash empties it", run({ "info", "--oracle", server.url }).stdout)
    server:sql "ALTER TABLE crown_lease_v1 SET LOGGED"
    local json = crown.json.decode(run({ "info", "--json", "--oracle", server.url .. "?ttl=600" }).stdout)
    assert.matches("for so long nobody leads", json.warnings[1])
    assert.matches("PostgreSQL", json.store.store)
  end)

  it("end with 3 and one line when the store cannot be reached, within the time-out", function()
    for _, url in ipairs { "postgres://crown:secret@127.0.0.1:1/x", "postgres+advisory://127.0.0.1:1/x",
      "oban+postgres://127.0.0.1:1/x" } do
      local result = run { "info", "--oracle", url }
      assert.equal(3, result.code)
      assert.equal(1, select(2, result.stderr:gsub("\n", "")))
      assert.is_nil(result.stderr:find "secret")
    end
  end)

  it("refuse a pattern that is none", function()
    local result = run { "info", "--oracle", server.url, "(" }
    assert.equal(2, result.code)
    assert.matches("no regular expression", result.stderr)
  end)

  it("shows who else takes part where the store knows it, and in which order they come", function()
    local url = ORACLES.etcd()
    leads(lead(url, "shared", "ann"))
    lead(url, "shared", "ben")
    eventually(function()
      assert.same({ "ann", "ben" }, elections(url)[1].candidates)
      return true
    end, 20)
    assert.matches("Expires in%s+TTL%s+Candidates\nshared%s+ann%s+%d+%s+%S.-ann, ben\n", run({ "info", "--oracle", url }).stdout)
  end)

  it("computes for as long as it takes without a warning, which is for those who hold up elections", function()
    local dir = tempdir()
    local file = assert(io.open(dir .. "/slow.lua", "w"))
    file:write [[
      local function never() end
      return { init = never, claim = never, refresh = never, list = function()
        local till = os.clock() + 0.6
        while os.clock() < till do end
        return { { name = "listed", epoch = 1 } }
      end }]]
    file:close()
    local function info(level)
      return run({ "info", "--oracle", "slow", "--log-level", level }, { env = { LUA_PATH = dir .. "/?.lua;;" } })
    end
    assert.same({ 0, "" }, { info("info").code, info("info").stderr })
    assert.matches("slow.lua:%d: a task has run for 200 ms", info("debug").stderr)
  end)

  it("tells of a store that compares and swaps, also where a record cannot be read", function()
    local dir = tempdir()
    local file = assert(io.open(dir .. "/shelf.lua", "w"))
    file:write [[return require("crown.oracle.cas").oracle { word = "shelf",
      read = function(self) return self.name == "odd" and "no record" or '{"v":1,"serial":1,"epoch":7,"memory":"","nonce":"n"}', 1 end,
      write = function() return false end,
      names = function() return { "even", "odd", "@token-15" } end }]]
    file:close()
    local result = run({ "info", "--oracle", "shelf" }, { env = { LUA_PATH = dir .. "/?.lua;;" } })
    assert.same({ 0, "" }, { result.code, result.stderr })
    assert.matches("even%s+-%s+7", result.stdout)
    assert.matches("odd%s+-%s+-%s+-%s+the store's value is not a record of an election", result.stdout)
    assert.is_nil(result.stdout:find("@token", 1, true))
  end)

  describe("on a terminal", function()
    it("draw lines, by the locale, and fit the width", function()
      local url = "file:" .. tempdir()
      leads(lead(url, ("long"):rep(20)))
      local one = terminal { args = { "info", "--oracle", url }, env = { LC_ALL = "C.UTF-8" }, columns = 60 }
      one:shows "└"
      for line in one:shown():gmatch "[┌│][^\r\n]*" do
        assert.is_true(select(2, line:gsub("[^\128-\191]", "")) <= 60, line)
      end
      assert.matches("longlong.*…", one:shown())
      local two = terminal { args = { "info", "--oracle", url }, env = { LC_ALL = "C" }, columns = 60 }
      two:shows "%+%-%-"
      assert.matches("longlong.*%.%.%.", two:shown())
    end)

    it("are redrawn in place with --watch", function()
      local url = "file:" .. tempdir()
      local one = terminal { args = { "info", "--oracle", url, "--watch" }, env = { LC_ALL = "C" } }
      one:shows "Elections  0"
      leads(lead(url, "new"))
      one:shows "new"
      assert.matches("\27%[H", one:shown())
      one:type "\3"
      assert.is_true(one:wait(5) > 0)
    end)

    it("ask before they evict", function()
      local url = "file:" .. tempdir()
      leads(lead(url, "asked"))
      local no = terminal { args = { "evict", "--oracle", url, "asked" } }
      no:shows "Evict the current leader of 'asked'%? %[y/N%]"
      no:type "n\n"
      assert.equal(1, no:wait(5))
      assert.equal(1, elections(url)[1].epoch)
      local yes = terminal { args = { "evict", "--oracle", url, "asked" } }
      yes:shows "y/N"
      yes:type "y\n"
      yes:shows "evicted one from 'asked'"
      yes:shows "'asked' is led by one now %(epoch 2%)"
    end)
  end)

  it("refuse to evict unasked where nobody can answer", function()
    local result = run { "evict", "--oracle", "file:" .. tempdir(), "x" }
    assert.equal(2, result.code)
    assert.matches("use %-%-force", result.stderr)
    assert.equal(2, run({ "evict", "--force", "a/b" }).code)
    assert.equal(2, run({ "evict", "--force" }).code)
  end)
end)
