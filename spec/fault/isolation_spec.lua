-- The PID namespace, process 1, and what a child sees of the world.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local write_file = require "support.write_file"

local PIDNS = [[
local crown = require "crown"
crown.elect { name = "spec", oracle = "file:" .. arg[1], child = { command = { unpack(arg, 2) }, isolation = "pidns" } }
]]

describe("a child in a PID namespace", function()
  local cluster

  after_each(function() cluster:finish() end)

  for _, mode in ipairs { "plain", "daemon", "fork" } do
    it("dies with its whole tree when everything above it is killed at once: " .. mode, function()
      cluster = Cluster.new { oracle = "file", app = PIDNS, mode = mode }
      local leader, _, term = cluster:pair()
      leader:hurt("KILL", "supervise", "runtime", "keeper", "warden")
      cluster:succeed(term.epoch, 10, "two")
    end)
  end

  it("sees process ids of its own", function()
    cluster = Cluster.new { oracle = "file", app = PIDNS }
    cluster:join "one"
    ticks.await(cluster.ticks, 0, 10)
    assert.equal(2, ticks.read(cluster.ticks)[1].pid)
  end)

  it("is told of by the process id that the host knows it by", function()
    cluster = Cluster.new { oracle = "file", app = PIDNS }
    local one = cluster:join "one"
    ticks.await(cluster.ticks, 0, 10)
    local pid = eventually(function() return one:output():match "child%.started [^\n]*pid=(%d+)" end, 10)
    assert.matches("NSpid:%s+" .. pid .. "%s+2\n", (read_file(("/proc/%s/status"):format(pid))))
  end)
end)

describe("a child", function()
  local one

  after_each(function() if one then one:destroy() end end)

  local function start(child, env)
    local dir = tempdir()
    write_file(dir .. "/app.lua", ([[require("crown").elect { name = "spec", oracle = "file:%s/locks", child = %s }]]):format(dir, child))
    one = Candidate.start { args = { dir .. "/app.lua" }, node = "one", log = dir .. "/log", env = env }
    return dir
  end

  it("begins in a clean world: no signal blocked or ignored, no descriptor of ours but the lock and the mark", function()
    local out = tempdir() .. "/out"
    start(([[{ "sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status > %s.new; ls /proc/self/fd >> %s.new; mv %s.new %s; exec sleep 60" }]])
      :format(out, out, out, out))
    local text = eventually(function() return read_file(out) end, 10)
    assert.matches("SigBlk:%s+0000000000000000", text)
    assert.matches("SigIgn:%s+0000000000000000", text)
    local others = {}
    for fd in text:gsub("Sig[^\n]*\n", ""):gmatch "%d+" do
      if tonumber(fd) > 3 then others[#others + 1] = fd end -- 3 is ls's own
    end
    assert.same({ "100", "101" }, others)
  end)

  it("learns the election, the node, the role and the epoch, and no oracle URL", function()
    local out = tempdir() .. "/out"
    local env = "env | grep ^CROWN_ | grep -Ev '^CROWN_(DIRECTORY|LOG_FILTER|LOOP_HELD)=' | sort" -- these are every spec's
    start(([[{ "sh", "-c", "%s > %s.new; mv %s.new %s; exec sleep 60" }]]):format(env, out, out, out),
      { CROWN_ORACLE = "file:/secret" })
    assert.equal("CROWN_ELECTION=spec\nCROWN_EPOCH=1\nCROWN_NODE=one\nCROWN_ROLE=leader\n",
      eventually(function() return read_file(out) end, 10))
  end)

  it("of a follower has no descriptor of ours, not even of one that led before", function()
    local dir, out = tempdir(), tempdir() .. "/out"
    write_file(dir .. "/app.lua", ([[require("crown").elect { name = "spec", oracle = "file:%s/locks", child = { "sleep", "60" },
      follower_child = { "sh", "-c", "ls /proc/self/fd > %s.$CROWN_NODE.new; mv %s.$CROWN_NODE.new %s.$CROWN_NODE; exec sleep 60" } }
      ]]):format(dir, out, out, out))
    local function start_on(node)
      return Candidate.start { args = { dir .. "/app.lua" }, node = node, log = dir .. "/log-" .. node }
    end
    one = start_on "one"
    eventually(function() return one:output():find "child.started" end, 10)
    local two = start_on "two"
    assert.equal("0\n1\n2\n3\n", eventually(function() return read_file(out .. ".two") end, 10)) -- 3 is ls's own
    os.remove(out .. ".one")
    run { "evict", "--oracle", "file:" .. dir .. "/locks", "--force", "spec" }
    assert.equal("0\n1\n2\n3\n", eventually(function() return read_file(out .. ".one") end, 10))
    two:destroy()
  end)

  it("that does not exist makes the candidate step down and say so", function()
    start [[{ "/no/such/command" }]]
    eventually(function() return one:output():find "child_failed" end, 10)
    assert.matches("run /no/such/command: No such file or directory", one:output())
  end)

  it("may be a Lua module in a process of its own", function()
    local dir = start [[{ lua = "worker" }]]
    local file = assert(io.open(dir .. "/worker.lua", "w"))
    file:write [[local crown = require "crown" return function() while true do crown.sleep(0.01)
      print("working as " .. os.getenv "CROWN_ROLE") end end]]
    file:close()
    eventually(function() return one:output():find "working as leader" end, 10)
  end)
end)

describe("crown-lua as process 1", function()
  it("leads, reaps strangers, and hands the exit code on", function()
    if not is_root then return pending "only root can make a PID namespace" end
    local dir = tempdir()
    write_file(dir .. "/app.lua", ([[
      local crown = require "crown"
      local e = crown.elect { name = "one", oracle = "file:%s/locks", child = { "sleep", "60" } }
      crown.exec { "sh", "-c", "(sleep 0.05 &) ; exit 0" }
      require("crown.testing").eventually(function() return e:is_leader() end, 10)
      print("leading " .. tostring(e:is_leader()))
      e:stop()
    ]]):format(dir))
    local result = assert(crown.exec({ "unshare", "--pid", "--fork", "--mount-proc", program, dir .. "/app.lua" },
      { timeout = 20 }))
    assert.equal(0, result.code, result.stderr)
    assert.matches("leading true", result.stdout)
  end)
end)
