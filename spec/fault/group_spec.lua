--- What happens to a whole process group, or to all that a user may start: a signal to all of it, no more processes, a
-- log that nobody reads, and a child that has become somebody else.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local Etcd = require "support.etcd"
local eventually = require "crown.testing.eventually"
local other_users = require "support.other_users"
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local signals = require "support.signals"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local program = os.getenv "CROWN_LUA" or "./crown-lua"
local ticker = os.getenv "CROWN_TICKER" or "build/ticker"
local USER = tostring(1200000 + math.random(90000)) -- nobody's

-- Says which signals it gets, and when; ends at TERM.
local WORKER = [[
trap 'echo INT >> "$1"' INT
trap 'echo TERM >> "$1"; exit 0' TERM
echo start >> "$1"
while :; do sleep 0.05; done
]]

-- An app that says when it has won and when it has lost, which takes it a while.
local SLOW_TO_LOSE = [[
local crown = require "crown"
local function say(text)
  local file = io.open(arg[1] .. "/said", "a")
  file:write(text, "\n")
  file:close()
end
crown.elect { name = "spec", oracle = "file:" .. arg[1] .. "/locks", handlers = {
  won = function() say "won" end,
  lost = function(reason) crown.sleep(0.2) say("lost " .. reason) end,
} }
]]

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

