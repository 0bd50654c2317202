-- The PID namespace, process 1, and what a child sees of the world.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local PIDNS = [[
local crown = require "crown"
crown.elect { name = "spec", oracle = "file:" .. arg[1], child = { command = { unpack(arg, 2) }, isolation = "pidns" } }
]]

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "*a"
  if file then file:close() end
  return text
end

describe("a child in a PID namespace", function()
  local cluster

  after_each(function() cluster:finish() end)

  for _, mode in ipairs { "plain", "daemon", "fork" } do
    it("dies with its whole tree when everything above it is killed at once: " .. mode, function()
      cluster = Cluster.new { oracle = "file", app = PIDNS, mode = mode }
      local leader, _, term = cluster:pair()
      leader:hurt("KILL", "supervise", "runtime", "keeper", "warden")
      assert.equal("two", cluster:succeed(term.epoch, 10).node)
    end)
  end

  it("sees process ids of its own", function()
    cluster = Cluster.new { oracle = "file", app = PIDNS }
    cluster:join "one"
    ticks.await(cluster.ticks, 0, 10)
    assert.equal(2, ticks.read(cluster.ticks)[1].pid)
  end)
end)

describe("a child", function()
  local one

  after_each(function() if one then one:destroy() end end)

  local function start(child, env)
    local dir = tempdir()
    local file = assert(io.open(dir .. "/app.lua", "w"))
    file:write(([[require("crown").elect { name = "spec", oracle = "file:%s/locks", child = %s }]]):format(dir, child))
    file:close()
    one = Candidate.start { args = { dir .. "/app.lua" }, node = "one", log = dir .. "/log", env = env }
    return dir
  end

  it("begins in a clean world: no signal blocked or ignored, no descriptor of ours but the lock", function()
    local out = tempdir() .. "/out"
    start(([[{ "sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status > %s.new; ls /proc/self/fd >> %s.new; mv %s.new %s; exec sleep 60" }]])
      :format(out, out, out, out))
    local text = eventually(function() return read(out) end, 10)
    assert.matches("SigBlk:%s+0000000000000000", text)
    assert.matches("SigIgn:%s+0000000000000000", text)
    local others = {}
    for fd in text:gsub("Sig[^\n]*\n", ""):gmatch "%d+" do
      if tonumber(fd) > 3 then others[#others + 1] = fd end -- 3 is ls's own
    end
    assert.same({ "100" }, others)
  end)

  it("learns the election, the node, the role and the epoch, and no oracle URL", function()
    local out = tempdir() .. "/out"
    start(([[{ "sh", "-c", "env | grep ^CROWN_ | sort > %s.new; mv %s.new %s; exec sleep 60" }]]):format(out, out, out),
      { CROWN_ORACLE = "file:/secret" })
    assert.equal("CROWN_ELECTION=spec\nCROWN_EPOCH=1\nCROWN_NODE=one\nCROWN_ROLE=leader\n",
      eventually(function() return read(out) end, 10))
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
    local dir = tempdir()
    local file = assert(io.open(dir .. "/app.lua", "w"))
    file:write(([[
      local crown = require "crown"
      local e = crown.elect { name = "one", oracle = "file:%s/locks", child = { "sleep", "60" } }
      crown.exec { "sh", "-c", "(sleep 0.05 &) ; exit 0" }
      crown.sleep(0.3)
      print("leading " .. tostring(e:is_leader()))
      e:stop()
    ]]):format(dir))
    file:close()
    local program = os.getenv "CROWN_LUA" or "./crown-lua"
    local result = assert(crown.exec({ "unshare", "--pid", "--fork", "--mount-proc", program, dir .. "/app.lua" },
      { timeout = 20 }))
    assert.equal(0, result.code, result.stderr)
    assert.matches("leading true", result.stdout)
  end)
end)
