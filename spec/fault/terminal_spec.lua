--- What a person does at a terminal: Ctrl-C, once and again.
local Candidate = require "support.candidate"
local eventually = require "crown.testing.eventually"
local crown = require "crown"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local signals = require "support.signals"
local tempdir = require "support.tempdir"
local Terminal = require "support.terminal"
local write_file = require "support.write_file"

local CTRL_C = "\3"
local path_of_program = crown.exec({ "realpath", program }).stdout:gsub("\n", "")

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

  it("ends evict while that asks, at once, and a person may think for long before", function()
    start("evict", "--oracle", "file:" .. dir .. "/locks", "spec")
    one:shows "%[y/N%]"
    one:type(CTRL_C)
    assert.equal(130, one:wait(5))
    assert.not_matches("silent", one:shown())
  end)

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

  it("does not stop what runs in the background of a terminal that stops those who write", function()
    one = Terminal.start { program = "/bin/bash", env = { CROWN_DIRECTORY = dir }, args = { "-c", [[
      set -m; stty tostop
      "$0" run --oracle "file:$1" --log-level info spec -- touch "$1/up" &
      read line]], program, dir } }
    eventually(function() return read_file(dir .. "/up") end, 20)
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

-- An app that says that it has won, counts while it leads, and says why it has lost.
local COUNTS = [[
local crown = require "crown"
local function say(text)
  local file = io.open(arg[1] .. "/said", "a")
  file:write(text, "\n")
  file:close()
end
crown.elect { name = "spec", oracle = "file:" .. arg[1] .. "/locks", handlers = {
  won = function() say "won" while true do crown.sleep(0.05) say "leads" end end,
  lost = function(reason) say("lost " .. reason) end,
} }
]]

describe("a terminal that is closed", function()
  local one, dir, other

  before_each(function() dir = tempdir() end)
  after_each(function()
    if one then one:destroy() end
    if other then signals.send(other, "KILL") end
    other = nil
  end)

  local function said() return read_file(dir .. "/said") or "" end
  local function says(text) eventually(function() return said():find(text, 1, true) end, 20) end

  local function start(options)
    options.env = { CROWN_DIRECTORY = dir }
    one = Terminal.start(options)
    return one
  end

  -- Started by a person's shell: PROGRAM is a script that says its process id and goes on as the program.
  local function from_shell(line)
    write_file(dir .. "/app.lua", COUNTS)
    local script = write_file(dir .. "/start", ('#!/bin/sh\necho $$ > pid.new; mv pid.new pid; exec %s "$@"\n'):format(path_of_program))
    assert.equal(0, os.execute("chmod +x " .. script))
    start { program = "/bin/bash", args = { "--norc", "-i" } }
    one:type(("cd %s; %s &\n"):format(dir, (line:gsub("PROGRAM", "./start"))))
    says "leads"
    other = tonumber(read_file(dir .. "/pid"))
    one:close()
    one:wait(20)
  end

  for _, words in ipairs { { "run" }, { "run", "--restart", "permanent" } } do
    it("ends in order what it was opened for, as `ssh -t` does: " .. table.concat(words, " "), function()
      words = { unpack(words) }
      for _, word in ipairs { "--oracle", "file:" .. dir .. "/locks", "spec", "--", "bash", "-c",
        "trap 'echo told >> $0; exit' INT; trap '' HUP; echo leads >> $0; while :; do sleep 0.05; done", dir .. "/said" } do
        words[#words + 1] = word
      end
      start { args = words }
      says "leads"
      one:close()
      assert.equal(0, one:wait(20))
      assert.equal("leads\ntold\n", said())
    end)
  end

  it("ends one that waits for its turn", function()
    local leader = Candidate.start { args = { "run", "--oracle", "file:" .. dir .. "/locks", "spec", "sleep", "1000" }, node = "one",
      log = dir .. "/log", env = { CROWN_DIRECTORY = dir } }
    finally(function() leader:destroy() end)
    eventually(function() return #leader:pids "child" == 1 end, 20)
    start { args = { "run", "--oracle", "file:" .. dir .. "/locks", "spec", "sleep", "1000" } }
    one:shows "following"
    one:close()
    assert.equal(0, one:wait(20))
  end)

  for title, line in pairs {
    ["with its output there"] = "PROGRAM app.lua $PWD",
    ["with its output elsewhere"] = "PROGRAM app.lua $PWD > log 2>&1 < /dev/null",
  } do
    it("ends an app of a shell in order, " .. title, function()
      from_shell(line)
      says "lost shutdown"
    end)
  end

  it("ends what a shell that ended before has left on it", function()
    from_shell "trap '' HUP; (trap - HUP; exec PROGRAM app.lua $PWD)"
    says "lost shutdown"
  end)

  for title, line in pairs {
    ["nohup"] = "nohup PROGRAM app.lua $PWD",
    ["--keep"] = "PROGRAM --keep app.lua $PWD",
    ["setsid"] = "setsid PROGRAM app.lua $PWD",
    ["--keep of run"] = "PROGRAM run --keep --oracle file:$PWD/locks spec -- sh -c 'while :; do echo leads >> said; sleep 0.05; done'",
  } do
    it("does nothing under " .. title, function()
      from_shell(line)
      local before = #said()
      eventually(function() return #said() > before + 60 end, 20)
      assert.not_matches("lost", said())
    end)
  end
end)
