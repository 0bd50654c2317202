-- crown.exec: what comes back, and that nothing of a command runs on when its time is over, its task is cancelled, or its
-- term ends.
local crown = require "crown"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"
local ticks = require "support.ticks"

local eventually = testing.eventually
local ticker = os.getenv "CROWN_TICKER" or "build/ticker"
local MOST = 1048576 -- bytes of each stream that are kept

describe("a command", function()
  it("gives its code and what it wrote, each stream by itself", function()
    assert.same({ code = 3, stdout = "out\n", stderr = "problem\n" },
      crown.exec { "sh", "-c", "echo out; echo problem >&2; exit 3" })
    assert.same({ code = 0, stdout = "", stderr = "" }, crown.exec { "true" })
  end)

  it("that a signal ends gives the signal, and the code that a shell gives", function()
    assert.same({ code = 143, signal = 15, stdout = "", stderr = "" }, crown.exec { "sh", "-c", "kill $$" })
  end)

  it("is given standard input, however much; none when nothing is said", function()
    local text = ("0123456789"):rep(30000)
    assert.equal(text, crown.exec({ "cat" }, { stdin = text }).stdout)
    assert.equal("", crown.exec({ "cat" }, { stdin = "" }).stdout)
    assert.equal("", crown.exec({ "cat" }).stdout)
  end)

  it("is given its directory and its environment, but no oracle's URL", function()
    local dir = tempdir()
    assert.equal(dir .. "\nmine\n", crown.exec({ "sh", "-c", "pwd; echo $OURS" }, { cwd = dir, env = { OURS = "mine" } }).stdout)
    assert.is_nil(crown.exec({ "env" }).stdout:find "CROWN_ORACLE=")
  end)

  it("is given a variable once, with the value that was given last", function()
    local shown = crown.exec({ "env" }, { env = { PATH = os.getenv "PATH" .. ":/last" } }).stdout
    local values = {}
    for value in ("\n" .. shown):gmatch "\nPATH=([^\n]*)" do values[#values + 1] = value end
    assert.same({ os.getenv "PATH" .. ":/last" }, values)
  end)

  it("that is not there is no result but a message", function()
    local result, problem = crown.exec { "/no/such/command" }
    assert.is_nil(result)
    assert.matches("/no/such/command: No such file or directory", problem)
    result, problem = crown.exec({ "true" }, { cwd = "/no/such/place" })
    assert.is_nil(result)
    assert.matches("No such file or directory", problem)
  end)

  it("is a list of strings", function()
    for _, wrong in ipairs { {}, { "a", {} }, { true } } do
      assert.has_error(function() crown.exec(wrong) end)
    end
    assert.equal("5\n", crown.exec({ "echo", 5 }).stdout)
    assert.error_matches(function() crown.exec { "sh", "-c", "true\0; false" } end, "without NUL bytes")
    for _, options in ipairs { { cwd = "/tmp\0x" }, { env = { A = "b\0c" } }, { env = { A = "b", ["B\0C"] = "d" } } } do
      assert.error_matches(function() crown.exec({ "true" }, options) end, next(options) .. " has a NUL byte")
    end
    assert.has_error(function() crown.exec "true" end)
  end)

  describe("that writes much", function()
    local function zeros(bytes, more)
      return crown.exec({ "sh", "-c", ("head -c %d /dev/zero%s; echo ended >&2"):format(bytes, more or "") }, { timeout = 20 })
    end

    it("keeps a megabyte to the last byte", function()
      local result = zeros(MOST)
      assert.same({ MOST, "ended\n" }, { #result.stdout, result.stderr })
      assert.is_nil(result.truncated)
    end)

    it("goes on to its end when there is more, which is cut off and said to be", function()
      for _, more in ipairs { 1, 2000000 } do
        local result = zeros(MOST + more)
        assert.same({ MOST, "ended\n", 0 }, { #result.stdout, result.stderr, result.code })
        assert.is_true(result.truncated)
      end
    end)

    it("has either stream cut off without the other", function()
      local result = zeros(MOST + 1, " >&2")
      assert.same({ "", MOST, true }, { result.stdout, #result.stderr, result.truncated })
    end)
  end)
end)

describe("nothing of a command runs on", function()
  local path

  -- Not even until Lua has collected what nobody waits for any more.
  before_each(function()
    path = tempdir() .. "/ticks"
    collectgarbage "stop"
  end)
  after_each(function()
    collectgarbage "restart"
    ticks.finish(path)
  end)

  local function command(mode, options)
    options = options or {}
    options.env = { CROWN_ROLE = options.role or "leader", CROWN_EPOCH = "1" }
    return crown.exec({ ticker, path, mode }, options)
  end

  local CUT_OFF = { nil, "timeout", "timeout" }

  for _, mode in ipairs { "plain", "daemon", "stubborn", "fork" } do
    it("when its time is over: " .. mode, function()
      local at = crown.now()
      assert.same(CUT_OFF, { command(mode, { timeout = 0.3 }) })
      assert.is_true(crown.now() - at >= 0.3)
      eventually(function() return #ticks.alive(path) == 0 end)
    end)

    -- The keeper and the task go by one instant. Here the keeper is first, since the task's clock stands still.
    it("when its time is over by its keeper's clock alone: " .. mode, function()
      local clock = testing.fake_clock()
      local answer = { command(mode, { timeout = 0.3 }) }
      clock:restore()
      assert.same(CUT_OFF, answer)
      assert.equal(0, #ticks.alive(path))
    end)

    it("when its task is cancelled: " .. mode, function()
      local answer
      local task = crown.spawn(function() answer = { command(mode, { timeout = 60 }) } end)
      ticks.settle(path)
      task:cancel()
      eventually(function() return answer end)
      assert.same({ nil, "cancelled", "cancelled" }, answer)
      eventually(function() return #ticks.alive(path) == 0 end)
    end)
  end

  it("when it has left a daemon behind", function()
    local result = crown.exec({ "sh", "-c", ("%s %s daemon & until [ -s %s ]; do sleep 0.01; done"):format(ticker, path, path) },
      { env = { CROWN_ROLE = "leader", CROWN_EPOCH = "1" } })
    assert.equal(0, result.code)
    assert.is_true(#ticks.read(path) > 0)
    assert.equal(0, #ticks.alive(path))
  end)

  describe("when its term ends", function()
    local election, lost, serial = nil, nil, 0

    local function elect(ttl, won)
      serial, lost = serial + 1, nil
      election = crown.elect { name = "exec-spec-" .. serial, oracle = { "memory", path = "exec-spec-" .. serial, ttl = ttl },
        handlers = { won = won, lost = function(reason) lost = { reason, #ticks.alive(path) } end } }
      return election
    end

    after_each(function()
      election:stop()
      eventually(function() return election.handle:finished() end)
    end)

    for _, mode in ipairs { "plain", "daemon", "stubborn", "fork" } do
      it("and it is gone before the others are told: " .. mode, function()
        local first = true
        elect(30, function()
          if not first then return end
          first = false
          crown.spawn(function() command(mode, { timeout = 60, role = "second" }) end)
          command(mode, { timeout = 60 })
        end)
        ticks.settle(path)
        election:abdicate()
        eventually(function() return lost end)
        assert.same({ "abdicated", 0 }, lost)
      end)
    end

    it("but not before: its deadline moves with each refresh", function()
      local result
      elect(4, function() result = result or crown.exec({ "sleep", "4.5" }, { timeout = 30 }) end)
      eventually(function() return result end, 10)
      assert.same({ 0, nil }, { result.code, lost })
    end)

    it("and its own time-out counts within the term, too", function()
      local answer
      elect(30, function() answer = answer or { command("stubborn", { timeout = 0.2 }) } end)
      eventually(function() return answer end)
      assert.same(CUT_OFF, answer)
      eventually(function() return #ticks.alive(path) == 0 end)
      assert.is_true(election:is_leader())
    end)
  end)
end)
