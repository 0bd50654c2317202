-- A winner that waits before it acts, as operators see it: by the cool-down of Choria's bucket, and by the app's.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local Player = require "support.oracle_candidate"
local run = require "support.run"
local Runs = require "support.runs"
local tempdir = require "support.tempdir"
local Wire = require "support.nats_wire"
local write_file = require "support.write_file"

local CHORIAS = "CHORIA_LEADER_ELECTION" -- where a winner cools down for three quarters of the TTL, unless it is told otherwise
local TTL = 2

local says, count = Runs.says, Runs.count

describe("a cool-down", function()
  local server, oracle, started, dir
  local serial, name = 0, nil

  setup(function()
    server = Nats.start()
    oracle = ("%s/%s?amnesia_wait=0"):format(server.url, CHORIAS)
    Wire.open(server.port):make_bucket(CHORIAS, TTL)
    local first = Player.new(kv, { name = "first", url = oracle, amnesia_wait = 0 })
    first:win() -- a bucket that is younger than its TTL is sat out
    first:abdicate()
  end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial, started, dir = serial + 1, {}, tempdir()
    name = "x" .. serial
  end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function start(node, ...)
    started[#started + 1] = Candidate.start { args = { ... }, node = node, log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } }
    return started[#started]
  end

  -- A candidate that cools down for so many seconds, by each of the two.
  local KINDS = {
    ["of the app"] = function(seconds, node)
      local app = write_file(dir .. "/app.lua", ([[
        require("crown").elect { name = %q, cool_down = %g, child = { "sleep", "60" } }]]):format(name, seconds))
      return start(node or "one", "--log-level", "info", "--oracle", "file:" .. dir .. "/locks", "--http", "127.0.0.1:0", app)
    end,
    ["of the oracle"] = function(seconds, node)
      return start(node or "one", "--log-level", "info", "run", "--restart", "permanent", "--http", "127.0.0.1:0", "--oracle",
        ("%s&cool_down=%g"):format(oracle, seconds), name, "sleep", "60")
    end,
  }

  local function shown(...)
    local result = run({ ... }, { env = { CROWN_DIRECTORY = dir } })
    assert.equal(0, result.code, result.stderr)
    return result.stdout
  end

  for word, declare in pairs(KINDS) do
    describe(word, function()
      it("is shown for what it is: nobody follows itself", function()
        local one = declare(600)
        says(one, "leadership.claimed [^\n]*phase=cooling", 20)
        assert.matches(name .. " +cooling down, acts in %d+ min %d+ s +one +%d+ ", shown "status")
        local status = crown.json.decode(shown("status", "--json")).runtimes[1].elections[1]
        assert.same({ "cooling", "one", false }, { status.phase, status.leader, status.acting })
        assert.is_true(status.acts_in > 500 and status.acts_in <= 600)

        local port = tonumber(one:output():match "http.listening.- port=(%d+)")
        local function get(path) return http.ask(port, "GET " .. path) end
        assert.matches('<span class="badge cooling">cooling</span> <span class="soft">acts in [56]%d%d.%d s</span>',
          get("/").body:match "<tbody>.*</tbody>")
        local metrics = get("/metrics").body
        assert.is_true(tonumber(metrics:match '\ncrown_cooling_seconds{[^}]*} ([%d.]+)\n') > 500)
        assert.matches('\ncrown_leader{[^}]*} 0\n', metrics)
        local reply = get("/leader/" .. name)
        assert.same({ 503, false }, { reply.status, crown.json.decode(reply.body).leading })
        assert.is_true(crown.json.decode(reply.body).acts_in > 500)

        assert.equal(0, #one:pids "child")
        assert.is_nil(one:output():find "following")
        eventually(function() -- told a moment later
          return crown.exec({ "ps", "-o", "args=", tostring(one.pid) }).stdout:find(name .. " [cooling]", 1, true)
        end)
      end)

      it("is over, and then it leads, also the second time", function()
        local one = declare(0.7)
        for time = 1, 2 do
          eventually(function() return #one:pids "child" == 1 end, 20)
          assert.same({ time, time }, { count(one, "leadership.claimed [^\n]*phase=cooling"),
            count(one, "leadership.acting [^\n]*phase=leading") })
          local status = crown.json.decode(shown("status", "--json")).runtimes[1].elections[1]
          assert.same({ "leading", nil, true }, { status.phase, status.acts_in, status.acting })
          if time == 1 then
            shown("abdicate", name)
            eventually(function() return #one:pids "child" == 0 end)
          end
        end
      end)

      it("begins anew when the runtime is killed meanwhile, each time", function()
        local one = declare(600)
        for time = 1, 3 do
          eventually(function() return count(one, "leadership.claimed [^\n]*phase=cooling") == time end, 20)
          if time < 3 then one:hurt("KILL", "runtime") end
        end
        assert.equal(0, count(one, "leadership.acting"))
        assert.equal(0, count(one, "child.started"))
        one:signal "TERM"
        assert.equal(0, one:wait(10))
      end)
    end)
  end

  it("is counted by check in the time until somebody else leads", function()
    local function timing(...)
      return assert(crown.json.decode(shown("check", "--json", ...))[1].timing)
    end
    local words = { "--oracle", server.url, "run", "x", "true" }
    assert.matches("cool_down      45 s between winning and acting\n.*failover       at most 105.9 s", shown("check", unpack(words)))
    assert.equal(45, timing(unpack(words)).cool_down)
    local app = write_file(dir .. "/app.lua", 'require("crown").elect { name = "x", cool_down = 7, child = { "true" } }')
    words = { "--oracle", "redis://127.0.0.1:1?ttl=10", app }
    assert.matches("cool_down      7 s.*failover       at most 1[78][%d.]* s", shown("check", unpack(words)))
    assert.equal(0, timing("--oracle", "redis://127.0.0.1:1?ttl=10", "run", "x", "true").cool_down)
    assert.is_nil(shown("check", "--oracle", "redis://127.0.0.1:1?ttl=10", "run", "x", "true"):find "cool_down")
    assert.matches("lease +none.*cool_down      7 s", shown("check", "--oracle", "file:" .. dir, app))
  end)

  describe("with run", function()
    local function words(seconds, ...)
      return "run", "--log-level", "warn", "--oracle", ("%s&cool_down=%g"):format(oracle, seconds), ...
    end

    it("is waited for by --once, however short --wait is, and where it is Choria's own", function()
      for _, url in ipairs { oracle .. "&cool_down=1", oracle } do
        for _, more in ipairs { { name }, { "--wait", "0.2", name } } do
          local all = { "run", "--oracle", url, "--once" }
          for _, word in ipairs(more) do all[#all + 1] = word end
          for _, word in ipairs { "--", "echo", "ran" } do all[#all + 1] = word end
          local result = run(all)
          assert.same({ 0, "ran\n", "" }, { result.code, result.stdout, result.stderr })
        end
      end
    end)

    it("is not waited for by --once where somebody else cools down", function()
      local one = start("one", words(600, name, "true"))
      says(one, "is won")
      local result = run { "run", "--oracle", oracle, "--once", "--wait", "0.5", name, "true" }
      assert.equal(1, result.code)
      assert.matches("is led by one", result.stderr)
    end)

    it("ends for --once with 1 when the lease is lost to another meanwhile", function()
      local one = start("one", words(600, "--once", name, "true"))
      local wire = Wire.open(server.port)
      eventually(function()
        local last = wire:ask("$JS.API.STREAM.MSG.GET.KV_" .. CHORIAS, nil, ('{"last_by_subj":"$KV.%s.%s"}'):format(CHORIAS, name))
        return last.message and wire:campaign(CHORIAS, name, "choria", last.message.seq)
      end)
      assert.equal(1, one:wait(20))
      says(one, "is led by choria")
    end)

    it("ends for --once with 3 when the store goes meanwhile, with the lease and not before", function()
      local own = Nats.start()
      finally(function() own:destroy() end)
      local one = start("one", "run", "--log-filter", "oracle.error=error", "--oracle",
        own.url .. "?ttl=6&refresh=0.5&trust_empty=true&cool_down=600", "--once", name, "true")
      eventually(function() return run({ "status" }, { env = { CROWN_DIRECTORY = dir } }).stdout:find "cooling down" end)
      own:down()
      says(one, "oracle.error [^\n]*phase=cooling")
      assert.equal(3, one:wait(30))
      assert.equal(1, count(one, "leadership.lost [^\n]*reason=expired"))
    end)

    it("ends for --once with 3 also where the outage has been told by then", function()
      write_file(dir .. "/goes.lua", [[
        local claims = 0
        return { init = function() return {} end, refresh = function() return nil, "gone" end, claim = function()
          claims = claims + 1
          if claims == 1 then return true, 0.2, { ttl = 1, cool_down = 600 } end
          return nil, "gone"
        end }]])
      local result = run({ "run", "--once", "--oracle", "goes:", name, "true" }, { env = { LUA_PATH = dir .. "/?.lua;;" } })
      assert.same({ 3, true }, { result.code, result.stderr:find("run: gone", 1, true) ~= nil }, result.stderr)
    end)

    it("is told on standard error, also the second time and when it is cut short, and shown by info", function()
      local one = start("one", words(2, name, "sleep", "60"))
      says(one, "^crown%-lua: '[^']+' is won %(epoch %d+%): cooling down, acts in [12].%d s\n", 20)
      assert.matches(("Cooling down.*\n%s +one +%%d+ +%%d.%%d s +acts in [0-2].%%d s"):format(name),
        shown("info", "--oracle", oracle, name))
      says(one, "\ncrown%-lua: leading '[^']+' %(epoch %d+%)\n", 20)
      local listed = crown.json.decode(shown("info", "--json", "--oracle", oracle, name)).elections[1]
      assert.same({ "one", nil }, { listed.node, listed.acts_in })
      shown("evict", "--force", "--oracle", oracle, name)
      says(one, "crown%-lua: no longer leading '[^']+': evicted; campaigning again\n")
      eventually(function() return count(one, "cooling down, acts in") == 2 end, 20)
      shown("evict", "--force", "--oracle", oracle, name)
      says(one, "crown%-lua: '[^']+' is lost before its cool%-down is over: evicted; campaigning again\n")
      eventually(function() return count(one, "leading '[^']+' %(epoch") == 2 end, 20)
      assert.equal(3, count(one, "cooling down, acts in"))
      assert.is_nil(one:output():find "following")
    end)
  end)
end)
