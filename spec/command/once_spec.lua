-- `run --once` with marks of what has run, from outside: real processes on a Redis server and on a Postgres server.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Way = require "torture.way"

local SOON = 30 -- seconds, on a busy machine
local LONG = "--done-for=20h"
local RAN = "^crown%-lua: run: '[%w-]+' ran on ann at %d+:%d+:%d+ [+-]%d%d%d%d, took [%d.]+ s\n$"
-- How each is started, its URL, and which of the cases that take seconds are tried there.
local STORES = {
  { "Redis", Redis.start, function(server) return server.url .. "?ttl=3&trust_empty=true&amnesia_wait=0" end, true },
  { "Postgres", Postgres.start, function(server) return server.url .. "?ttl=3" end },
}

local serial = 0

for _, store in ipairs(STORES) do
  describe("run --once on " .. store[1], function()
    local server, dir, url, name, started, ran

    setup(function()
      server, dir = store[2](), tempdir()
      url = store[3](server)
    end)
    teardown(function() server:destroy() end)

    before_each(function()
      serial = serial + 1
      name, started, ran = "job-" .. serial, {}, tempdir() .. "/ran"
    end)
    after_each(function()
      for _, one in ipairs(started) do one:destroy() end
    end)

    -- Each run leaves its node's name in a file.
    local function words(node, options, script)
      local list = { "run", "--once", "--node", node }
      for _, word in ipairs(options) do list[#list + 1] = word end
      for _, word in ipairs { name, "--", "sh", "-c", ("echo $CROWN_NODE >> %s; %s"):format(ran, script or "true") } do
        list[#list + 1] = word
      end
      return list
    end

    local function command(code, list)
      local result = run(list, { env = { CROWN_DIRECTORY = dir, CROWN_ORACLE = url } })
      assert.same({ code, result.stderr }, { result.code, result.stderr })
      return result.stdout .. result.stderr
    end

    local function once(code, node, options, script) return command(code, words(node, options, script)) end

    local function start(node, options, script)
      local one = Candidate.start { args = words(node, options, script), node = node, log = tempdir() .. "/log",
        env = { CROWN_DIRECTORY = dir, CROWN_ORACLE = url } }
      started[#started + 1] = one
      return one
    end

    local function begun() return (read_file(ran) or ""):gsub("\n", " ") end

    it("runs it on one host in its period, and ends at once elsewhere", function()
      assert.equal("", once(0, "ann", { LONG }))
      assert.matches(RAN, once(0, "bob", { LONG }))
      assert.matches(RAN, once(0, "ann", { LONG, "--wait", "20" }))
      assert.equal("", once(0, "bob", { LONG, "--quiet" }))
      assert.equal("ann ", begun())
      assert.matches("ran on ann at %d+:%d+:%d+ [+-]%d%d%d%d, took [%d.]+ s", command(0, { "info", name }))
      local done = crown.json.decode(command(0, { "info", name, "--json" })).elections[1].runs.done
      assert.same({ "ann", 72000 }, { done.node, done["until"] - math.ceil(done.at + done.took) })
    end)

    it("runs it again when the period is over, and by hand at any time", function()
      assert.equal("", once(0, "ann", { "--done-for", "1s" }))
      eventually(function() return once(0, "bob", { "--done-for", "1s" }) == "" end, SOON)
      assert.equal("", once(0, "joe", {}))
      assert.matches("ran on bob", once(0, "ann", { LONG }))
      assert.equal("ann bob joe ", begun())
    end)

    it("runs it again when it has failed, until it succeeds", function()
      assert.equal("", once(3, "ann", { LONG }, "exit 3"))
      assert.equal("", once(137, "bob", { LONG }, "kill -KILL $$"))
      assert.matches("failed 2 times, last on bob at %d+:%d+:%d+ [+-]%d%d%d%d: signal 9", command(0, { "info", name }))
      assert.equal("", once(0, "ann", { LONG }))
      assert.matches(RAN, once(0, "bob", { LONG }))
      assert.is_nil(command(0, { "info", name }):find("failed", 1, true))
      assert.equal("ann bob ann ", begun())
    end)

    it("runs it again where the host has died in the middle, and on one host of many that wait", function()
      local ann = start("ann", { LONG }, "sleep 600")
      eventually(function() return begun() == "ann " end, SOON)
      ann:hurt("KILL", "supervise", "runtime", "keeper", "warden", "child")
      ann:wait(SOON)
      local waiting = {}
      for i, node in ipairs { "bob", "joe", "kim" } do waiting[i] = start(node, { LONG, "--wait", "60" }) end
      for _, one in ipairs(waiting) do assert.equal(0, one:wait(60), one:output()) end
      assert.equal(2, #begun():gsub("%S", ""))
    end)

    it("goes by the period of the candidate that asks, and lets it run again by redo", function()
      assert.equal("", once(0, "ann", { LONG }))
      crown.sleep(1.1)
      assert.equal("", once(0, "bob", { "--done-for", "1" }))
      assert.matches("ran on bob", once(0, "ann", { LONG }))
      assert.matches("' may run again\n$", command(0, { "redo", name }))
      assert.matches("redo: no run of '[%w-]+' is marked in", command(1, { "redo", name }))
      assert.equal("", once(0, "bob", { LONG }))
      assert.equal("ann bob bob ", begun())
    end)

    it("leaves no mark of a command that was stopped", function()
      local ann = start("ann", { LONG }, "sleep 600")
      eventually(function() return begun() == "ann " end, SOON)
      ann:signal "TERM"
      ann:wait(SOON)
      assert.equal("", once(0, "bob", { LONG }))
    end)

    it("marks it beside an operator's pause, which stands after it", function()
      local ann = start("ann", { LONG }, ("while [ ! -e %s.end ]; do sleep 0.1; done"):format(ran))
      eventually(function() return begun() == "ann " end, SOON)
      command(0, { "pause", name, "--keep", "--why", "a new disk" })
      io.open(ran .. ".end", "w"):close()
      assert.equal(0, ann:wait(SOON))
      assert.matches("paused since .*a new disk", once(1, "bob", {}))
      assert.matches(RAN, once(0, "bob", { LONG }))
      command(0, { "resume", name })
      assert.matches(RAN, once(0, "bob", { LONG }))
      command(0, { "pause", name })
      assert.matches(RAN, once(0, "bob", { LONG }))
    end)

    it("marks it also where the store gives no answer for a moment when it ends", function()
      local way = Way.open(function() return server.port end)
      url = store[3](setmetatable({ url = server.url:gsub(":%d+", ":" .. way.port, 1) }, { __index = server }))
      local ann = start("ann", { LONG, "--log-level", "info" }, ("while [ ! -e %s.end ]; do sleep 0.1; done"):format(ran))
      url = store[3](server)
      eventually(function() return begun() == "ann " end, SOON)
      way.refusing = true
      way:reset()
      io.open(ran .. ".end", "w"):close()
      eventually(function() return ann:output():find("the store has not noted that: it is asked again", 1, true) end, SOON)
      way.refusing = false
      assert.equal(0, ann:wait(SOON))
      assert.matches(RAN, once(0, "bob", { LONG }))
      way:close()
    end)

    if not store[4] then
      it("holds it for --at-least, also when the host has died", function()
        local ann = start("ann", { "--at-least", "20h" }, "sleep 600")
        eventually(function() return begun() == "ann " end, SOON)
        ann:hurt("KILL", "supervise", "runtime", "keeper", "warden", "child")
        ann:wait(SOON)
        local held = "^crown%-lua: run: '[%w-]+' is held until [%d-]* ?a?t? ?%d+:%d+:%d+ %S+, as ann began it at %d+:%d+:%d+ %S+\n$"
        eventually(function() return once(1, "bob", {}):find(held) end, SOON)
        assert.equal("ann ", begun())
      end)
      return
    end

    it("says, also with --quiet, that the store could not note it", function()
      local lose = ("redis-cli -p %d DEL 'crown:{%s}:record' > /dev/null"):format(server.port, name)
      assert.matches("'[%w-]+' has ended, and the store has not noted that: it may be run again\n$",
        once(0, "ann", { LONG, "--quiet" }, lose))
    end)

    it("lets others begin when --at-least is over, and not before", function()
      once(0, "ann", { "--at-least", "3" })
      assert.matches("is held until", once(1, "bob", { "--at-least", "3" }))
      assert.equal("", once(1, "bob", { "--at-least", "3", "--quiet" })) -- cron has nothing to mail
      assert.equal("", once(0, "bob", { "--wait", "20" }))
      assert.equal("ann bob ", begun())
    end)

    it("has another host try first after a failure, and the same one where nobody else does", function()
      once(1, "ann", { "--retry-elsewhere" }, "exit 1")
      local ann = start("ann", { "--retry-elsewhere", "--done-for=1h" })
      ann:follows(SOON)
      assert.equal("", once(1, "bob", { "--retry-elsewhere" }, "exit 1"))
      assert.equal(1, ann:wait(SOON))
      assert.equal("ann bob ", begun())
      assert.equal("", once(0, "bob", { "--retry-elsewhere" }))
      assert.equal("ann bob bob ", begun())
    end)
  end)
end

describe("an option for marks of runs", function()
  local function refused(...)
    local result = run { "run", ... }
    assert.equal(2, result.code)
    return result.stderr
  end

  it("is refused in one sentence where no store has marks, and where it means nothing", function()
    local file = "file:" .. tempdir()
    for _, option in ipairs { "--done-for=20h", "--at-least=60", "--retry-elsewhere" } do
      assert.matches("run %-%-[%w-]+: elections of the oracle 'file' keep no marks of runs yet: it keeps no record of an election "
        .. "that could have them\n$",
        refused("--once", "--oracle", file, option, "x", "true"))
      assert.matches("run: %-%-[%w-]+ belongs to %-%-once\n$", refused("--oracle", file, option, "x", "true"))
    end
    assert.matches("%-%-done%-for: 'soon' is no time of up to 3660 days, such as 20h, 90m or 60",
      refused("--once", "--done-for", "soon", "x", "true"))
    assert.matches("%-%-at%-least: '9999d' is no time", refused("--once", "--at-least", "9999d", "x", "true"))
  end)

  it("is accepted by check where it would be by run", function()
    local result = run { "check", "run", "--once", "--oracle", "redis://127.0.0.1:1", "--done-for", "20h", "x", "true" }
    assert.equal(0, result.code, result.stderr)
  end)
end)
