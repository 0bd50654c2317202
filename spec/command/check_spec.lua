-- crown-lua check: an app or a `run`, its timing, and its store.
local crown = require "crown"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("crown-lua check", function()
  local function app(text)
    return write_file(tempdir() .. "/app.lua", 'require("crown").elect ' .. text)
  end

  it("gives timing as numbers, beside the explanation", function()
    local path = app [[{ name = "c", oracle = { "memory", ttl = 10 }, stop_timeout = 2 }]]
    local found = crown.json.decode(run({ "check", "--json", path }).stdout)[1]
    assert.same({ "c", "memory", 10, 2 }, { found.name, found.oracle, found.timing.ttl, found.timing.stop_timeout })
    local timing = found.timing
    assert.is_true(timing.stop_at < timing.kill_at and timing.kill_at < timing.deadline and timing.deadline < timing.ttl)
    assert.matches("no overlap", found.explanation)
  end)

  it("does not say that there is no lease where the oracle has yet to tell", function()
    local custom = [[{ name = "c", oracle = { init = function() return {} end, claim = function() return true, 5, { ttl = 5 } end,
      refresh = function() return true, 5 end } }]]
    assert.matches("lease%s+known at the first grant; twice the delay if none is named", run({ "check", app(custom) }).stdout)
    assert.matches("lease%s+none", run({ "check", app('{ name = "c", oracle = "file:' .. tempdir() .. '" }') }).stdout)
  end)

  it("checks what would follow `crown-lua run`, its own options among it", function()
    local fine = run { "check", "run", "--oracle", "memory:", "--ttl", "8", "--stop-timeout", "1", "x", "sh", "-c", "exit 1" }
    assert.equal(0, fine.code, fine.stderr)
    assert.matches("child%s+sh %-c exit 1\n.*TTL%s+8 s.*stop_timeout%s+1 s", fine.stdout)
    for problem, words in pairs {
      ["belongs to %-%-signal"] = { "--fence", "x", "true" },
      ["no program 'no%-such'"] = { "x", "no-such" },
      ["name a command for 'x'"] = { "x" },
      ["did you mean '%-%-restart'"] = { "--restrat", "permanent", "x", "true" },
      ["could overlap"] = { "--oracle", "memory:", "--ttl", "2", "--stop-timeout", "2", "x", "true" },
    } do
      local result = run { "check", "run", unpack(words) }
      assert.equal(2, result.code)
      assert.matches(problem, result.stderr)
    end
  end)

  describe("with --store", function()
    it("says that a store gives no answer, with exit code 3", function()
      local result = run { "check", "--store", "--oracle", "redis://127.0.0.1:1", "run", "x", "true" }
      assert.equal(3, result.code)
      assert.matches("PROBLEM%s+connect to 127.0.0.1:1: Connection refused", result.stdout)
      assert.matches("a store gives no answer", result.stdout)
    end)

    it("claims nothing", function()
      local place = tempdir()
      local result = run { "check", "--store", "--oracle", "file:" .. place, "run", "x", "true" }
      assert.equal(0, result.code, result.stderr)
      assert.matches("not checked%s+what this candidate may write", result.stdout)
      assert.matches("answer%s+the store answers\n", result.stdout)
      assert.same({}, crown.json.decode(run({ "info", "--oracle", "file:" .. place, "--json" }).stdout).elections)
    end)

    it("says which commands a Redis user may not run, and what was not checked", function()
      local server = Redis.start { config = "user all on nopass ~* &* +@all\n"
        .. "user reader on nopass ~crown:* &crown:* +@all -set -eval\nuser other on nopass ~app:* &app:* +@all\n"
        .. "user silent on nopass ~crown:* &crown:* +@all -acl\n" }
      finally(function() server:destroy() end)
      local function check(user)
        return run { "check", "--store", "--oracle", ("redis://%s:x@127.0.0.1:%d"):format(user, server.port), "run", "x", "true" }
      end
      local all = check "all"
      assert.equal(0, all.code, all.stdout .. all.stderr)
      assert.matches("lets this candidate take part", all.stdout)
      local reader = check "reader"
      assert.equal(2, reader.code)
      assert.matches("PROBLEM%s+reader: .-no permissions to run the 'set' command", reader.stdout)
      assert.matches("'eval' command", reader.stdout)
      assert.is_nil(reader.stdout:find "'get' command")
      local other = check "other"
      assert.equal(2, other.code)
      assert.matches("PROBLEM%s+other: .-key\n", other.stdout)
      assert.matches("PROBLEM%s+other: .-channel\n", other.stdout)
      local silent = check "silent"
      assert.equal(0, silent.code, silent.stdout .. silent.stderr)
      assert.matches("not checked%s+what this user may do: NOPERM", silent.stdout)
      assert.matches("answer%s+the store answers\n", silent.stdout)
      assert.equal(0, #server:call("KEYS", "*"))
    end)

    it("says what rights a user lacks, and shows settings that are dangerous", function()
      local server = Postgres.start()
      finally(function() server:destroy() end)
      server:sql "CREATE ROLE stranger LOGIN"
      local result = run { "check", "--store", "--oracle", server:url_for "stranger", "run", "x", "true" }
      assert.equal(2, result.code, result.stdout .. result.stderr)
      assert.matches("PROBLEM%s+there is no table .-, and stranger may not create it", result.stdout)
      local fine = crown.json.decode(run({ "check", "--json", "--store", "--oracle", server.url, "run", "x", "true" }).stdout)[1].store
      assert.same({}, fine.problems)
      assert.is_true(fine.reached)
      assert.equal("Store", fine.facts[1][1])
      assert.same({}, crown.json.decode(run({ "info", "--oracle", server.url, "--json" }).stdout).elections)
    end)
  end)
end)
