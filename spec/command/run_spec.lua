-- crown-lua run, as operators use it: from a shell, from cron, on a terminal.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local full_fifo = require "support.full_fifo"
local program = require "support.program"
local run = require "support.run"
local Redis = require "support.redis"
local Runs = require "support.runs"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"
local ticks = require "support.ticks"
local Terminal = require "support.terminal"

local TICKER = os.getenv "CROWN_TICKER" or "build/ticker"

-- A command that no other process of this host bears.
local NAP = ("sleep 60.%07d"):format(require("crown.core").pid)

describe("crown-lua run", function()
  local oracle, runs

  before_each(function()
    runs = Runs.new()
    oracle = runs.oracle
  end)
  after_each(function() runs:destroy() end)

  local function start(...) return runs:start(...) end
  local function finish(...) return runs:finish(...) end
  local says, count = Runs.says, Runs.count

  local function on_terminal(...)
    local one = Terminal.start { args = { "run", "--oracle", oracle, ... } }
    return runs:keep(one)
  end

  describe("when leadership is lost", function()
    for _, words in ipairs { {}, { "--terminate" } } do
      it(("lets nothing of the command work on, and campaigns again%s"):format(words[1] and " (" .. words[1] .. ")" or ""), function()
        local path = tempdir() .. "/ticks"
        local function worker(node)
          local all = { unpack(words) }
          for _, word in ipairs { "reports", TICKER, path } do all[#all + 1] = word end
          return start(node, unpack(all))
        end
        local one = worker "one"
        local first = ticks.await(path, 0, 10)
        assert.equal("one", first.node)
        local two = worker "two"
        two:follows()
        run { "evict", "--oracle", oracle, "--force", "reports" }
        local second = ticks.succeed(path, first.epoch, 10)
        assert.equal("two", second.node)
        assert.equal(0, #one:pids "child")
        two:signal "TERM"
        assert.equal("one", ticks.succeed(path, second.epoch, 10).node)
      end)
    end

    it("tells a command that asks for it that it leads, and says so", function()
      local one = start("one", "--log-level", "info", "--terminate", "SHELL", Runs.script(Runs.TRAPS))
      says(one, "Election won\nDoing work")
      says(one, "sent SIGUSR1 to " .. one:pids("child")[1])
    end)

    it("interrupts the command, which may end as it likes", function()
      local one = start("one", "--terminate", "SHELL", Runs.script((Runs.TRAPS:gsub("exit\n", "exit 5\n"))))
      says(one, "Election won")
      local two = start("two", "SHELL", "sleep", "60")
      two:follows()
      run { "evict", "--oracle", oracle, "--force", "SHELL" }
      eventually(function() return #two:pids "child" == 1 end)
      assert.matches("Got interrupt signal", one:output())
      assert.is_nil(one:output():find "Election lost")
      one:signal "TERM"
      assert.equal(0, one:wait(10))
    end)

    it("goes on to SIGTERM a second later, and to SIGKILL of the whole tree at the end", function()
      local one = start("one", "--log-level", "info", "--terminate", "x", "bash", "-c",
        "trap 'echo int at $SECONDS' INT; trap 'echo term at $SECONDS' TERM; " .. NAP .. " & echo up; while true; do sleep 0.05; done")
      says(one, "up")
      local pid = one:pids("child")[1]
      one:signal "TERM"
      assert.equal(137, one:wait(15))
      assert.matches(("sent SIGINT to %s\n.*sent SIGTERM to %s\n.*child.killed [^\n]*pid=%s"):format(pid, pid, pid), one:output())
      assert.matches("int at %d+.*term at %d+", one:output())
      assert.equal(0, #one:pids "child")
      assert.equal("", require("crown").exec({ "pgrep", "-f", "^" .. NAP .. "$" }).stdout)
    end)

    it("tells the whole group of the command, with each of its signals", function()
      local one = start("one", "x", "bash", "-c", [[
        trap 'echo main int' INT; trap 'echo main term; wait; exit 6' TERM
        (trap 'echo helper int' INT; trap 'echo helper term; exit' TERM; echo up; while true; do sleep 0.05; done) &
        while true; do sleep 0.05; done]])
      says(one, "up")
      one:signal "TERM"
      assert.equal(6, one:wait(10))
      for _, text in ipairs { "main int", "helper int", "main term", "helper term" } do assert.equal(1, count(one, text)) end
    end)

    it("keeps campaigning with --restart, and starts the command anew", function()
      local one = start("one", "--restart", "permanent", "x", "sh", "-c", "echo up $CROWN_EPOCH; exec sleep 60")
      says(one, "up 1")
      run { "evict", "--oracle", oracle, "--force", "x" }
      says(one, "up 2")
    end)

    it("runs another command while it follows", function()
      local one = start("one", "x", "sleep", "60")
      eventually(function() return #one:pids "child" == 1 end)
      local two = start("two", "--follower", "echo standing by as $CROWN_ROLE; sleep 60", "x", "sh", "-c",
        "echo leading as $CROWN_ROLE; exec sleep 60")
      says(two, "standing by as follower")
      one:signal "TERM"
      says(two, "leading as leader")
    end)
  end)

  it("ends with the command's exit code, and releases before", function()
    assert.equal(7, finish("x", "sh", "-c", "exit 7").code)
    assert.equal(0, finish("x", "true").code)
    assert.equal(137, finish("x", "sh", "-c", "kill -KILL $$").code)
    assert.equal(143, finish("--terminate", "x", "sh", "-c", "kill -TERM $$").code)
  end)

  it("ends with 127 when there is no such command, with 126 when it is not to be executed", function()
    local result = run({ "run", "--oracle", oracle, "x", "no-such-command" }, { env = { PATH = "/usr/bin:/bin" } })
    assert.equal(127, result.code)
    assert.matches("no%-such%-command: No such file", result.stderr)
    assert.equal(126, finish("x", "/etc/passwd").code)
    assert.equal(126, finish("x", "/tmp").code)
  end)

  it("says how a line of a shell is run where a whole line was given as the command's name", function()
    local result = finish("x", "echo hi")
    assert.equal(127, result.code)
    assert.matches("'echo hi' is taken for the name of one program", result.stderr, 1, true)
    assert.matches("sh -c 'echo hi'", result.stderr, 1, true)
    assert.not_matches("taken for the name", finish("x", "no-such-command").stderr)
    assert.not_matches("taken for the name", finish("x", "sh", "-c", "exit 127").stderr)
  end)

  it("never ends with 0 when the command could not be started for want of descriptors", function()
    for _, descriptors in ipairs { 13, 14, 15, 30 } do
      local words = ("ulimit -n %d; exec %s run --once --oracle %s x echo ran"):format(descriptors, program, oracle)
      local result = crown.exec { "sh", "-c", words }
      local ran = result.stdout == "ran\n"
      assert.is_true(ran and result.code == 0 or result.stdout == "" and (result.code == 126 or result.code == 3), result.stderr)
    end
  end)

  describe("at the win", function()
    local NAPS = "until [ $SECONDS -ge 2 ]; do sleep 0.1; done; "

    it("gets no signal that it has not asked for: its handler may be for something else", function()
      assert.equal("done\n", finish("x", "bash", "-c", "trap 'echo told' USR1; " .. NAPS .. "echo done").stdout)
    end)

    it("is not killed where its bash catches every signal because of a trap for EXIT", function()
      assert.equal("done\ntidied up\n",
        finish("x", "bash", "-c", "trap 'echo tidied up' EXIT; " .. NAPS .. "echo done").stdout)
    end)
  end)

  it("leaves the command's own options alone", function()
    assert.equal("--version --oracle\n", finish("x", "echo", "--version", "--oracle").stdout)
    assert.equal("-n\n", finish("x", "--", "printf", "%s\\n", "-n").stdout)
  end)

  it("takes as many arguments as a shell does, also for a command that the C library has to hand to sh", function()
    local path = tempdir() .. "/count"
    local file = assert(io.open(path, "w"))
    file:write "echo $#\n" -- without a #! line
    file:close()
    local words = { "sh", "-c", [[chmod +x "$0" && exec "$@" "$0" $(seq 100000)]], path, program, "run", "--oracle", oracle, "x" }
    local result = assert(crown.exec(words, { timeout = 60 }))
    assert.equal("100000\n", result.stdout, result.stderr)
  end)

  it("passes standard input through", function()
    local result = run({ "run", "--oracle", oracle, "x", "cat" }, { stdin = "from here\n" })
    assert.equal("from here\n", result.stdout)
  end)

  it("gives the command what it needs to know", function()
    assert.matches("^x leader 1 %S+\n$",
      finish("x", "sh", "-c", "echo $CROWN_ELECTION $CROWN_ROLE $CROWN_EPOCH $CROWN_NODE").stdout)
  end)

  describe("with --once", function()
    it("runs the command where nobody leads, and ends with 1 where somebody does", function()
      assert.equal(0, finish("--once", "x", "true").code)
      local one = start("one", "x", "sleep", "60")
      eventually(function() return #one:pids "child" == 1 end)
      local result = finish("--once", "x", "echo", "ran")
      assert.equal(1, result.code)
      assert.equal("", result.stdout)
      assert.matches("'x' is led by one", result.stderr)
      assert.equal(1, finish("--once", "--wait", "0.3", "x", "true").code)
    end)

    it("asks once where the time is up before there can be an answer", function()
      assert.equal("ran\n", finish("--once", "--wait", "0", "x", "echo", "ran").stdout)
      assert.equal("ran\n", finish("--wait", "0", "x", "echo", "ran").stdout)
      local one = start("one", "x", "sleep", "60")
      eventually(function() return #one:pids "child" == 1 end)
      local result = finish("--wait", "0", "x", "echo", "ran")
      assert.equal(1, result.code)
      assert.matches("'x' is led by one", result.stderr)
    end)

    it("waits no longer than it is told where the store may have forgotten who leads", function()
      local store = Redis.start()
      local url = ("redis://127.0.0.1:%d?amnesia_wait=600"):format(store.port)
      local result = run { "run", "--oracle", url, "--wait", "0.5", "x", "true" }
      store:destroy()
      assert.equal(1, result.code)
      assert.matches("'x' is led by nobody yet", result.stderr)
    end)

    it("waits for as long as it is told", function()
      local one = start("one", "x", "sleep", "60")
      eventually(function() return #one:pids "child" == 1 end)
      local two = start("two", "--once", "--wait", "20", "x", "echo", "my turn")
      two:follows()
      one:signal "TERM"
      assert.equal(0, two:wait(10))
      assert.matches("my turn", two:output())
    end)

    -- `crown-lua run --once --wait 300 … && touch done`
    it("ends with 1 when it is told to end before the command has begun, and with 0 without the options", function()
      local one = start("one", "x", "sleep", "60")
      eventually(function() return #one:pids "child" == 1 end)
      for _, case in ipairs { { 1, "TERM", "--once", "--wait", "60" }, { 1, "INT", "--wait", "60" }, { 0, "TERM" } } do
        local words = { unpack(case, 3) }
        for _, word in ipairs { "x", "true" } do words[#words + 1] = word end
        local two = start("two", unpack(words))
        two:follows()
        two:signal(case[2])
        assert.equal(case[1], two:wait(10))
      end
      local two = start("two", "--wait", "60", "y", "sleep", "60")
      eventually(function() return #two:pids "child" == 1 end)
      two:signal "TERM"
      assert.equal(0, two:wait(10))
    end)

    it("ends with 3 when the store cannot be reached", function()
      local result = run { "run", "--oracle", "postgres://127.0.0.1:1/x", "--once", "x", "true" }
      assert.equal(3, result.code)
      assert.matches("Connection refused", result.stderr)
    end)

    for title, claim in pairs {
      ["is too short to lead by"] = "return true, 0.001, { ttl = 0.004 }",
      ["is over when its answer has come"] = "require('crown').sleep(0.6); return true, 0.1, { ttl = 0.5 }",
    } do
      it("ends with 3, and says why, where the lease that it is granted " .. title, function()
        local dir = tempdir()
        write_file(dir .. "/brief.lua", ("local function claim() %s end return { init = function() return {} end, "
          .. "claim = claim, refresh = claim }"):format(claim))
        local options = { cwd = dir, env = { LUA_PATH = "./?.lua;;" } }
        for _, wait in ipairs { {}, { "--wait", "1.5" } } do
          local words = { "run", "--oracle", "brief", "--once", unpack(wait) }
          for _, word in ipairs { "x", "echo", "ran" } do words[#words + 1] = word end
          local result = run(words, options)
          assert.same({ 3, "" }, { result.code, result.stdout })
          assert.matches("granted a lease that left no time to lead: raise ttl", result.stderr)
        end
      end)
    end
  end)

  for title, case in pairs {
    ["no election"] = { {}, "name an election and a command" },
    ["no command"] = { { "x" }, "name a command for 'x'" },
    ["a name with a slash"] = { { "a/b", "true" }, "letters, digits" },
    ["a name that looks like an option"] = { { "--", "--", "true" }, "name '%-%-' is not possible: .*the first one a letter" },
    ["a name that stands for a stream"] = { { "-", "true" }, "name '%-' is not possible" },
    ["a name that is a directory"] = { { ".", "true" }, "name '%.' is not possible" },
    ["a wait that is no number"] = { { "--wait", "nan", "x", "true" }, "wait" },
    ["--follower in signal mode"] = { { "--signal", "--follower", "true", "x", "true" }, "cannot go with %-%-signal" },
    ["--fence without --signal"] = { { "--fence", "x", "true" }, "belongs to %-%-signal" },
    ["both modes"] = { { "--signal", "--terminate", "x", "true" }, "the opposite of each other" },
    ["a wrong restart policy"] = { { "--restart", "always", "x", "true" }, "permanent, transient, temporary" },
  } do
    it("refuses " .. title, function()
      local result = finish(unpack(case[1]))
      assert.equal(2, result.code)
      assert.matches(case[2], result.stderr)
      assert.equal(1, select(2, result.stderr:gsub("\n", "")))
    end)
  end

  describe("on a terminal", function()
    it("gives a shell its job control", function()
      local one = on_terminal("x", "bash", "--norc", "-i")
      one:type "PS1='ready> '\n"
      one:shows "\nready> "
      one:type(NAP .. "\n")
      eventually(function() return require("crown").exec({ "pgrep", "-f", "^" .. NAP .. "$" }).code == 0 end)
      one:type "\26"
      one:shows "Stopped"
      one:type "kill %1; fg; echo still $((40 + 2))\n"
      one:shows "still 42"
      one:type "exit 9\n"
      assert.equal(9, one:wait(10))
    end)

    it("lets Ctrl-C reach the command, which decides", function()
      local one = on_terminal("x", "bash", "-c", "trap 'echo caught; exit 4' INT; echo up; while true; do sleep 0.05; done")
      one:shows "up"
      one:type "\3"
      one:shows "caught"
      assert.equal(4, one:wait(10))
    end)

    it("goes on after Ctrl-Z: a leader does not sleep", function()
      local one = on_terminal("x", "bash", "-c", "echo up; while true; do echo tick; sleep 0.05; done")
      one:shows "up"
      one:type "\26"
      local before = select(2, one:shown():gsub("tick", ""))
      eventually(function() return select(2, one:shown():gsub("tick", "")) > before + 5 end)
    end)

    it("gives the terminal back to the script that called it", function()
      local one = Terminal.start { program = "/bin/sh", args = { "-c",
        ("%s run --oracle %s x true; echo asks; read answer; echo got $answer"):format(program, oracle) } }
      runs:keep(one)
      one:shows "asks"
      one:type "it\n"
      one:shows "got it"
      assert.equal(0, one:wait(5))
    end)
  end)

  describe("says on standard error", function()
    it("who leads, at once and at each change", function()
      local one = start("one", "x", "sleep", "60")
      says(one, "crown%-lua: leading 'x' %(epoch 1%)\n", 20)
      local two = start("two", "x", "sleep", "60")
      says(two, "crown%-lua: following 'x'; one leads %(epoch 1%)\n", 20)
      run { "evict", "--oracle", oracle, "--force", "x" }
      says(one, "crown%-lua: no longer leading 'x': evicted; campaigning again\n", 20)
      says(two, "crown%-lua: leading 'x' %(epoch 2%)\n", 20)
      says(one, "crown%-lua: following 'x'; two leads %(epoch 2%)\n", 20)
    end)

    it("nothing of it with --quiet, or with --once, which is for crontabs", function()
      assert.equal("", finish("--quiet", "x", "true").stderr)
      assert.equal("", finish("--once", "x", "true").stderr)
    end)

    it("nothing where somebody else leads, with --once and --quiet: cron mails every word", function()
      local one = start("one", "x", "sleep", "60")
      eventually(function() return #one:pids "child" == 1 end)
      for _, words in ipairs { { "--once" }, { "--wait", "0.3" } } do
        local result = finish("--quiet", words[1], words[2] or "x", words[2] and "x" or "true", words[2] and "true" or nil)
        assert.same({ 1, "" }, { result.code, result.stderr })
      end
    end)

    it("nothing of a store's URL to its command, and all else that is set", function()
      local env = { CROWN_DIRECTORY = tempdir(), CROWN_ORACLE = "file:" .. tempdir(), ANOTHER = "one" }
      local result = run({ "run", "--once", "x", "sh", "-c", "echo ${CROWN_ORACLE-none} $ANOTHER" }, { env = env })
      assert.equal("none one\n", result.stdout)
    end)

    it("that only this host takes part where no store was named", function()
      local env = { CROWN_DIRECTORY = tempdir() }
      local result = run({ "run", "x", "true" }, { env = env })
      assert.matches("^crown%-lua: no store is named by %-%-oracle or CROWN_ORACLE: 'x' is elected on this host alone\n", result.stderr)
      assert.is_nil(finish("x", "true").stderr:find("no store", 1, true))
      assert.equal("", run({ "run", "--quiet", "x", "true" }, { env = env }).stderr)
    end)
  end)

  describe("whose standard error is full", function()
    local reader, log

    before_each(function()
      log = tempdir() .. "/log"
      reader = full_fifo(log)
    end)
    after_each(function() reader:close() end)

    local function start_full(...)
      local one = Candidate.start { args = { "run", "--oracle", oracle, ... }, node = "one", log = log }
      runs:keep(one)
      return one
    end

    it("leads all the same, and ends in order", function()
      local path = tempdir() .. "/ticks"
      local one = start_full("x", TICKER, path, "plain")
      ticks.await(path, 0, 20)
      eventually(function() -- longer than a runtime may be silent
        local last = ticks.lives(path)[1]
        return last.last - last.first > 3
      end, 40)
      assert.equal(1, #ticks.lives(path))
      one:signal "TERM"
      assert.equal(0, one:wait(20))
    end)

    it("gives up when somebody else leads", function()
      local leader = start("leader", "x", "sleep", "60")
      eventually(function() return #leader:pids "child" == 1 end, 20)
      assert.equal(1, start_full("--once", "x", "true"):wait(20))
    end)
  end)

  it("with --wait alone, gives up when it has not led in time, and goes on when it has", function()
    local one = start("one", "x", "sleep", "60")
    eventually(function() return #one:pids "child" == 1 end, 20)
    local result = finish("--wait", "0.5", "x", "true")
    assert.equal(1, result.code)
    assert.matches("'x' is led by one", result.stderr)
    local two = start("two", "--wait", "3", "y", "sleep", "4")
    assert.equal(0, two:wait(20))
  end)

  describe("that is told to end", function()
    for mode, options in pairs { ["by default"] = {}, ["with --signal"] = { "--signal" },
      ["with --restart permanent"] = { "--restart", "permanent" } } do
      it(("ends with 0 where its command goes: %s"):format(mode), function()
        local words = { unpack(options) }
        for _, word in ipairs { "x", "sleep", "60" } do words[#words + 1] = word end
        local one = start("one", unpack(words))
        eventually(function() return #one:pids "child" == 1 end, 20)
        one:signal "TERM"
        assert.equal(0, one:wait(20))
      end)
    end

    it("ends with what the command says of itself, where that is not the signal", function()
      local one = start("one", "x", "sh", "-c", "trap 'exit 7' INT; echo ready; while :; do sleep 0.05; done")
      says(one, "ready", 20)
      one:signal "TERM"
      assert.equal(7, one:wait(20))
    end)
  end)

  it("shows in ps what it runs, and whether it leads", function()
    local name = ("ps-%d"):format(require("crown.core").pid)
    local function line()
      return crown.exec({ "pgrep", "-a", "-f", "crown-lua run " .. name }).stdout
    end
    local one = start("one", name, "sleep", "60")
    eventually(function() return line():find(name .. " [leading, epoch 1]", 1, true) end, 20)
    start("two", name, "sleep", "60")
    eventually(function() return line():find(name .. " [following]", 1, true) end, 20)
    one:signal "TERM"
    eventually(function() return line():find(name .. " [leading, epoch 2]", 1, true) end, 20)
  end)
end)
