-- Every example is run as a user runs it.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"

describe("the example", function()
  local started = {}

  local function start(options)
    options.log = options.log or tempdir() .. "/log"
    options.env = options.env or { CROWN_ORACLE = "file:" .. tempdir() }
    local one = Candidate.start(options)
    started[#started + 1] = one
    return one
  end

  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
    started = {}
  end)

  local function says(one, pattern)
    eventually(function() return one:output():find(pattern) end, 10)
  end

  it("hello leads, explains itself, and ends by itself when told how long to run", function()
    local result
    for _, seconds in ipairs { "0.3", "3", "30" } do -- a busy host may be too slow for a short time
      result = run({ "lua/examples/hello.lua", seconds },
        { env = { CROWN_ORACLE = "file:" .. tempdir(), CROWN_NODE = "n" }, timeout = 60 })
      assert.equal(0, result.code, result.stderr)
      if result.stdout ~= "" then break end
    end
    assert.matches("n leads 'hello' now %(epoch 1%)", result.stdout)
    assert.matches("does not lead any more: shutdown", result.stdout)
  end)

  it("app runs its child as the leader", function()
    local one = start { args = { "lua/examples/app.lua" }, node = "one" }
    says(one, "working as one in epoch 1")
    says(one, "leading, epoch 1")
    one:signal "TERM"
    assert.equal(0, one:wait(10))
    assert.matches("lost: shutdown", one:output())
  end)

  it("cron works on the leader only", function()
    local env = { CROWN_ORACLE = "file:" .. tempdir() }
    local one = start { args = { "lua/examples/cron.lua", "0.05" }, node = "one", env = env }
    says(one, "one runs the job, epoch 1")
    local two = start { args = { "lua/examples/cron.lua", "0.05" }, node = "two", env = env }
    eventually(function() return select(2, one:output():gsub("runs the job", "")) > 4 end, 10)
    assert.is_nil(two:output():find "runs the job")
    one:signal "TERM"
    says(two, "two runs the job, epoch 2")
  end)

  it("singleton runs a leader and a stand-in, and changes over", function()
    local env = { CROWN_ORACLE = "file:" .. tempdir() }
    local one = start { args = { "lua/examples/singleton.lua" }, node = "one", env = env }
    says(one, "serving as leader, epoch 1")
    local two = start { args = { "lua/examples/singleton.lua" }, node = "two", env = env }
    says(two, "standing by as follower")
    one:signal "TERM"
    says(two, "serving as leader, epoch 2")
  end)

  describe("custom_oracle", function()
    local server, port

    before_each(function()
      server = start { args = { "lua/examples/custom_oracle/lease_server.lua" }, node = "server" }
      port = eventually(function() return tonumber(server:output():match "port (%d+)") end, 10)
    end)

    it("leads over its lease server, and hands over", function()
      local args = { "lua/examples/custom_oracle/app.lua", port }
      local one = start { args = args, node = "one" }
      says(one, "one leads, epoch 1")
      local two = start { args = args, node = "two" }
      crown.sleep(0.05)
      one:signal "TERM"
      says(two, "two leads, epoch 2")
      assert.equal(0, one:wait(10))
    end)
  end)
end)

describe("the example's oracle", function()
  local server = Candidate.start { args = { "lua/examples/custom_oracle/lease_server.lua" }, node = "server",
    log = tempdir() .. "/log" }
  local port = eventually(function() return tonumber(server:output():match "port (%d+)") end, 10)

  teardown(function() server:destroy() end)

  package.path = package.path .. ";lua/examples/custom_oracle/?.lua"
  testing.conformance("the lease oracle of the example", function()
    return { module = require "tcp_lease", options = { port = port, ttl = 0.5 }, expires = true }
  end)
end)
