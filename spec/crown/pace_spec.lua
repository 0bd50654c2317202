-- The options splay and backoff: how soon a candidate asks first, and how often while it follows; on every oracle.
local Pace = require "crown.election.pace"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function pace(options, given)
  return Pace.new("elect 'x'", options, given)
end

describe("the pace of a candidate", function()
  it("names the policies of Choria", function()
    local slow = pace { backoff = "five_sec" }
    assert.same({ 0.5, 0.7, 0.9 }, { slow:again(), slow:again(), slow:again() })
    for _ = 1, 20 do slow:again() end
    assert.equal(5, slow:again())
    slow:won()
    assert.equal(0.5, slow:again())
    assert.equal(0.5, pace { backoff = "twenty_sec" }:again())
  end)

  it("takes a list, and never goes past the end of the lease", function()
    local listed = pace { backoff = { 0.2, 0.4 } }
    assert.same({ 0.2, 0.1, 0.4 }, { listed:again(9), listed:again(0.1), listed:again() })
    assert.is_nil(pace {})
  end)

  it("says what its longest pause is: a leader that was evicted stands back longer than the others wait", function()
    assert.equal(0.9, pace({ backoff = { 0.2, 0.9, 0.4 } }):longest())
    assert.equal(20, pace({ backoff = "twenty_sec" }):longest())
    assert.equal(0, pace({ splay = 1 }):longest())
  end)

  it("may stand among the oracle's options, and the election's count first", function()
    assert.equal(2, pace({}, { backoff = { 2 } }):again())
    assert.equal(1, pace({ backoff = { 1 } }, { backoff = { 2 } }):again())
  end)

  for _, oracle in ipairs { "memory:", "file:" .. tempdir(), "postgres://h/x?", "postgres+advisory://h/x?", "redis://h?", "etcd://h?",
    "nats://h/x?", "http://h/x?", "oban+postgres://h/x?" } do
    it("is taken on every oracle: " .. oracle, function()
      local text = oracle:find "?$" and oracle .. "backoff=five_sec&splay=2" or oracle .. "?backoff=five_sec&splay=2"
      local result = run { "check", "--oracle", text, "run", "x", "true" }
      assert.equal(0, result.code, result.stderr)
      result = run { "check", "--oracle", text:gsub("five_sec", "six_sec"), "run", "x", "true" }
      assert.equal(2, result.code)
      assert.matches("backoff must be five_sec, twenty_sec, or a list of seconds", result.stderr)
    end)
  end

  -- A server that has a key already, or a subscription that begins, has the oracle told of what it may have missed.
  for _, way in ipairs { "splay", "claim_delay" } do
    it("puts the first claim off on an oracle that hears a message meanwhile, and calls it then: " .. way, function()
      local app = write_file(tempdir() .. "/app.lua", ([[
        local crown = require "crown"
        math.random = function() return 0.999 end
        local begun = crown.now()
        local function claim() print(crown.now() - begun) os.exit(0) end
        local oracle = { refresh = claim, claim = claim, handle_info = claim, init = function(opts)
          crown.spawn(function() opts.send "missed" crown.sleep(0.1) opts.send "missed" end)
          return {}
        end }
        crown.elect { name = "x", oracle = oracle, %s = 1, call_timeout = 0.3 }]]):format(way))
      local result = run { app }
      assert.equal(0, result.code, result.stderr)
      assert.is_true(tonumber(result.stdout) >= 0.999, "it claimed after " .. result.stdout)
    end)
  end

  it("holds for a follower: it asks as often as it was told", function()
    local path = tempdir() .. "/asked"
    local app = write_file(tempdir() .. "/app.lua", ([[
      local crown = require "crown"
      local asked, count = crown.now(), 0
      local oracle = { init = function() return {} end, refresh = function() return false end, claim = function()
        count = count + 1
        if count == 4 then
          local file = assert(io.open("%s", "w"))
          file:write(crown.now() - asked)
          file:close()
          os.exit(0)
        end
        return false, { node = "other", expires_in = 60 }
      end }
      crown.elect { name = "x", oracle = oracle, backoff = { 0.2, 0.3 }, splay = 0.1 }]]):format(path))
    assert.equal(0, run({ app }).code)
    local took = tonumber(assert(io.open(path)):read "*a")
    assert.is_true(took >= 0.8, "three pauses took " .. took)
  end)
end)
