--- A debugger that holds a command: one that is dead is gone, whoever holds it; of one that is stopped on its way out it is
-- said who holds it.
local Candidate = require "support.candidate"
local eventually = require "crown.testing.eventually"
local core = require "crown.core"
local ffi = require "ffi"
local tempdir = require "support.tempdir"

pcall(ffi.cdef, "long ptrace(long request, int pid, void *address, void *data);")

local SEIZE, CONT, OPTION_TRACE_EXIT = 0x4206, 7, 0x40

local function seize(pid, options)
  return ffi.C.ptrace(SEIZE, pid, nil, ffi.cast("void *", options)) == 0
end

describe("a command that a debugger holds", function()
  local one, two, dir

  before_each(function() dir = tempdir() end)
  after_each(function()
    one:destroy()
    if two then two:destroy() end
  end)

  local function start(node)
    return Candidate.start { args = { "run", "--oracle", "file:" .. dir .. "/locks", "--stop-timeout", "0.3", "spec", "sleep", "1000" },
      node = node, log = dir .. "/" .. node, env = { CROWN_DIRECTORY = dir } }
  end

  local function traced(options)
    one = start "one"
    eventually(function() return #one:pids "child" == 1 end, 20)
    local pid = one:pids("child")[1]
    assert.is_true(seize(pid, options))
    return pid
  end

  it("holds up nobody when it is dead", function()
    local pid = traced(0)
    two = start "two"
    two:follows()
    one:signal "TERM"
    eventually(function() return #two:pids "child" == 1 end, 20)
    one:wait(20)
    ffi.C.waitpid(pid, nil, 0)
  end)

  it("is told of with the debugger's process id while that stops it on its way out", function()
    local pid = traced(OPTION_TRACE_EXIT)
    one:signal "TERM"
    local words = ("process %d, which traces it as a debugger does, holds it"):format(core.pid)
    local fine = pcall(eventually, function() return one:output():find(words, 1, true) end, 20)
    ffi.C.waitpid(pid, nil, 0)
    ffi.C.ptrace(CONT, pid, nil, nil)
    ffi.C.waitpid(pid, nil, 0)
    assert.is_true(fine, one:output())
    one:wait(20)
  end)
end)
