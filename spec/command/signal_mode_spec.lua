-- crown-lua run --signal: a command that lives on, and is told by signals.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local files = require "crown.core.files"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local Redis = require "support.redis"
local Runs = require "support.runs"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("crown-lua run in signal mode", function()
  local oracle, runs

  before_each(function()
    runs = Runs.new()
    oracle = runs.oracle
  end)
  after_each(function() runs:destroy() end)

  local function start(...) return runs:start(...) end
  local says, count = Runs.says, Runs.count

  it("starts the command when it has won, tells it by SIGUSR1 and SIGUSR2, and lets it live on", function()
    local script = Runs.script(Runs.TRAPS)
    local one = start("one", "--log-level", "info", "--signal", "SHELL", script)
    says(one, "Election won\nDoing work")
    local child = one:pids("child")[1]
    local two = start("two", "--signal", "SHELL", script)
    two:follows()
    assert.equal(0, #two:pids "child")
    run { "evict", "--oracle", oracle, "--force", "SHELL" }
    says(one, "Election lost")
    says(one, "sent SIGUSR2 to " .. child)
    says(two, "Election won")
    assert.equal(child, one:pids("child")[1])
    two:signal "TERM"
    eventually(function() return count(one, "Election won") == 2 end, 15)
    assert.equal(child, one:pids("child")[1])
  end)

  it("waits with the first signal until the command has a handler for it", function()
    local one = start("one", "--signal", "x", "bash", "-c", "sleep 0.5; trap 'echo told; exit 3' USR1; while true; do sleep 0.05; done")
    says(one, "told")
    assert.equal(3, one:wait(5))
  end)

  it("tells a script that tidies up too, whose bash catches every signal", function()
    local one = start("one", "--signal", "x", "bash", "-c",
      "trap 'echo tidied up' EXIT; trap 'echo told; exit 3' USR1; while true; do sleep 0.05; done")
    says(one, "told\ntidied up")
    assert.equal(3, one:wait(5))
  end)

  it("never kills a command that has no handler, and says so", function()
    local one = start("one", "--signal", "x", "sleep", "60")
    says(one, "has no handler for SIGUSR1", 10)
    assert.equal(1, #one:pids "child")
  end)

  it("kills the command with everything it started when the runtime dies", function()
    local one = start("one", "--signal", "x", "sh", "-c", "trap 'echo won as $$' USR1; while true; do sleep 0.05; done")
    says(one, "won as %d")
    local first = one:pids("child")[1]
    one:hurt("KILL", "runtime")
    eventually(function() return count(one, "won as") == 2 end)
    assert.are_not.equal(first, one:pids("child")[1])
  end)

  it("ends the command on SIGTERM before another one is told that it has won", function()
    local place = tempdir()
    local one = start("one", "--signal", "x", "bash", "-c", ([[
      trap 'echo won' USR1; trap 'sleep 0.5; touch %s/gone; exit' TERM; while true; do sleep 0.05; done]]):format(place))
    says(one, "won")
    local two = start("two", "--signal", "x", "bash", "-c", ([[
      trap 'test -e %s/gone && echo in order || echo too early' USR1; while true; do sleep 0.05; done]]):format(place))
    two:follows()
    one:signal "TERM"
    eventually(function() return count(two, "in order") + count(two, "too early") == 1 end, 20)
    assert.equal(1, count(two, "in order"))
  end)

  it("with --fence, kills a command that does not go", function()
    local one = start("one", "--signal", "--fence", "x", Runs.script(Runs.TRAPS))
    says(one, "Doing work")
    local two = start("two", "x", "sleep", "60")
    two:follows()
    run { "evict", "--oracle", oracle, "--force", "x" }
    eventually(function() return #two:pids "child" == 1 end)
    assert.equal(0, #one:pids "child")
    two:signal "TERM"
    eventually(function() return count(one, "Election won") == 2 end, 20)
  end)

  it("has a file of the epoch for each election, whatever their names, also where a node's name is long", function()
    local dir = tempdir()
    local one = Candidate.start { node = "n", log = dir .. "/log", env = { CROWN_DIRECTORY = dir .. "/own" }, args = {
      write_file(dir .. "/app.lua", [[
        local crown = require "crown"
        local function elect(name, node, won)
          crown.elect { name = name, node = node, oracle = "memory:", handlers = { won = won }, child = { mode = "signal",
            command = { "bash", "-c", "trap 'echo $CROWN_ELECTION has $(cat $CROWN_EPOCH_FILE).' USR1; while :; do sleep 0.05; done" } } }
        end
        elect("a.new", nil, function() elect("a") end)
        elect("b", ("ä"):rep(127))]]) } }
    for _, name in ipairs { "a", "b" } do says(one, name .. " has 1%.") end
    local kept = 0
    for _, file in ipairs(files.list(dir .. "/own")) do
      if file:find "^epoch%-%d+%-" then
        kept = kept + 1
        assert.equal("1\n", read_file(dir .. "/own/" .. file), file)
      end
    end
    one:destroy()
    assert.equal(3, kept)
  end)

  it("has the epoch of each win in CROWN_EPOCH_FILE before it tells of it", function()
    local place = tempdir()
    local function begin(node)
      local one = Candidate.start { node = node, log = tempdir() .. "/log", env = { CROWN_DIRECTORY = place },
        args = { "run", "--oracle", oracle, "--signal", "x", "bash", "-c", [[
          trap 'echo "won <$(cat $CROWN_EPOCH_FILE)>"' USR1; trap 'echo "lost <$(cat $CROWN_EPOCH_FILE)>"' USR2
          while true; do sleep 0.05; done]] } }
      runs:keep(one)
      return one
    end
    local one = begin "one"
    says(one, "won <1>")
    local two = begin "two"
    two:follows()
    run { "evict", "--oracle", oracle, "--force", "x" }
    says(one, "lost <>")
    says(two, "won <2>")
    two:signal "TERM"
    says(one, "won <3>", 20)
    one:hurt("KILL", "supervise", "runtime")
    one:wait(5)
    begin "three"
    eventually(function()
      return crown.exec({ "sh", "-c", "ls " .. place .. "/epoch-* | wc -l" }).stdout == "1\n"
    end, 10)
  end)

  -- As on a full disk, which writes nothing either.
  it("is not told that it leads where its epoch cannot be written, and the term ends", function()
    local place = tempdir()
    local one = Candidate.start { node = "one", log = tempdir() .. "/log", env = { CROWN_DIRECTORY = place },
      args = { "run", "--oracle", oracle, "--signal", "x", "bash", "-c", [[
        trap 'echo "won <$(cat $CROWN_EPOCH_FILE)>"' USR1; trap 'echo "lost <$(cat $CROWN_EPOCH_FILE)>"' USR2
        while true; do sleep 0.05; done]] } }
    runs:keep(one)
    says(one, "won <1>", 20)
    local two = start("two", "x", "sleep", "60")
    two:follows()
    run { "evict", "--oracle", oracle, "--force", "x" }
    says(one, "lost <>", 20)
    eventually(function() return #two:pids "child" == 1 end, 20)
    assert.equal("", crown.exec({ "sh", "-c", "for f in " .. place .. "/epoch-*; do mkdir $f~; done" }).stderr)
    two:signal "TERM"
    says(one, "not told that it leads: write the epoch.*child_failed", 30)
    assert.equal(1, #one:pids "child")
    local three = start("three", "x", "sleep", "60")
    eventually(function() return #three:pids "child" == 1 end, 30)
    local seen = select(2, one:output():gsub("lost <>", ""))
    one:hurt("USR2", "child") -- what it was told before, it has said when it says this
    eventually(function() return select(2, one:output():gsub("lost <>", "")) > seen end, 20)
    assert.is_nil(one:output():find "won <[^1]")
  end)

  it("tells a command by its keeper when the lease runs out, which ends one without a handler", function()
    local server, place = Redis.start(), tempdir()
    finally(function() server:destroy() end)
    local one = Candidate.start { args = { "run", "--oracle", server.quick .. "&ttl=2", "--signal", "x", "sleep", "60" }, node = "one",
      log = place .. "/log", env = { CROWN_DIRECTORY = place } }
    runs:keep(one)
    eventually(function() return #one:pids "child" == 1 end, 20)
    server:freeze()
    eventually(function() return #one:pids "child" == 0 end, 20)
    eventually(function()
      return run({ "status" }, { env = { CROWN_DIRECTORY = place } }).stdout:find "ended by signal 12"
    end, 20)
    server:thaw()
    eventually(function() return #one:pids "child" == 1 end, 20)
  end)

  it("reports a command that goes on working unfenced, and shows it in status", function()
    local place = tempdir()
    local one = Candidate.start { args = { "run", "--oracle", oracle, "--signal", "x", "sleep", "60" }, node = "one",
      log = tempdir() .. "/log", env = { CROWN_DIRECTORY = place } }
    runs:keep(one)
    eventually(function() return #one:pids "child" == 1 end)
    local two = start("two", "x", "sleep", "60")
    two:follows()
    run { "evict", "--oracle", oracle, "--force", "x" }
    says(one, "child.unfenced.*pid=%d+")
    local child = one:pids("child")[1]
    eventually(function()
      return run({ "status" }, { env = { CROWN_DIRECTORY = place } }).stdout:find("following%s+two.*" .. child .. " unfenced")
    end, 10)
  end)
end)
