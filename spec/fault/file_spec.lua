-- Promise 1 on the embedded oracle: whatever happens to a leader, its child's tree is dead before another one leads.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local held_up = require "support.held_up"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local ticks = require "support.ticks"
local write_file = require "support.write_file"

local ALL = { "supervise", "runtime", "keeper" }

describe("a leader on the file oracle", function()
  local cluster

  after_each(function() cluster:finish() end)

  local function fails_over(mode, hurt)
    cluster = Cluster.new { oracle = "file", mode = mode }
    local leader, follower, term = cluster:pair()
    hurt(leader)
    return cluster:succeed(term.epoch, 10), leader, follower
  end

  for _, mode in ipairs { "plain", "daemon", "fork", "stubborn" } do
    describe("with a child of mode " .. mode, function()
      it("hands over in order on SIGTERM, and exits with 0", function()
        local term, leader = fails_over(mode, function(one) one:signal "TERM" end)
        assert.equal("two", term.node)
        assert.equal(0, leader:wait(10))
      end)

      it("leaves no overlap when its runtime is killed (R17, R18)", function()
        fails_over(mode, function(one) one:hurt("KILL", "runtime") end)
      end)

      it("leaves no overlap when supervisor, runtime and keeper are killed at once", function()
        local term = fails_over(mode, function(one) one:hurt("KILL", unpack(ALL)) end)
        assert.equal("two", term.node)
      end)

      it("leaves no overlap when its supervisor is killed", function()
        local term = fails_over(mode, function(one) one:hurt("KILL", "supervise") end)
        assert.equal("two", term.node)
      end)
    end)
  end

  -- The child has closed the lock's descriptor: keeper and warden hold it alone.
  for _, isolation in ipairs { "tree", "pidns" } do
    it(("leaves no overlap when runtime and keeper are killed and only the warden holds the lock (%s)"):format(isolation), function()
      cluster = Cluster.new { oracle = "file", mode = "loose", env = { one = { ISOLATION = isolation } } }
      local leader, _, term = cluster:pair()
      leader:hurt("KILL", "runtime", "keeper")
      cluster:succeed(term.epoch, 30)
    end)

    it(("leaves no overlap when runtime, keeper and warden are killed at once, and nobody of the tree holds the lock (%s)")
      :format(isolation), function()
      cluster = Cluster.new { oracle = "file", mode = "chain", env = { one = { ISOLATION = isolation } } }
      local leader, _, term = cluster:pair()
      local is_reaped = held_up(leader:pids("keeper")[1]) -- so that it cannot kill anybody before it dies
      leader:hurt("KILL", "runtime", "warden", "keeper")
      eventually(is_reaped, 10)
      cluster:succeed(term.epoch, 30)
    end)

    it(("leaves no overlap when its supervisor is killed right after runtime and keeper (%s)"):format(isolation), function()
      cluster = Cluster.new { oracle = "file", mode = "loose", env = { one = { ISOLATION = isolation } } }
      local leader, _, term = cluster:pair()
      leader:hurt("KILL", "runtime", "keeper", "supervise")
      cluster:succeed(term.epoch, 30, "two")
    end)

    it(("hands over when its supervisor is killed while its keeper is stopped (%s)"):format(isolation), function()
      cluster = Cluster.new { oracle = "file", mode = "loose", env = { one = { ISOLATION = isolation } } }
      local leader, _, term = cluster:pair()
      leader:hurt("STOP", "keeper", "warden")
      leader:hurt("KILL", "supervise")
      cluster:succeed(term.epoch, 30, "two")
    end)
  end

  for _, kinds in ipairs { { "keeper" }, { "keeper", "warden" } } do
    it(("hands over on one SIGTERM while its %s are kept stopped"):format(table.concat(kinds, " and ")), function()
      cluster = Cluster.new { oracle = "file", mode = "loose" }
      local leader, _, term = cluster:pair()
      leader:hurt("STOP", unpack(kinds))
      leader:signal "TERM"
      cluster:succeed(term.epoch, 30, "two")
      assert.equal(0, leader:wait(10))
      assert.matches("child.keeper_late", leader:output())
    end)
  end

  it("blames no process of its tree while its supervisor is stopped, and says that this is", function()
    cluster = Cluster.new { oracle = "file" }
    local leader = cluster:pair()
    leader:hurt("STOP", "supervise")
    leader:hurt("KILL", "keeper")
    crown.sleep(3) -- longer than a tree may take that was killed
    eventually(function() return leader:output():find "the supervisor %(process %d+%) is stopped" end, 20)
    leader:hurt("CONT", "supervise")
    eventually(function() return #leader:pids "child" == 1 end, 10)
    assert.is_nil(leader:output():find("child.unkillable", 1, true), leader:output())
  end)

  it("ends as its command did, though the keeper was stopped meanwhile", function()
    cluster = Cluster.new { oracle = "file" }
    local fifo = cluster.dir .. "/end"
    assert.equal(0, os.execute("mkfifo " .. fifo))
    local leader = Candidate.start { node = "one", log = cluster.dir .. "/log", args = { "run", "--oracle",
      "file:" .. cluster.dir .. "/locks", "--once", "spec", "--", "sh", "-c", "echo begun; read line <" .. fifo .. "; exit 7" } }
    cluster.members[1] = leader
    eventually(function() return leader:output():find "begun" end, 10)
    leader:hurt("STOP", "keeper")
    write_file(fifo, "end\n")
    assert.equal(7, leader:wait(20), leader:output())
  end)

  for what, command in pairs {
    ["its lock file is removed"] = "rm -f locks/spec.lock",
    ["all its files are removed"] = "rm -f locks/spec.*",
    ["all its files are moved"] = "mkdir away && mv locks/spec.* away",
    ["its directory is moved"] = "mv locks away && mkdir -p locks",
  } do
    for _, mode in ipairs { "plain", "stubborn" } do
      it(("leaves no overlap when %s (%s)"):format(what, mode), function()
        fails_over(mode, function()
          cluster:join "three"
          assert.equal(0, os.execute(("cd %s && %s"):format(cluster.dir, command)))
          cluster:join "four"
        end)
      end)
    end
  end

  it("leaves no overlap when a lock file that was led under before is put back in the place of its own", function()
    cluster = Cluster.new { oracle = "file", mode = "stubborn" }
    local function play(command) assert.equal(0, os.execute(("cd %s && %s"):format(cluster.dir, command))) end
    local before = Candidate.start { node = "before", log = cluster.dir .. "/log",
      args = { "run", "--oracle", "file:" .. cluster.dir .. "/locks", "--once", "spec", "true" } }
    assert.equal(0, before:wait(10))
    play "mv locks/spec.lock before"
    local _, _, term = cluster:pair()
    play "mv before locks/spec.lock"
    cluster:join "three" -- a newcomer, which has never seen the leader's
    cluster:succeed(term.epoch, 10)
  end)

  for _, mode in ipairs { "plain", "daemon", "stubborn" } do
    for _, kind in ipairs { "keeper", "warden" } do
      it(("restarts the child when its %s is killed, the old tree gone first (%s)"):format(kind, mode), function()
        cluster = Cluster.new { oracle = "file", mode = mode }
        local leader = cluster:pair()
        leader:hurt("KILL", kind)
        eventually(function() return #ticks.lives(cluster.ticks) == 2 end, 10)
        ticks.settle(cluster.ticks)
        assert.equal(1, #ticks.terms(cluster.ticks))
      end)
    end
  end

  it("restarts the child when keeper and warden are killed, whatever those call themselves that it has started", function()
    cluster = Cluster.new { oracle = "file", mode = "impostor" }
    local leader = cluster:pair()
    local is_reaped = held_up(leader:pids("keeper")[1]) -- so that it cannot kill anybody before it dies
    leader:hurt("KILL", "warden", "keeper")
    eventually(is_reaped, 10)
    eventually(function() return #ticks.lives(cluster.ticks) == 2 end, 10)
    ticks.settle(cluster.ticks)
    assert.equal(1, #ticks.terms(cluster.ticks))
  end)

  it("restarts a stopped runtime, under the same token, without overlap", function()
    local _, leader = fails_over("plain", function(one) one:hurt("STOP", "runtime") end)
    assert.matches("silent for", leader:output())
  end)

  it("restarts a crashed child, without giving up the term (permanent)", function()
    cluster = Cluster.new { oracle = "file" }
    local leader, _, term = cluster:pair()
    leader:hurt("KILL", "child")
    eventually(function() return #ticks.lives(cluster.ticks) == 2 end, 5)
    ticks.settle(cluster.ticks)
    assert.same({ term.epoch }, { ticks.terms(cluster.ticks)[1].epoch, ticks.terms(cluster.ticks)[2] })
  end)

  it("ends at once on a second SIGINT, with its tree killed first", function()
    cluster = Cluster.new { oracle = "file", mode = "stubborn", stop_timeout = 60 }
    local leader = cluster:pair()
    leader:signal "INT"
    eventually(function() return leader:output():find "reason=shutdown" end, 5)
    crown.sleep(0.6) -- sooner it would be the same request
    leader:signal "INT"
    assert.equal(130, leader:wait(5))
    assert.matches("SIGINT again: killed the runtime and its children at once", leader:output(), 1, true)
    assert.equal(0, #leader:pids "child")
  end)

  for _, limit in ipairs { 24, 64, 100, 101 } do
    it(("hands its lock to the child where %d descriptors are allowed"):format(limit), function()
      cluster = Cluster.new { oracle = "file" }
      local leader = Candidate.start { program = "/bin/sh", node = "one", log = cluster.dir .. "/log",
        args = { "-c", ("ulimit -n %d; exec \"$@\""):format(limit), "sh", program, "run", "--oracle", "file:" .. cluster.dir .. "/locks",
          "--once", "spec", "--", "sh", "-c", "ls -l /proc/$$/fd" } }
      local code = leader:wait(20)
      local held = leader:output():match "(%d+) %-> [^\n]*/spec%.lock"
      assert.equal(0, code, leader:output())
      assert.is_true(tonumber(held) >= math.min(limit - 1, 100), leader:output())
    end)
  end

  -- Below a link it has a mark for each of the two paths, and the lock is the third that its tree is given.
  for below, number in pairs { [""] = 1, ["/link"] = 2 } do
    it(("has %d of its marks and its lock open in each of its processes"):format(number), function()
      cluster = Cluster.new { oracle = "file" }
      crown.exec { "ln", "-s", ".", cluster.dir .. "/link" }
      local leader = cluster:join("one", cluster.dir .. below .. "/locks")
      ticks.await(cluster.ticks, 0, 10)
      local marks = {}
      for inode in (read_file "/proc/net/unix"):gmatch " (%d+) @crown%-lua/%x+/%d\n" do marks[inode] = true end
      for _, kind in ipairs { "supervise", "runtime", "keeper", "warden", "child" } do
        local open = crown.exec({ "ls", "-l", ("/proc/%d/fd"):format(leader:pids(kind)[1]) }).stdout
        local marked = {}
        for inode in open:gmatch "socket:%[(%d+)%]" do marked[#marked + 1] = marks[inode] end
        assert.is_true(#marked >= number, kind)
        assert.is_true(open:find(cluster.dir .. "/locks/spec.lock", 1, true) ~= nil, kind)
      end
    end)
  end

  it("is not ended by SIGHUP", function()
    cluster = Cluster.new { oracle = "file" }
    local leader, _, term = cluster:pair()
    leader:signal "HUP"
    leader:signal "TERM"
    assert.equal(0, leader:wait(10))
    assert.equal("two", ticks.await(cluster.ticks, term.epoch, 5).node)
  end)
end)
