--- What a person does at a terminal: Ctrl-C, once and again.
local eventually = require "crown.testing.eventually"
local crown = require "crown"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Terminal = require "support.terminal"
local write_file = require "support.write_file"

local CTRL_C = "\3"

describe("Ctrl-C", function()
  local one, dir

  before_each(function() dir = tempdir() end)
  after_each(function() if one then one:destroy() end end)

  local function start(...)
    one = Terminal.start { args = { ... }, env = { CROWN_DIRECTORY = dir } }
    return one
  end

  local function run_restarted(...)
    return start("run", "--oracle", "file:" .. dir .. "/locks", "--restart", ...)
  end

  local function count(pattern) return select(2, one:shown():gsub(pattern, "")) end

  local WAYS = {
    ["dies of it"] = "echo up; exec sleep 60",
    ["ends with 0"] = "trap 'exit 0' INT; echo up; while :; do sleep 0.05; done",
    ["ends with an error"] = "trap 'exit 5' INT; echo up; while :; do sleep 0.05; done",
    ["needs SIGTERM as well"] = "trap '' INT; echo up; while :; do sleep 0.05; done",
  }

  for _, policy in ipairs { "permanent", "transient", "temporary" } do
    for way, script in pairs(WAYS) do
      it(("ends a worker that %s, and then crown-lua, with --restart %s"):format(way, policy), function()
        run_restarted(policy, "spec", "--", "bash", "-c", script)
        one:shows "up"
        one:type(CTRL_C)
        assert.equal(0, one:wait(20))
        assert.equal(1, count "up")
        assert.not_matches("child%.exited", one:shown())
      end)
    end
  end

  it("tells the worker once: its second thought is a person's, not ours", function()
    run_restarted("permanent", "--stop-timeout", "60", "spec", "--", "bash", "-c",
      "trap 'echo told' INT; trap 'echo term; exit' TERM; echo up; while :; do sleep 0.05; done")
    one:shows "up"
    one:type(CTRL_C)
    assert.equal(0, one:wait(20))
    assert.equal(1, count "told")
    assert.equal(1, count "term")
  end)

  it("ends all at once when it comes again after half a second", function()
    run_restarted("permanent", "--stop-timeout", "600", "spec", "--", "bash", "-c",
      "trap 'echo told' INT; trap '' TERM; echo up; while :; do sleep 0.05; done")
    one:shows "up"
    one:type(CTRL_C)
    one:shows "told"
    crown.sleep(0.6) -- sooner it would be the same request
    one:type(CTRL_C)
    assert.equal(130, one:wait(20))
    assert.matches("SIGINT again", one:shown())
  end)

  it("is nobody else's SIGINT: a leader that is evicted goes on as a candidate", function()
    run_restarted("permanent", "spec", "--", "sh", "-c", "echo up $CROWN_EPOCH; exec sleep 60")
    one:shows "up 1"
    run { "evict", "--oracle", "file:" .. dir .. "/locks", "--force", "spec" }
    one:shows("up 2", 20)
  end)

  it("ends every election of an app in which a child has the terminal", function()
    start(write_file(dir .. "/app.lua", ([[
      local crown = require "crown"
      local lost = { lost = function(reason) print("lost " .. reason) end }
      crown.elect { name = "a", oracle = "file:%s", handlers = lost,
        child = { command = { "sh", "-c", "echo up; exec sleep 60" }, terminal = true } }
      crown.elect { name = "b", oracle = "file:%s", handlers = lost }]]):format(dir, dir)))
    one:shows "up"
    eventually(function() return count "leadership.claimed" == 2 end, 10)
    one:type(CTRL_C)
    assert.equal(0, one:wait(20))
    assert.equal(2, count "lost shutdown")
    assert.equal(1, count "up")
  end)

  it("gives the terminal back to the script that called it", function()
    one = Terminal.start { program = "/bin/sh", env = { CROWN_DIRECTORY = dir }, args = { "-c", [[
      "$0" run --oracle "file:$1" --restart permanent spec -- sh -c 'echo up; exec sleep 60'
      read line; echo "read $line"]], program, dir } }
    one:shows "up"
    one:type(CTRL_C)
    eventually(function() return #one.process:pids "supervise" == 0 and count "%^C" >= 1 end, 10)
    one:type "there\n"
    one:shows "read there"
  end)
end)
