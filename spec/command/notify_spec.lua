-- crown-lua run under a service manager of Type=notify: what its command tells by sd_notify(3), and what becomes of it.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local signals = require "support.signals"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("the command of crown-lua run, and the service manager", function()
  local dir, manager, one
  -- Says each line of the file `say`, as it comes, in a message of its own: "|" stands for the end of a line in one.
  local SPEAKER = [[#!/bin/sh
echo "socket=$NOTIFY_SOCKET watchdog=$WATCHDOG_USEC pid=$WATCHDOG_PID"
tail -n +1 -f %s/say | while read -r line; do
  printf '%%s' "$line" | tr '|' '\n' | socat -u - "ABSTRACT-SENDTO:${NOTIFY_SOCKET#@}"
  echo "said $line"
done]]

  local function heard(text)
    return manager:output():find(text, 1, true)
  end

  local function start(env, ...)
    local words = { "run", "--quiet", "--oracle", "file:" .. dir, ... }
    words[#words + 1], words[#words + 2], words[#words + 3] = "job", "--", dir .. "/speaker"
    env.NOTIFY_SOCKET = dir .. "/notify"
    one = Candidate.start { args = words, node = "one", log = tempdir() .. "/log", env = env }
    eventually(function() return one:output():find "socket=" end)
  end

  local function say(line)
    local file = assert(io.open(dir .. "/say", "a"))
    file:write(line, "\n")
    file:close()
    eventually(function() return one:output():find("said " .. line, 1, true) end)
  end

  before_each(function()
    dir = tempdir()
    manager = Candidate.start { program = "/usr/bin/socat", args = { "-u", "UNIX-RECV:" .. dir .. "/notify", "-" }, node = "manager",
      log = dir .. "/log" }
    eventually(function() return os.execute("test -S " .. dir .. "/notify") == 0 end)
    write_file(dir .. "/say", "")
    write_file(dir .. "/speaker", SPEAKER:format(dir))
    assert(os.execute("chmod +x " .. dir .. "/speaker") == 0)
  end)

  after_each(function()
    if one then one:destroy() end
    manager:destroy()
  end)

  it("passes the status on, and nothing else", function()
    start {}
    assert.matches("socket=@%w+ watchdog= pid=", one:output())
    eventually(function() return heard "READY=1" end)
    say "READY=1|MAINPID=1|STATUS=warm"
    eventually(function() return heard "STATUS=leads 1 of 1 elections: job; warm" end)
    say("STATUS=" .. ("é"):rep(120)) -- 240 bytes
    eventually(function() return heard("job; " .. ("é"):rep(80)) end)
    assert.is_nil(heard(("é"):rep(81)))
    say "STOPPING=1|EXTEND_TIMEOUT_USEC=1|FDSTORE=1|WATCHDOG=trigger|STATUS=last"
    eventually(function() return heard "; last" end)
    for _, word in ipairs { "MAINPID", "EXTEND", "FDSTORE", "WATCHDOG", "STOPPING" } do assert.is_nil(heard(word)) end
    assert.equal(1, select(2, manager:output():gsub("READY=1", "")))
  end)

  it("forgets the status of a command that has ended", function()
    start({}, "--restart", "permanent")
    say "STATUS=first"
    eventually(function() return heard "job; first" end)
    local before = #manager:output()
    write_file(dir .. "/say", "")
    signals.send(one:pids("child")[1], "KILL")
    eventually(function() return manager:output():find("leads 1 of 1 elections: job", before + 1, true) end)
    assert.is_nil(manager:output():find("; first", before + 1, true))
  end)

  it("answers the watchdog as long as the command does, once it has", function()
    start { WATCHDOG_USEC = "1000000", WATCHDOG_PID = "1" }
    assert.matches("watchdog=1000000 pid=\n", one:output())
    local function answers() return select(2, manager:output():gsub("WATCHDOG=1", "")) end
    eventually(function() return answers() > 2 end) -- a command that never answers is not expected to
    say "WATCHDOG=1"
    eventually(function() return one:output():find("has not answered the service manager's watchdog", 1, true) end)
    local silent = answers()
    say "STATUS=silent"
    eventually(function() return heard "; silent" end)
    assert.equal(silent, answers())
    say "WATCHDOG=1"
    eventually(function() return answers() > silent end)
  end)

  it("hears this user alone, and opens no socket where nobody listens", function()
    start { WATCHDOG_USEC = "800000" }
    local socket = one:output():match "socket=@(%w+)"
    say "STATUS=first"
    eventually(function() return heard "; first" end)
    local before = #manager:output() -- the next status is told at once when that is long enough ago
    eventually(function() return select(2, manager:output():sub(before):gsub("WATCHDOG=1", "")) > 2 end)
    if is_root then
      local as_stranger = "printf STATUS=stranger | setpriv --reuid 65534 --clear-groups socat -u - ABSTRACT-SENDTO:"
      assert(os.execute(as_stranger .. socket) == 0)
    end
    say "STATUS=own"
    eventually(function() return heard "; own" end)
    assert.is_nil(heard "stranger")
    local alone = Candidate.start { args = { "run", "--quiet", "--oracle", "file:" .. tempdir(), "job", "--", "sh", "-c",
      'echo "socket=<$NOTIFY_SOCKET> watchdog=<$WATCHDOG_USEC>"' }, node = "alone", log = tempdir() .. "/log",
      env = { WATCHDOG_USEC = "1000000" } }
    alone:wait(10)
    assert.matches("socket=<> watchdog=<>", alone:output())
  end)
end)
