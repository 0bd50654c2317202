--- Which runtime counts as dead: one that is busy does not; one that hangs does, and the log says what held it.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require "crown.testing.eventually"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

-- An election with a child that ticks, and beside it whatever is tried.
local APP = [[
local crown = require "crown"
local dir, ticker, what, quiet = unpack(arg)
local function say(word) io.open(dir .. "/" .. word, "w"):close() end
local function compute(seconds)
  local until_clock = os.clock() + seconds
  while os.clock() < until_clock do end
end
local ways = {}
function ways.handler() crown.elect { name = "busy", oracle = "file:" .. dir .. "/b",
  handlers = { won = function() say "began" compute(3) say "done" end } } end
function ways.task()
  crown.spawn(function() say "began" while true do compute(0.01) end end)
  crown.spawn(function() for _ = 1, 60 do crown.sleep(0.01) end say "done" end)
end
function ways.chain() -- in one turn of the loop
  local function link(left)
    compute(0.002)
    if left > 0 then crown.spawn(link, left - 1) else say "done" end
  end
  crown.spawn(link, 1500)
end
function ways.awakened() crown.watch_file(quiet .. "/wake", function()
  local text = ("a"):rep(40)
  text:find(("a?"):rep(40) .. text)
end) end
function ways.hang() crown.spawn(function()
  while not io.open(dir .. "/go") do crown.sleep(0.01) end
  if io.open(dir .. "/hung") then return end
  say "hung"
  local text = ("a"):rep(40)
  text:find(("a?"):rep(40) .. text)
end) end
crown.elect { name = "spec", oracle = "file:" .. dir .. "/a", child = { ticker, dir .. "/ticks", "plain" }, stop_timeout = 0.3 }
ways[what]()
]]

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

describe("a runtime", function()
  local one, dir, quiet -- a directory in which nothing happens

  before_each(function() dir, quiet = tempdir(), tempdir() end)
  after_each(function() if one then one:destroy() end end)

  local function start(what, env)
    write(dir .. "/app.lua", APP)
    one = Candidate.start { args = { "--heartbeat", "1", dir .. "/app.lua", dir, ticker, what, quiet }, node = "one",
      env = env, log = dir .. "/log" }
    ticks.await(dir .. "/ticks", 0, 10)
    return one:pids("runtime")[1]
  end

  local function assert_undisturbed(runtime)
    eventually(function() return exists(dir .. "/done") end, 60)
    assert.same({ runtime }, one:pids "runtime")
    assert.not_matches("silent", one:output())
    local lives = ticks.lives(dir .. "/ticks")
    assert.equal(1, #lives)
    one:signal "TERM"
    assert.equal(0, one:wait(10))
  end

  it("whose handler computes for three seconds is not killed, nor is another election's child", function()
    assert_undisturbed(start "handler")
  end)

  it("with a task that works for ever is not killed while others go on, and ends when it is told to", function()
    assert_undisturbed(start "task")
  end)

  it("whose tasks start one another for three seconds is not killed", function()
    assert_undisturbed(start "chain")
  end)

  it("that hangs in C is replaced, and both the log and an event say what held it", function()
    local first = start "hang"
    write(dir .. "/go", "")
    eventually(function() return one:output():find "runtime%.restarted" end, 30)
    assert.not_same({ first }, one:pids "runtime")
    assert.matches("the runtime was silent for 1 s: killed it %(find .*app%.lua:%d+", one:output())
    assert.matches("runtime%.restarted [^\n]*held=\"find .*app%.lua:%d+", one:output())
  end)

  -- Its supervisor sleeps until it is told of something, or its time is up.
  local function await_idle()
    local path, last = ("/proc/%d/status"):format(one.pid), nil
    eventually(function()
      local switches = read_file(path):match "\nvoluntary_ctxt_switches:%s*(%d+)"
      local same = switches == last
      last = switches
      crown.sleep(1) -- four beats of a busy one
      return same
    end, 60)
  end

  it("that is idle beats no more; one that hangs when something wakes it is replaced as ever", function()
    local first = start "awakened"
    await_idle()
    write(quiet .. "/wake", "")
    eventually(function() return one:output():find "runtime%.restarted" end, 20) -- it said that it would sleep for longer
    assert.not_same({ first }, one:pids "runtime")
    assert.matches("runtime%.restarted [^\n]*held=\"find .*app%.lua:%d+", one:output())
  end)

  it("that is stopped while it is idle is replaced as ever", function()
    local first = start "awakened"
    await_idle()
    one:hurt("STOP", "runtime")
    eventually(function() return one:output():find "runtime%.restarted" end, 20)
    assert.not_same({ first }, one:pids "runtime")
  end)

  -- The supervisor believes no more (c/process/watchdog_test.c), and would have to ask it.
  it("that is idle sleeps for half a minute at the most, however seldom a service manager wants to hear of it", function()
    local runtime = start("awakened", { WATCHDOG_USEC = "240000000" })
    await_idle()
    local left = 0
    for fields in io.popen(("cat /proc/%d/fdinfo/*"):format(runtime)):read("*a"):gmatch "clockid: 7\n(.-it_value:[^\n]*)" do
      left = math.max(left, tonumber(fields:match "it_value: %((%d+),")) -- on CLOCK_BOOTTIME
    end
    assert.is_true(left > 0 and left <= 30, left .. " s")
  end)
end)
