-- How a runtime and its elections end, whatever they have open.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local full_fifo = require "support.full_fifo"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"

describe("a runtime", function()
  local dir, started

  before_each(function() dir, started = tempdir(), {} end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function start(node, app, env)
    local path = ("%s/%s.lua"):format(dir, node)
    local file = assert(io.open(path, "w"))
    file:write(app)
    file:close()
    local one = Candidate.start { args = { path, dir }, node = node, log = ("%s/%s.log"):format(dir, node), env = env }
    started[#started + 1] = one
    return one
  end

  local function says(one, pattern, seconds)
    return eventually(function() return one:output():match(pattern) end, seconds or 10)
  end

  it("ends on SIGTERM though its script still listens", function()
    local one = start("one", [[
local crown = require "crown"
crown.tcp.listen("127.0.0.1", 0, function(connection) connection:close() end)
crown.elect { name = "spec", oracle = "file:" .. arg[1] }
]])
    says(one, "leadership.claimed")
    one:signal "TERM"
    assert.equal(0, one:wait(10))
    assert.matches("leadership.abdicated", one:output())
  end)

  it("gives the next leader a moment before it ends, where it has given a lease back", function()
    local APP = [[
local crown = require "crown"
crown.on("process.terminating", function()
  crown.spawn(function()
    crown.sleep(0.001)
    crown.log.info "still there"
  end)
end)
crown.elect { name = "spec", oracle = "file:" .. arg[1] }
]]
    local leader = start("one", APP)
    says(leader, "leadership.claimed")
    local follower = start("two", APP)
    follower:follows()
    follower:signal "TERM"
    assert.equal(0, follower:wait(10))
    leader:signal "TERM"
    assert.equal(0, leader:wait(10))
    assert.is_nil(follower:output():find "still there")
    assert.matches("still there", leader:output())
  end)

  -- The supervisor counts ten seconds of silence of a runtime that was told to end; its script has not ended.
  it("begins no election after SIGTERM, and is not killed while a command takes its time", function()
    local one = start("one", [[
local crown = require "crown"
crown.on("leadership.lost", function()
  crown.elect { name = "late", oracle = "file:" .. arg[1], handlers = { campaign = function() crown.log.info "campaigns" end } }
  crown.log.info "declared"
end)
crown.elect { name = "slow", oracle = "file:" .. arg[1], stop_timeout = 30,
  child = { command = { "sh", "-c", "trap 'sleep 12; echo tidied; exit 0' TERM; echo begun; while :; do sleep 0.05; done" } } }
crown.elect { name = "quick", oracle = "file:" .. arg[1] }
crown.sleep(1000)
]])
    says(one, "begun", 20)
    says(one, "leadership%.claimed name=quick", 20)
    one:signal "TERM"
    assert.equal(0, one:wait(60))
    assert.matches("declared", one:output())
    assert.matches("tidied", one:output())
    assert.is_nil(one:output():find "campaigns")
    assert.is_nil(one:output():find "leadership%.claimed name=late")
    assert.is_nil(one:output():find "silent")
  end)

  -- The command takes a second to tidy up: time enough to win meanwhile.
  it("does not lead again when it is stopped, with a command that lives from term to term", function()
    local app = [[
local crown = require "crown"
crown.elect { name = "spec", oracle = "file:" .. arg[1], stop_timeout = 20,
  child = { command = { "bash", "-c", [=[
    trap : USR1 USR2
    trap 'echo stopping; stop=1' TERM
    echo begun
    while [ -z "$stop" ]; do sleep 0.05; done
    for i in $(seq 20); do sleep 0.05; done
    echo tidied]=] },
    mode = "signal", restart = { policy = "permanent" } } }
]]
    local one = start("one", app, { CROWN_LOG_LEVEL = "debug" })
    says(one, "begun")
    local two = start("two", 'require("crown").elect { name = "spec", oracle = "file:" .. arg[1] }')
    two:follows()
    started[#started + 1] = Candidate.start { args = { "evict", "--oracle", "file:" .. dir, "--force", "spec" }, node = "three",
      log = dir .. "/evict.log" }
    says(two, "leadership.claimed")
    says(one, "leadership%.abdicated.*leadership%.rejected") -- who was evicted stands back for a while
    assert.equal(1, #one:pids "child")
    one:signal "TERM"
    says(one, "stopping")
    two:signal "TERM"
    assert.equal(0, one:wait(10))
    assert.matches("tidied", one:output())
    local _, wins = one:output():gsub("info  leadership%.claimed", "")
    assert.equal(1, wins)
    local _, begun = one:output():gsub("begun\n", "")
    assert.equal(1, begun)
    assert.equal(0, two:wait(10))
  end)

  -- The dead-man timer is for Lua of a term that would run past its deadline, not for whoever is busy with something else.
  it("that is busy past a deadline is killed only where Lua of the term would run on", function()
    local app = [[
local crown = require "crown"
local won, ends = 0, 0
crown.elect { name = "spec", oracle = { "memory", ttl = 1 }, handlers = { lost = function() ends = ends + 1 end,
  won = function() won = won + 1 if arg[1]:find "/on$" then crown.sleep(60) end end } }
while won == 0 do crown.sleep(0.01) end
crown.sleep(0.05)
os.execute "sleep 1.5"
while ends == 0 do crown.sleep(0.01) end
crown.log.info "well"
]]
    local one = start("one", app, { CROWN_HEARTBEAT = "60" })
    says(one, "well")
    dir = dir .. "/on"
    assert(os.execute("mkdir " .. dir) == 0)
    local two = start("two", app, { CROWN_HEARTBEAT = "60" })
    assert.equal(137, two:wait(10)) -- its script had not ended: so it was not started again
  end)

  it("lives on when it gets a signal that says nothing to it, and its child has them by default", function()
    local one = start("one", [[
require("crown").elect { name = "spec", oracle = "file:" .. arg[1], child = { "sleep", "60" } }
]])
    local child
    eventually(function() -- until it is the program it is in the group that is signalled
      child = one:pids("child")[1]
      return child and read_file(("/proc/%d/comm"):format(child)) == "sleep\n"
    end, 20)
    local runtime = one:pids("runtime")[1]
    for _, signal in ipairs { "USR1", "USR2", "ALRM" } do one:signal_group(signal) end
    eventually(function() -- each has been taken
      local waiting = (read_file(("/proc/%d/status"):format(one.pid)) or ""):match "ShdPnd:%s+(%x+)"
      return waiting == ("0"):rep(16)
    end, 20)
    assert.same({ runtime }, one:pids "runtime")
    assert.same({ child }, one:pids "child")
    assert.matches("SigIgn:%s+0000000000000000", (read_file(("/proc/%d/status"):format(child))))
    one:signal "TERM"
    assert.equal(0, one:wait(20))
  end)

  it("says why it fails to nobody, when nobody reads, and ends", function()
    local reader = full_fifo(dir .. "/full")
    local app = io.open(dir .. "/app.lua", "w")
    app:write 'require("crown").elect { name = "spec", oracle = "file:" .. arg[1] } error "no more"'
    app:close()
    local one = Candidate.start { args = { dir .. "/app.lua", dir }, node = "one", log = dir .. "/full" }
    started[#started + 1] = one
    assert.equal(2, one:wait(20))
    reader:close()
  end)

  it("is not held up by a FIFO that nobody reads, nor is its command", function()
    assert(os.execute("mkfifo " .. dir .. "/out " .. dir .. "/in") == 0)
    local one = start("one", [[
local crown = require "crown"
crown.elect { name = "spec", oracle = "file:" .. arg[1], handlers = { won = function() crown.sleep(0.5) crown.log.info "well" end },
  child = { command = { "sh", "-c", "echo out; echo err >&2; read line; echo heard $line >&2; exec sleep 60" },
    stdin = arg[1] .. "/in", stdout = arg[1] .. "/out", stderr = arg[1] .. "/err" } }
]])
    says(one, "well")
    eventually(function() return read_file(dir .. "/err") == "err\n" end)
    local into = assert(io.open(dir .. "/in", "w"))
    into:write "you\n"
    into:close()
    eventually(function() return read_file(dir .. "/err") == "err\nheard you\n" end)
    local out = assert(io.open(dir .. "/out", "r+"))
    assert.equal("out", out:read "*l")
    out:close()
    assert.equal(1, #one:pids "child")
    assert.is_nil(one:output():find "runtime.restarted")
  end)

  -- A user has 128 instances of inotify where nobody has raised it.
  it("watches the files of many elections by one instance of inotify", function()
    local one = start("one", [[
local crown = require "crown"
for i = 1, 300 do crown.elect { name = "e" .. i, oracle = "file:" .. arg[1] } end
]])
    eventually(function() return select(2, one:output():gsub("leadership%.claimed", "")) == 300 end, 60)
    assert.is_nil(one:output():find "monitor.failed")
    local found = crown.exec { "sh", "-c", "ls -l /proc/" .. one:pids("runtime")[1] .. "/fd | grep -c inotify" }
    assert.is_true(tonumber(found.stdout) <= 2, found.stdout)
    one:signal "TERM"
    assert.equal(0, one:wait(60))
  end)

  it("logs whole lines, however they come", function()
    local one = start("one", [[
local crown = require "crown"
crown.elect { name = "spec", oracle = "file:" .. arg[1], child = { stdout = "log", restart = { policy = "temporary" },
  command = { "awk", 'BEGIN { x = "xxxxxxxxxxxxxxxxxxxxxxx"; '
    .. 'for (i = 0; i < 5000; i++) printf "line %d of %s end\\n", i, substr(x, 1, i % 23); print "done" }' } } }
]])
    says(one, "info +done")
    local whole = 0
    for line in one:output():gmatch "[^\n]+" do
      if line:find "info  line %d+ of x* end name=spec" then whole = whole + 1 end
    end
    assert.equal(5000, whole)
  end)
end)
