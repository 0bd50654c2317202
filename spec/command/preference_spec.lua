-- Which of those that wait leads, as operators see it: real processes on a Redis server, and on lock files, whose orders stand beside.
local crown = require "crown"
local Election = require "support.ordered_election"
local eventually = require("crown.testing").eventually
local Redis = require "support.redis"
local run = require "support.run"
local signals = require "support.signals"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("a preference", function()
  local server
  setup(function() server = Redis.start() end)
  teardown(function() server:destroy() end)

  local STORES = {
    ["in a record"] = function() return server.url .. "?ttl=4&trust_empty=true&amnesia_wait=0" end,
    ["beside an election"] = function() return "file:" .. tempdir() end,
  }

  for where, url in pairs(STORES) do
    describe(where, function()
      local election, name
      before_each(function()
        election = Election.new(url(), tempdir())
        name = election.name
      end)
      after_each(function() election:destroy() end)

      local function start(node, ...)
        local words = { ... }
        for _, word in ipairs { election.name, "sleep", "600" } do words[#words + 1] = word end
        return election:start(node, "run", "--oracle", election.url, "--restart", "permanent", "--log-level", "info", unpack(words))
      end
      local function listed() return crown.json.decode(election:command(0, "info", name, "--json")).elections[1] end
      local function leads(node) -- a health check is a child too
        eventually(function() return (listed() or {}).node == node end, Election.SOON)
      end
      local function is_preferred(words)
        eventually(function() return (listed() or {}).preferred == words end, Election.SOON)
      end

      it("has the higher one lead first, and take over from a lower one when it has waited for so long, once", function()
        local low = start "low"
        election:leads(low)
        local middle, high = start("middle", "--prefer", "5"), start("high", "--prefer", "9", "--preempt", "2")
        election:leads(high)
        assert.equal(0, election:count(low, middle))
        election:says(low, "leadership.lost [^\n]*reason=handover error=\"handed over to high since [^\n]* by high: preference 9 over")
        is_preferred "high 9, middle 5"
        assert.matches("high 9, middle 5", election:command(0, "info", name))
        high:signal "TERM"
        assert.equal(0, high:wait(Election.SOON))
        election:leads(middle)
        assert.equal(0, election:count(low))
        is_preferred "middle 5"
      end)

      it("has run --once wait no longer for one that is gone, and then run", function()
        local low = start "low"
        election:leads(low)
        local high = start("high", "--prefer", "9")
        is_preferred "high 9"
        signals.send(high:pids("supervise")[1] or high.pid, "KILL")
        low:signal "TERM"
        assert.equal(0, low:wait(Election.SOON))
        assert.matches("^done\n", election:command(0, "run", "--oracle", election.url, "--once", "--quiet", name, "echo", "done"))
      end)

      it("of the last resort has one lead where nobody is healthy, until somebody is", function()
        local dir = tempdir()
        local first = start("first", "--healthy", ("test -e %s/first"):format(dir), "--last-resort")
        leads "first"
        is_preferred "first last resort"
        election:says(first, "leadership.barred [^\n]*reason=unhealthy")
        election:says(first, "is unhealthy here %(exit code 1%), and is led here only where nobody else does")
        write_file(dir .. "/second", "")
        local second = start("second", "--healthy", ("test -e %s/second"):format(dir), "--last-resort")
        leads "second"
        election:says(first, "leadership.lost [^\n]*reason=handover")
        election:says(second, "child.started")
        is_preferred "first last resort" -- it waits now
      end)
    end)
  end

  it("is told by check, and refused where it has no effect", function()
    local words = { "--oracle", "redis://x", "run", "--prefer", "5", "--preempt", "60", "--healthy", "true", "--last-resort", "x", "true" }
    local shown = run { "check", unpack(words) }
    assert.equal(0, shown.code, shown.stderr)
    assert.matches("who leads      preference 5: leaves those of a higher one the first claim, for 2 s", shown.stdout)
    assert.matches("asks a leader of a lower one to go after 60 s; unhealthy, it leads where nobody else does", shown.stdout)
    assert.matches("at its death   its child ends with it, and a candidate that may lead claims [%d.]+ s later at most", shown.stdout)
    assert.matches("at its death   this candidate claims 2 s [^\n]* later where one of a higher preference waited and is gone too, and",
      shown.stdout)
    local decoded = crown.json.decode(run({ "check", "--json", unpack(words) }).stdout)[1]
    assert.same({ 2, 2 }, { #decoded.rules, #decoded.death })
    assert.matches("who leads      any candidate, at any time", run({ "check", "--oracle", "redis://x", "run", "x", "true" }).stdout)
    local refused = {
      { "with the oracle 'oban_peer' candidates know nothing of each other", "--oracle", "oban+postgres://x/y", "run", "--prefer", "3",
        "x", "true" },
      { "%-%-last%-resort belongs to %-%-healthy", "--oracle", "redis://x", "run", "--last-resort", "x", "true" },
      { "%-%-never never leads, so %-%-preempt has no effect", "--oracle", "redis://x", "run", "--never", "--preempt", "3", "x", "true" },
      { "%-%-never never leads, so %-%-prefer has no effect", "--oracle", "redis://x", "run", "--never", "--prefer", "3", "x", "true" },
      { "last_resort: with the oracle 'oban_peer' candidates know nothing", "--oracle", "oban+postgres://x/y", "run", "--healthy",
        "true", "--last-resort", "x", "true" },
      { "preempt has no place beside slots", "--oracle", "redis://x", "run", "--slots", "2", "--preempt", "3", "x", "true" },
    }
    for _, case in ipairs(refused) do
      local result = run { "check", unpack(case, 2) }
      assert.equal(2, result.code)
      assert.matches(case[1], result.stderr)
    end
  end)
end)