describe("a process group", function()
  local one, dir

  before_each(function() dir = tempdir() end)
  after_each(function() if one then one:destroy() end end)

  local function said() return read_file(dir .. "/said") or "" end

  local function start_worker(wrapper)
    write(dir .. "/worker.sh", WORKER)
    local words = { unpack(wrapper) }
    for _, word in ipairs { "run", "--oracle", "file:" .. dir .. "/locks", "spec", "--", "bash", dir .. "/worker.sh",
      dir .. "/said" } do words[#words + 1] = word end
    local first = table.remove(words, 1)
    one = Candidate.start { program = first, args = words, node = "one", log = dir .. "/log" }
    eventually(said, 10)
    eventually(function() return said():find "start" end, 10)
  end

  -- As timeout -k does it. What the command has started is in a group of its own, and nobody would be left to kill it.
  it("that gets KILL leaves nothing of the command's tree", function()
    one = Candidate.start { program = program, node = "one", log = dir .. "/log", args = { "run", "--oracle", "file:" .. dir .. "/locks",
      "spec", "--", "bash", "-c", "sleep 7000 & echo $! > " .. dir .. "/said; wait" } }
    local started = eventually(function() return tonumber(said()) end, 10)
    one:signal_group "KILL"
    one:wait(20)
    eventually(function() return not read_file(("/proc/%d/stat"):format(started)) end, 20)
  end)

  for _, signal in ipairs { "TERM", "INT" } do
    it("that gets " .. signal .. " lets its command hear INT, then TERM, and ends", function()
      start_worker { program }
      one:signal_group(signal)
      one:wait(20)
      assert.equal("start\nINT\nTERM\n", said())
      assert.not_matches("child%.killed", one:output())
    end)
  end

  it("that timeout(1) ends does so in order", function()
    start_worker { "/usr/bin/timeout", "1000", program }
    one:hurt_self "ALRM" -- as its own timer does: time is up now
    assert.equal(124, one:wait(20))
    eventually(function() return said() == "start\nINT\nTERM\n" end, 10)
  end)

  -- timeout(1) sends its signal to its command, and at once to the whole group, in which that is.
  for _, signal in ipairs { "INT", "TERM" } do
    it("that `timeout -s " .. signal .. "` ends runs `lost` to its end, and gives its lease back", function()
      write(dir .. "/app.lua", SLOW_TO_LOSE)
      for _ = 1, 5 do
        os.remove(dir .. "/said")
        one = Candidate.start { program = "/usr/bin/timeout", node = "one", log = dir .. "/log",
          args = { "-s", signal, "1000", program, dir .. "/app.lua", dir } }
        eventually(function() return said() == "won\n" end, 10)
        one:hurt_self "ALRM"
        one:wait(20)
        eventually(function() return said() == "won\nlost shutdown\n" end, 5)
      end
      assert.not_matches("at once", one:output())
    end)
  end

  it("that a service manager ends does so in order, each process signalled", function()
    start_worker { program }
    one:hurt("TERM", "supervise", "runtime", "keeper", "warden")
    one:wait(20)
    assert.equal("start\nINT\nTERM\n", said())
  end)

  it("that loses its terminal goes on", function()
    start_worker { program }
    local keeper = one:pids "keeper"
    one:signal_group "HUP"
    one:hurt("HUP", "runtime", "keeper", "warden")
    one:signal "TERM"
    one:wait(20)
    assert.equal(1, #keeper)
    assert.equal("start\nINT\nTERM\n", said())
  end)
end)

-- Elections of which each wants a child; what becomes of them is counted.
local MANY = [[
local crown = require "crown"
local failed, started = 0, 0
local function tell()
  local file = io.open(arg[1] .. "/told.new", "w")
  file:write(("%d %d"):format(failed, started))
  file:close()
  os.rename(arg[1] .. "/told.new", arg[1] .. "/told")
end
crown.on("child.exited", function() failed = failed + 1 tell() end)
crown.on("child.started", function() started = started + 1 tell() end)
for i = 1, 600 do
  crown.elect { name = "e" .. i, oracle = { "memory", ttl = 60 }, child = { "sleep", "1000" }, stop_timeout = 1 }
end
]]

local as_others = other_users and describe or pending

as_others("a user who may have no more processes", function()
  local one, dir

  before_each(function() dir = tempdir() end)
  after_each(function() if one then one:destroy() end end)

  it("is told so for each election, none of which leads without its child; all end on SIGTERM", function()
    write(dir .. "/app.lua", MANY)
    os.execute("chmod 777 " .. dir)
    local user = tostring(1100000 + math.random(90000)) -- whose processes are not counted with anybody else's
    one = Candidate.start { program = "/usr/bin/setpriv", args = { "--reuid", user, "--regid", "65534", "--clear-groups", "prlimit",
      "--nproc=40", program, "--log-level", "error", dir .. "/app.lua", dir }, node = "one", log = dir .. "/log" }
    eventually(function()
      local failed, started = (read_file(dir .. "/told") or "0 0"):match "(%d+) (%d+)"
      return failed + started >= 600
    end, 60)
    one:signal "TERM"
    assert.equal(0, one:wait(30))
  end)
end)

describe("standard error that nobody reads", function()
  local one, dir

  before_each(function() dir = tempdir() end)
  after_each(function() if one then one:destroy() end end)

  it("holds up neither the supervisor nor the runtime, which count what was lost", function()
    -- A FIFO with a reader that does not read, opened for both so that nobody waits here.
    os.execute("mkfifo " .. dir .. "/log")
    write(dir .. "/app.lua", ([[
      local crown = require "crown"
      crown.elect { name = "spec", oracle = "file:%s/locks", child = { "%s", "%s/ticks", "plain" }, stop_timeout = 0.3 }
      crown.spawn(function() while true do crown.log.warn(("x"):rep(1000)) crown.sleep(0.001) end end)
    ]]):format(dir, ticker, dir))
    local reader = assert(io.open(dir .. "/log", "r+"))
    one = Candidate.start { args = { "--heartbeat", "1", dir .. "/app.lua" }, node = "one", log = dir .. "/log" }
    local term = ticks.await(dir .. "/ticks", 0, 10)
    eventually(function() -- the log has been full for longer than a runtime may be silent
      local last = ticks.lives(dir .. "/ticks")[1]
      return last.last - last.first > 2
    end, 20)
    assert.equal(1, #ticks.lives(dir .. "/ticks"))
    one:hurt("STOP", "runtime") -- the supervisor has something to say
    ticks.await(dir .. "/ticks", term.epoch, 20)
    one:signal "TERM"
    one:wait(20)
    reader:close()
  end)
end)

as_others("a child that has become root under a user who is not", function()
  local cluster, child

  local function kill_child()
    if child then os.execute("kill -KILL " .. child) end
    child = nil
  end

  -- Whatever its children are by now, it may not end them: it may have led again.
  local function end_without_rights(one)
    one:signal "TERM"
    eventually(function()
      signals.send_all(one:pids "child", "KILL")
      return pcall(one.wait, one, 0)
    end, 20)
  end

  after_each(function()
    kill_child()
    if not cluster then return end
    for _, one in ipairs(cluster.members) do
      if one.without_rights and not one.code then end_without_rights(one) end
    end
    cluster:finish()
  end)

  -- As sudo(8) does.
  local function sudo(dir)
    os.execute(("chmod 777 %s && cp /usr/bin/setpriv %s/sudo && chmod 4755 %s/sudo"):format(dir, dir, dir))
    return dir .. "/sudo"
  end

  -- A candidate without rights, on a lock in `dir`, whose child becomes root and closes the lock's descriptor.
  local function join_without_rights(node, user)
    local one = Candidate.start { program = "/usr/bin/setpriv", node = node, log = ("%s/%s.log"):format(cluster.dir, node),
      args = { "--reuid", user, "--regid", "65534", "--clear-groups", program, cluster.dir .. "/app.lua", cluster.dir .. "/locks",
        cluster.dir .. "/sudo", "--reuid", "0", "bash", "-c", 'exec 100>&- "$@"', "bash", ticker, cluster.ticks, "plain" } }
    cluster.members[#cluster.members + 1], one.without_rights = one, true
    return one
  end

  it("keeps its warden and so its lock when runtime, keeper and then the supervisor are killed", function()
    cluster = Cluster.new { oracle = "file" }
    write(cluster.ticks, "")
    sudo(cluster.dir)
    os.execute(("chmod 666 %s && mkdir %s/locks && chown %s:65534 %s/locks"):format(cluster.ticks, cluster.dir, USER, cluster.dir))
    local one = join_without_rights("one", USER)
    local term = ticks.await(cluster.ticks, 0, 10)
    child = one:pids("child")[1]
    join_without_rights("two", USER):follows()
    local warden = one:pids("warden")[1]
    one:hurt("KILL", "runtime", "keeper")
    eventually(function() return #one:pids "keeper" == 0 end, 20)
    local function last_tick() return ticks.lives(cluster.ticks)[1].last end
    local function tick_for(seconds)
      local from = last_tick()
      eventually(function() return last_tick() > from + seconds end, 20)
    end
    tick_for(0.1) -- the supervisor, which has reaped the keeper, has done whatever it does then
    one:hurt_self "KILL"
    tick_for(2) -- long enough for another to lead
    assert.equal(1, #ticks.lives(cluster.ticks))
    kill_child()
    assert.equal("two", ticks.await(cluster.ticks, term.epoch, 20).node)
    child = cluster.members[2]:pids("child")[1]
    eventually(function() return read_file(("/proc/%d/comm"):format(warden)) == nil end, 20) -- whoever has it reaps it
  end)

  -- The stores whose lease a leader has to refresh.
  local STORES = { redis = Redis, postgres_lease = Postgres, etcd = Etcd }
  for oracle, Store in pairs(STORES) do
    it("keeps its lease on " .. oracle .. " for as long as it lives, also when it was evicted", function()
      local store = Store.start()
      finally(function() store:destroy() end)
      local url = store.url .. "?amnesia_wait=0"
      cluster = Cluster.new { url = url }
      write(cluster.ticks, "")
      os.execute("chmod 666 " .. cluster.ticks)
      local one = Candidate.start { program = "/usr/bin/setpriv", node = "one", log = cluster.dir .. "/one.log",
        args = { "--reuid", USER, "--regid", "65534", "--clear-groups", program, "run", "--oracle", url .. "&ttl=2", "--restart",
          "permanent", "spec", sudo(cluster.dir), "--reuid", "0", ticker, cluster.ticks, "plain" } }
      cluster.members[#cluster.members + 1], one.without_rights = one, true
      local term = ticks.await(cluster.ticks, 0, 20)
      child = one:pids("child")[1]
      cluster:join "two"
      run { "evict", "--oracle", url, "--force", "--wait", "0", "spec" }
      eventually(function() return one:output():find "child%.unkillable" end, 20)
      local function last_tick() return ticks.lives(cluster.ticks)[1].last end
      local said = last_tick()
      eventually(function() return last_tick() > said + 4 end, 20) -- longer than a lease
      assert.equal(1, #ticks.lives(cluster.ticks))
      kill_child()
      ticks.await(cluster.ticks, term.epoch, 20)
    end)
  end

  it("keeps its lease, with an event that says so, for as long as it lives", function()
    cluster = Cluster.new { oracle = "lease", ttl = 2 }
    write(cluster.ticks, "")
    os.execute("chmod 666 " .. cluster.ticks)
    local one = Candidate.start { program = "/usr/bin/setpriv", node = "one", log = cluster.dir .. "/one.log",
      env = { TTL = 2 },
      args = { "--reuid", USER, "--regid", "65534", "--clear-groups", program, "lua/examples/custom_oracle/app.lua",
        cluster.port, sudo(cluster.dir), "--reuid", "0", ticker, cluster.ticks, "plain" } }
    cluster.members[#cluster.members + 1], one.without_rights = one, true
    local term = ticks.await(cluster.ticks, 0, 10)
    child = one:pids("child")[1]
    cluster:join "two"
    one:signal "TERM"
    eventually(function() return one:output():find "child%.unkillable" end, 20)
    local function last_tick() return ticks.lives(cluster.ticks)[1].last end
    local said = last_tick()
    eventually(function() return last_tick() > said + 3 end, 20) -- longer than a lease
    assert.equal(1, #ticks.lives(cluster.ticks))
    kill_child()
    assert.is_true(ticks.await(cluster.ticks, term.epoch, 20).node == "two")
    one:wait(20)
  end)
end)
