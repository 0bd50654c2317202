-- Who leads, and when, as operators see it: candidates with rules of their own, real processes on the file oracle.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local Runs = require "support.runs"
local tempdir = require "support.tempdir"
local WrongClock = require "support.wrong_clock"
local write_file = require "support.write_file"

local says = Runs.says

describe("a candidate's own rules", function()
  local runs, dir

  before_each(function()
    runs, dir = Runs.new(), tempdir()
  end)
  after_each(function() runs:destroy() end)

  local function shown(...)
    local result = run({ ... }, { env = { CROWN_DIRECTORY = dir } })
    assert.equal(0, result.code, result.stderr)
    return result.stdout
  end

  -- A health check is a process of its own, beside the leader's child.
  local function is_leading(one)
    for _, pid in ipairs(one:pids "child") do
      if (read_file(("/proc/%d/comm"):format(pid)) or ""):find "^sleep" then return true end
    end
    return false
  end

  local function leads(one)
    eventually(function() return is_leading(one) end, 20)
  end

  -- Makes a check that passes while a file is there.
  local function switch()
    local path = tempdir() .. "/healthy"
    write_file(path, "")
    return path
  end

  describe("healthy", function()
    local function app(options)
      return write_file(tempdir() .. "/app.lua", ([[
        require("crown").elect { name = "x", oracle = %q, child = { "sleep", "60" },
          healthy = { %s, every = 0.1, fail = 2, pass = 2 } }]]):format(runs.oracle, options))
    end
    local function start(node, options)
      return runs:keep(Candidate.start { args = { "--log-level", "info", app(options) }, node = node,
        log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } })
    end
    local function by_file(path) return ("exec = { 'sh', '-c', 'test -e %s || { echo no disk >&2; exit 3; }' }"):format(path) end

    it("makes a leader whose check fails step down for one whose check passes, and back", function()
      local of_one, of_two = switch(), switch()
      local one = start("one", by_file(of_one))
      leads(one)
      local two = start("two", by_file(of_two))
      two:follows()
      assert(os.remove(of_one))
      leads(two)
      assert.is_false(is_leading(one))
      says(one, "leadership.lost [^\n]*reason=unhealthy error=\"exit code 3: no disk\"")
      assert.matches("unhealthy for [%d.]+ s: exit code 3: no disk", shown "status")
      write_file(of_one, "")
      says(one, "leadership.barred.*leadership.allowed.*leadership.barred.*leadership.allowed")
      assert(os.remove(of_two))
      leads(one)
      assert.is_false(is_leading(two))
    end)

    it("leaves an election without a leader while nobody is healthy", function()
      local one = start("one", by_file "/nowhere")
      says(one, "leadership.barred [^\n]*phase=init")
      eventually(function() return shown("status"):find("exit code 3: no disk", 1, true) end)
      assert.is_false(is_leading(one))
      assert.is_nil(one:output():find("leadership.claimed", 1, true))
    end)

    it("asks a URL, whose status counts", function()
      local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
        local status = assert(connection:read "*l"):find("GET /ready ", 1, true) and "200 OK" or "503 Busy"
        connection:write(("HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"):format(status))
        connection:close()
      end))
      local one = start("one", ("http = 'http://127.0.0.1:%d/ready'"):format(listener:port()))
      leads(one)
      local two = start("two", ("http = 'http://127.0.0.1:%d/other'"):format(listener:port()))
      eventually(function() return shown("status"):find("HTTP status 503", 1, true) end)
      assert.is_false(is_leading(two))
      listener:close()
      eventually(function() return not is_leading(one) end, 20)
    end)

    it("counts a check that does not end as failed", function()
      local one = start("one", "timeout = 0.2, exec = { 'tail', '-f', '/dev/null' }")
      eventually(function() return shown("status"):find("tail did not end within 0.2 s", 1, true) end)
      assert.is_false(is_leading(one))
    end)

    it("is a command of run's, which is told of which election and node it is asked", function()
      local path = tempdir() .. "/asked"
      local one = runs:start("one", "--healthy", ("echo $CROWN_ELECTION $CROWN_NODE > %s"):format(path), "x", "sleep", "60")
      leads(one)
      assert.equal("x one\n", read_file(path))
    end)

    it("has run --once wait until it passes, and --wait give up with why", function()
      local path = switch()
      assert(os.remove(path))
      local result = runs:finish("--healthy", "test -e " .. path, "--once", "--wait", "0.5", "x", "echo", "done")
      assert.same({ 1, "" }, { result.code, result.stdout })
      assert.matches("run: 'x' may not be led here: unhealthy %(exit code 1%)", result.stderr)
      write_file(path, "")
      result = runs:finish("--healthy", "test -e " .. path, "--once", "x", "echo", "done")
      assert.same({ 0, "done\n" }, { result.code, result.stdout })
    end)
  end)

  describe("window", function()
    local AUTUMN = 1824944400 -- 2027-10-31 01:00 UTC, when Berlin's clocks go back from 3:00 to 2:00
    local SPRING = 1806195600 -- 2027-03-28 01:00 UTC, when they go from 2:00 to 3:00

    -- A candidate whose wall clock shows an instant, and goes on.
    local function start(node, clock, ...)
      local env = clock:environment()
      env.CROWN_DIRECTORY = dir
      local args = { "--log-level", "info", "run", "--oracle", runs.oracle, "--restart", "permanent", ... }
      return runs:keep(Candidate.start { args = args, node = node, log = tempdir() .. "/log", env = env })
    end
    local function clock_at(instant) return WrongClock.new(instant - os.time()) end

    it("lets a candidate lead at its hours, and step down at their end, as the clocks are put forward", function()
      local one = start("one", clock_at(SPRING - 3), "--window", "Sun 02:30-04:00 Europe/Berlin", "x", "sleep", "60")
      says(one, "'x' may not be led here: window %(outside of Sun 02:30%-04:00 Europe/Berlin%)")
      leads(one)
      local two = start("two", clock_at(SPRING + 3597), "--window", "Sun 02:30-04:00 Europe/Berlin", "y", "sleep", "60")
      leads(two)
      eventually(function() return not is_leading(two) end, 20)
      says(two, "no longer leading 'y': window %(outside of [^)]*%); campaigning again when it may be led here")
    end)

    it("and as they are put back", function()
      local one = start("one", clock_at(AUTUMN - 1803), "--window", "Sun 01:00-02:30 Europe/Berlin", "--window",
        "Mon 08:00-09:00 Europe/Berlin", "x", "sleep", "60")
      leads(one)
      eventually(function() return not is_leading(one) end, 20)
      assert.matches("window for [%d.]+ s: outside of Sun 01:00%-02:30 Europe/Berlin, Mon 08:00%-09:00 Europe/Berlin",
        shown "status")
    end)

    it("is refused at once where it is none, and told by check", function()
      local result = runs:finish("--window", "08:00-18:00", "x", "true")
      assert.equal(2, result.code)
      assert.matches("window: '08:00%-18:00': a window is DAYS FROM%-TO ZONE, as in", result.stderr)
      assert.matches("who leads      in these hours: Mon%-Fri 08:00%-18:00 UTC, Sat 09:00%-12:00 UTC", shown("check", "--oracle",
        runs.oracle, "run", "--window", "Mon-Fri 08:00-18:00 UTC", "--window=Sat 09:00-12:00 UTC", "x", "true"))
    end)
  end)

  describe("never", function()
    it("keeps a candidate from leading, also when nobody leads", function()
      local never = runs:start("never", "--never", "--follower", "echo I follow; exec sleep 60", "x", "echo", "I lead")
      says(never, "I follow")
      says(never, "'x' may not be led here: never %(this candidate only follows%)")
      local other = runs:start("other", "x", "sleep", "60")
      leads(other)
      other:signal "TERM"
      assert.equal(0, other:wait(10))
      assert.is_nil(run({ "info", "--oracle", runs.oracle, "--json" }).stdout:find('"node":"never"', 1, true))
      assert.is_nil(never:output():find "I lead")
      never:signal "TERM"
      assert.equal(0, never:wait(10))
    end)

    it("is shown with its reason by status, its JSON, the page and the metrics", function()
      local app = write_file(tempdir() .. "/app.lua", ([[
        require("crown").elect { name = "x", never = true, preference = 10, window = "00:00-24:00 UTC", oracle = %q,
          child = { command = { "sleep", "60" }, watchdog = 30 } }]]):format(runs.oracle))
      local one = runs:keep(Candidate.start { args = { "--http", "127.0.0.1:0", "--log-level", "info", app },
        node = "one", log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } })
      says(one, "http.listening.- port=%d+")
      says(one, "leadership.barred [^\n]*reason=never error=\"this candidate only follows\"")
      assert.matches("May not lead.*x .*never for [%d.]+ s: this candidate only follows", shown "status")
      local status = crown.json.decode(shown("status", "--json")).runtimes[1].elections[1]
      assert.same({ "following", "never", "this candidate only follows" },
        { status.phase, status.barred[1].reason, status.barred[1].why })
      assert.is_true(status.barred[1].since < 60)
      local rules = { never = true, preference = 10, window = { "00:00-24:00 UTC" }, watchdog = 30 }
      assert.same(rules, status.rules)
      local words = "only follows, prefer 10, 00:00%-24:00 UTC, watchdog 30 s"
      assert.matches("Rules .*x .*" .. words, shown "status")
      local port = tonumber(one:output():match "http.listening.- port=(%d+)")
      assert.matches("may not lead: never for [%d.]+ s: this candidate only follows", http.ask(port, "GET /").body)
      assert.matches('history/x">x</a> <span class="soft">' .. words, http.ask(port, "GET /").body)
      assert.same(rules, crown.json.decode(http.ask(port, "GET /api/elections").body).elections[1].rules)
      local metrics = http.ask(port, "GET /metrics").body
      assert.matches('\ncrown_eligible{[^}]*} 0\n', metrics)
      local barred_for = tonumber(metrics:match '\ncrown_ineligible_seconds{[^}]*} ([%d.]+)\n')
      assert.is_true(barred_for > 0 and barred_for < 60, barred_for)
      assert.is_false(is_leading(one))
    end)

    it("is refused where it could only give up, in one sentence", function()
      for given, option in pairs { ["--once"] = "--once", ["--wait=5"] = "--wait" } do
        local result = runs:finish("--never", given, "x", "true")
        assert.equal(2, result.code)
        local said = ("run: --never never leads, so %s could only give up"):format(option)
        assert.truthy(result.stderr:find(said, 1, true), result.stderr)
      end
    end)

    it("is told by check", function()
      local words = { "--oracle", runs.oracle, "run", "--never", "x", "true" }
      assert.matches("who leads      this candidate only follows %(never%)", shown("check", unpack(words)))
      assert.same({ "this candidate only follows (never)" }, crown.json.decode(shown("check", "--json", unpack(words)))[1].rules)
    end)
  end)
end)
