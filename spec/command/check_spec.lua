-- crown-lua check: an app or a `run`, its timing, and its store.
local crown = require "crown"
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

  it("answers in JSON whatever is wrong", function()
    for text, problem in pairs {
      ['error "boom"'] = "app.lua:1: boom", ["local x = = 1"] = "app.lua:1: unexpected symbol", ["error()"] = "without a text",
      ['require("crown").elect { name = "c", bogus = 1 }'] = "app.lua:1: elect 'c': unknown option 'bogus'",
      ["return"] = "declares no election", ['error { "a table" }'] = "table",
      ['require("crown").sleep(0.01) error "late"'] = "app.lua:1: late",
    } do
      local result = run { "check", "--json", write_file(tempdir() .. "/app.lua", text) }
      assert.equal(2, result.code, text)
      assert.equal("", result.stderr)
      local found = crown.json.decode(result.stdout)
      assert.equal(1, #found)
      assert.truthy(found[1].error:find(problem, 1, true), found[1].error)
    end
    local two = run { "check", "--json", app [[{ name = "a", oracle = "memory:", child = { "no-such" } }
      require("crown").elect { name = "b", oracle = "memory:" } error "after"]] }
    local found = crown.json.decode(two.stdout)
    assert.equal(2, two.code)
    assert.same({ "a", "b" }, { found[1].name, found[2].name })
    assert.matches("app.lua:2: after", found[3].error)
    local alone = crown.json.decode(run({ "check", "--json",
      app [[{ name = "a", oracle = { "memory", ttl = 15 }, child = { "no-such" } }]] }).stdout)
    assert.matches("no program 'no%-such'", alone[1].error)
    assert.equal(15, alone[1].timing.ttl)
    local command = run { "check", "--json", "run", "--fence", "x", "true" }
    assert.equal(2, command.code)
    assert.matches("belongs to %-%-signal", crown.json.decode(command.stdout)[1].error)
    assert.matches("No such file", crown.json.decode(run({ "check", "--json", "/no/such.lua" }).stdout)[1].error)
  end)

  it("tells once what many elections have in common", function()
    local function text(...) return run({ "check", "--oracle", "redis://x", "run", ... }).stdout end
    local one, many = text("mail", "true"), text("--slots", "30", "mail", "true")
    assert.matches("\n  mail%.2 to mail%.30: as the one above\n", many)
    assert.matches("\n  mail%.2: as the one above\n", text("--slots", "2", "mail", "true"))
    assert.equal(select(2, one:gsub("\n", "")) + 1, select(2, many:gsub("\n", "")))
    assert.matches("run: 30 elections, nothing wrong", many)
  end)

  it("says what is checked where a verb stands in the place of an app", function()
    for word, words in pairs { cron = "a crontab is checked by crown-lua cron --check FILE",
      info = "there is no app 'info' here, and of the verbs only run can be checked" } do
      local result = run { "check", word, "x" }
      assert.same({ 2, ("crown-lua: check: %s\n"):format(words) }, { result.code, result.stderr })
    end
  end)

  it("answers in JSON also where its own options are wrong", function()
    for problem, words in pairs {
      ["unknown option '%-%-stroe' %(did you mean '%-%-store'%?%)"] = { "--stroe", "--json", "app.lua" },
      ["unknown option '%-%-bogus'"] = { "--json", "app.lua", "--bogus" },
      ["%-%-json takes no value"] = { "--json", "--json=yes", "app.lua" },
      ["'4s' is not a number"] = { "--ttl", "4s", "--json", "app.lua" },
      ["no oracle has the scheme 'postgrse'"] = { "--oracle", "postgrse://:secret@h/d", "--json", "run", "x", "true" },
      ["name an app"] = { "--json" },
    } do
      local result = run { "check", unpack(words) }
      assert.same({ 2, "" }, { result.code, result.stderr }, problem)
      local found = crown.json.decode(result.stdout)
      assert.equal(1, #found)
      assert.matches(problem, found[1].error)
    end
    assert.matches("^%[", run({ "check", "--json", "run", "--bogus", "x", "true" }).stdout)
    local anothers = run { "check", "--bogus", "run", "x", "tool", "--json" } -- the command's own
    assert.equal("", anothers.stdout)
    assert.matches("unknown option '%-%-bogus'", anothers.stderr)
  end)

  it("does not say that there is no lease where the oracle has yet to tell", function()
    local custom = [[{ name = "c", oracle = { init = function() return {} end, claim = function() return true, 5, { ttl = 5 } end,
      refresh = function() return true, 5 end } }]]
    assert.matches("lease%s+known at the first grant; twice the delay if none is named", run({ "check", app(custom) }).stdout)
    for _, options in ipairs { "", "?check=5", "?ttl=9", "?ttl=9&check=40" } do -- Oban's lease is Oban's
      local told = run { "check", "run", "--oracle", "oban+postgres://h/d" .. options, "x", "true" }
      assert.equal(0, told.code, told.stderr)
      assert.matches("lease%s+the store's own, known at the first grant\n", told.stdout)
    end
    assert.matches("lease%s+none", run({ "check", app('{ name = "c", oracle = "file:' .. tempdir() .. '" }') }).stdout)
  end)

  it("prints every time without an exponent, and no refresh where none comes", function()
    local long = run { "check", "--oracle", "redis://db?ttl=30000", "run", "x", "true" }
    assert.matches("TTL%s+30000 s.*refresh%s+every 10000 s.*failover%s+at most 3030[%d.]+ s.*< TTL 30000 s", long.stdout)
    local event_driven = [[{ name = "c", oracle = { init = function() return {} end, claim = print, refresh = print,
      timing = function() return 9, math.huge end } }]]
    local told = run({ "check", app(event_driven) }).stdout
    assert.matches("refresh%s+never: the oracle sees a loss itself\n", told)
    assert.matches("no overlap%s+stop_timeout [%d.]+ %+ lead [%d.]+ %+ margin [%d.]+ = [%d.]+ s < TTL 9 s", told)
  end)

  it("refuses a key that no lock of Postgres has", function()
    for key, fits in pairs { ["9223372036854775807"] = true, ["-9223372036854775808"] = true, ["0009"] = true, ["7,-2147483648"] = true,
      ["9223372036854775808"] = "64-bit", ["-9223372036854775809"] = "64-bit", ["99999999999999999999"] = "64-bit",
      ["2147483648,1"] = "32-bit", ["1,-2147483649"] = "32-bit" } do
      local result = run { "check", "--oracle", "postgres+advisory://db/app?key=" .. key, "run", "x", "true" }
      assert.equal(fits == true and 0 or 2, result.code, key .. result.stderr)
      if fits ~= true then
        assert.is_truthy(result.stderr:find(("is out of range: "), 1, true), result.stderr)
        assert.is_truthy(result.stderr:find(fits, 1, true), result.stderr)
      end
    end
    for key, problem in pairs { ["{ 7 }"] = "must be a whole number, or two", ["{ 1, 2, 3 }"] = "must be a whole number, or two",
      ["{ 1, 2147483648 }"] = "2147483648 is out of range" } do
      local path = app(('{ name = "c", oracle = { "postgres_advisory", url = "postgres://db/app", key = %s } }'):format(key))
      local result = run { "check", path }
      assert.equal(2, result.code, key)
      assert.is_truthy(result.stderr:find(problem, 1, true), result.stderr)
    end
  end)

  it("looks for the module of a child of Lua's where that would, and does not run it", function()
    local dir = tempdir()
    write_file(dir .. "/mine.lua", "io.stderr:write 'it ran'")
    write_file(dir .. "/broken.lua", "return +")
    local function child(text) return run({ "check", app(('{ name = "c", child = { lua = %s } }'):format(text)) },
      { env = { LUA_PATH = "./?.lua;;" } }) end
    for text, problem in pairs {
      ['"no.such.module"'] = "elect 'c': child: there is no Lua module 'no.such.module' here that require would find",
      ['"mine"'] = "there is no Lua module 'mine'",
      [('"broken", cwd = "%s"'):format(dir)] = "Lua module 'broken': " .. dir .. "/./broken.lua:1: unexpected symbol",
    } do
      local result = child(text)
      assert.same({ 2, "" }, { result.code, result.stdout })
      assert.is_truthy(result.stderr:find(problem, 1, true), result.stderr)
    end
    local fine = child(('"mine", cwd = "%s"'):format(dir))
    assert.same({ 0, "" }, { fine.code, fine.stderr })
    assert.matches("child%s+Lua module mine\n", fine.stdout)
    assert.equal(0, child('"crown.oracle.cas"').code) -- one that is in the program
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
end)
