-- SIGQUIT: a program ends at once, without order. Its children's trees are killed, `lost` is not told, the lease runs out.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local program = require "support.program"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local write_file = require "support.write_file"

local TICKER = os.getenv "CROWN_TICKER" or "build/ticker"
local QUIT = 128 + 3
local TTL = 3

local APP = [[
local crown = require "crown"
crown.elect { name = "x", oracle = arg[1], child = { arg[2], arg[3], "stubborn" }, handlers = {
  won = function(term) print("WON " .. term.epoch) io.flush() end,
  lost = function(reason) print("LOST " .. reason) io.flush() end,
} }
]]

describe("SIGQUIT", function()
  local server, started, dir

  before_each(function() server, started, dir = Redis.start(), {}, tempdir() end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
    server:destroy()
  end)

  -- No core is to be left where the spec runs.
  local function start(node, ...)
    started[#started + 1] = Candidate.start { program = "/usr/bin/prlimit", args = { "--core=0", program, ... }, node = node,
      log = tempdir() .. "/log" }
    return started[#started]
  end

  local function ends_at_once(one, path)
    local first = ticks.await(path, 0, 20)
    local children = one:pids "child"
    assert.equal(1, #children)
    one:signal "QUIT"
    assert.equal(QUIT, one:wait(20))
    eventually(function() return crown.exec({ "kill", "-0", tostring(children[1]) }).code ~= 0 end, 20)
    return first
  end

  it("ends an app: its stubborn child is killed, lost is not called, and the lease runs out", function()
    local app, path = write_file(dir .. "/app.lua", APP), dir .. "/ticks"
    local oracle = ("%s&ttl=%d"):format(server.quick, TTL)
    local one = start("one", app, oracle, TICKER, path)
    local first = ends_at_once(one, path)
    assert.matches("WON 1", one:output())
    assert.is_nil(one:output():find "LOST")
    assert.is_nil(one:output():find "leadership.abdicated")
    local listed = crown.json.decode(run({ "info", "--json", "--oracle", server.url }).stdout).elections[1]
    assert.same({ "one", true }, { listed.node, listed.renewed_ago >= 0 }) -- nobody gave it back

    local two = start("two", app, oracle, TICKER, path)
    local second = ticks.succeed(path, first.epoch, 4 * TTL)
    assert.same({ "two", true }, { second.node, second.epoch > first.epoch })
    two:signal "TERM"
    assert.equal(0, two:wait(20))
    assert.matches("LOST shutdown", two:output())
  end)

  it("ends run, too", function()
    local path = dir .. "/ticks"
    local one = start("one", "run", "--oracle", ("%s&ttl=%d"):format(server.quick, TTL), "x", TICKER, path, "stubborn")
    ends_at_once(one, path)
  end)
end)
