-- Limits of the user (ulimit) that are too low: the program says which one, or goes on; it never dies of a signal.
local crown = require "crown"
local program = require "support.program"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local KIB = 1024

-- `crown-lua run` under a limit of prlimit(1).
local function run_with(limit, command, dir)
  return assert(crown.exec({ "/usr/bin/prlimit", limit, program, "run", "--once", "limited", "--", "sh", "-c", command },
    { timeout = 60, env = { CROWN_DIRECTORY = dir or tempdir() } }))
end

local function says(result, text)
  assert.is_truthy(result.stderr:find(text, 1, true), ("code %s: %s"):format(tostring(result.code), result.stderr))
end

local function refused(limit, text)
  local result = run_with(limit, "echo it ran")
  assert.same({ 1, "" }, { result.code, result.stdout }, result.stderr)
  says(result, text)
  assert.equal(1, select(2, result.stderr:gsub("\n", "")), result.stderr)
end

describe("a limit that is too low", function()
  it("of stacks is told, also to a Lua child", function()
    local text = "stacks of %d KiB are too small: allow 256 KiB or more (ulimit -s, LimitSTACK=)"
    for _, kib in ipairs { 64, 96, 255 } do refused(("--stack=%d"):format(kib * KIB), text:format(kib)) end
    local result = assert(crown.exec({ "/usr/bin/prlimit", "--stack=" .. 64 * KIB, program, "--lua-child", "string" }, { timeout = 60 }))
    assert.equal(1, result.code)
    says(result, text:format(64))
  end)

  it("of stacks is enough for what stores may answer", function()
    local dir = tempdir()
    local app = write_file(dir .. "/app.lua", [[
local core = require "crown.core"
local nested = core.json.decode(("["):rep(1000) .. ("]"):rep(1000))
print(#core.json.encode(nested))]])
    local result = assert(crown.exec({ "/usr/bin/prlimit", "--stack=" .. 256 * KIB, program, app },
      { timeout = 60, env = { CROWN_DIRECTORY = dir } }))
    assert.same({ 0, "2000\n" }, { result.code, result.stdout }, result.stderr)
  end)

  it("of open files is told", function()
    says(run_with("--nofile=11", "echo it ran"), "Too many open files (ulimit -n, LimitNOFILE=)")
  end)

  it("of a file's size is told", function()
    refused("--fsize=" .. 16 * KIB, "File too large (ulimit -f, LimitFSIZE=)")
  end)

  it("of a file's size is met as a full disk is", function()
    local dir, entry = tempdir(), '{"event":"leadership.changed","time":1,"name":"older","node":"x","leader":"x","epoch":1}\n'
    local size = 128 * KIB
    write_file(dir .. "/history", (" "):rep(size - 20 - #entry) .. entry) -- there is room for twenty bytes
    local result = run_with("--fsize=" .. size, "echo it ran; grep SigIgn /proc/self/status", dir)
    assert.equal(0, result.code, result.stderr)
    says(result, "File too large: lines are missing in it until there is room")
    local ignored = result.stdout:match "^it ran\nSigIgn:%s*(%x+)\n$"
    assert.equal("0000000000000000", ignored, result.stdout) -- the child has the defaults
  end)

  it("of pending signals is told: the timers that end a leader in time need them", function()
    refused("--sigpending=0", "make a dead-man timer: no more pending signals are allowed (ulimit -i, LimitSIGPENDING=)")
  end)
end)
