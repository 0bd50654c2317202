-- A command that has to say WATCHDOG=1, and falls silent: it is started again, and then the term ends. Real processes on the file oracle.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local Runs = require "support.runs"
local signals = require "support.signals"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local says = Runs.says
local SECONDS = 2 -- for which it may be silent, on a busy machine
-- Says WATCHDOG=1 as long as a file is there.
local SPEAKER = [[#!/bin/sh
echo "begins, to say so each $WATCHDOG_USEC us"
while test -e %s/alive; do
  printf 'STATUS=here\nWATCHDOG=1' | socat -u - "ABSTRACT-SENDTO:${NOTIFY_SOCKET#@}" && echo said
  sleep 0.1
done
exec sleep 600]]

describe("a command with a watchdog", function()
  local runs
  before_each(function() runs = Runs.new() end)
  after_each(function() runs:destroy() end)

  local function count(one, word) return select(2, one:output():gsub(word, "")) end

  local function start(node)
    local dir = tempdir()
    write_file(dir .. "/alive", "")
    write_file(dir .. "/speaker", SPEAKER:format(dir))
    local app = write_file(dir .. "/app.lua", ([[
      require("crown").elect { name = "x", oracle = %q, child = { command = { "sh", %q }, watchdog = %g, restart = { max = 1 } } }]])
      :format(runs.oracle, dir .. "/speaker", SECONDS))
    return runs:keep(Candidate.start { args = { "--log-level", "info", app }, node = node, log = dir .. "/log",
      env = { CROWN_DIRECTORY = dir } }), dir
  end

  it("that falls silent is started again, and then the term ends; one that says it, never", function()
    local one, dir = start "one"
    says(one, ("begins, to say so each %d us"):format(SECONDS * 1e6))
    local two = start "two"
    eventually(function() return count(one, "said") >= 25 end, 30) -- for longer than it may be silent
    assert.same({ 1, 0 }, { count(one, "begins"), count(one, "child.silent") })
    assert(os.remove(dir .. "/alive"))
    says(one, "child.silent [^\n]*error=\"it has not said WATCHDOG=1 for 2.0 s\" role=leader pid=%d+", 30)
    eventually(function() return count(one, "begins") == 2 end, 30)
    says(one, "leadership.lost [^\n]*reason=child_failed", 30)
    assert.equal(2, count(one, "child.silent"))
    says(two, "said", 30)
  end)

  it("is not taken for silent when this runtime has stood still", function()
    local one = start "one"
    says(one, "said")
    local runtime = one:pids("runtime")[1]
    signals.send(runtime, "STOP")
    local stopped = count(one, "said")
    eventually(function() return count(one, "said") > stopped end) -- it goes on
    os.execute("sleep 1.5") -- less than the supervisor allows, and more than half of what the command may
    signals.send(runtime, "CONT")
    stopped = count(one, "said")
    eventually(function() return count(one, "said") > stopped + 25 end, 30)
    assert.same({ 1, 0 }, { count(one, "begins"), count(one, "child.silent") })
  end)

  it("that falls silent under run --once has failed, and that is marked", function()
    local redis = require("support.redis").start()
    finally(function() redis:destroy() end)
    local oracle = redis.url .. "?trust_empty=true&amnesia_wait=0"
    local result = run { "run", "--oracle", oracle, "--once", "--done-for", "60", "--watchdog", "0.5", "x", "sleep", "60" }
    assert.equal(1, result.code)
    assert.matches("run: the command was stopped before its end: it has not said WATCHDOG=1 for 0.5 s", result.stderr, 1, true)
    assert.matches("failed on .*: it has not said WATCHDOG=1", run({ "info", "--oracle", oracle, "x" }).stdout)
  end)

  it("is told by check, and is an option of run's", function()
    local result = run { "check", "--oracle", runs.oracle, "run", "--watchdog", "10", "x", "true" }
    assert.matches("child          true, stopped when it does not say WATCHDOG=1 for 10 s", result.stdout)
  end)
end)
