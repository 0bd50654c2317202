-- Shares of one work that are spread over the nodes that live: real processes on a Redis server.
local crown = require "crown"
local Election = require "support.ordered_election"
local eventually = require("crown.testing").eventually
local Redis = require "support.redis"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"

local COUNT = 6
-- Each share's command has a file while it works: it is never there twice.
local WORKER = [[echo "works at $CROWN_SHARE"; mkdir %s/$CROWN_SHARE || { echo TWICE; exit; }
  trap 'rmdir %s/$CROWN_SHARE; exit' INT TERM; while :; do sleep 0.05; done]]

describe("shares", function()
  local server, election, dir
  setup(function() server = Redis.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    election, dir = Election.new(server.url .. "?ttl=4&trust_empty=true&amnesia_wait=0", tempdir()), tempdir()
  end)
  after_each(function() election:destroy() end)

  local function start(node)
    return election:start(node, "run", "--oracle", election.url, "--restart", "permanent", "--log-level", "info", "--shares", COUNT,
      election.name, "sh", "-c", WORKER:format(dir, dir))
  end

  -- How many of them each node leads.
  local function spread()
    local counts = {}
    for _, one in ipairs(crown.json.decode(election:command(0, "info", "--json")).elections) do
      if one.node then counts[one.node] = (counts[one.node] or 0) + 1 end
    end
    return counts
  end
  local function becomes(wanted)
    assert(pcall(eventually, function()
      local counts = spread()
      for node in pairs(counts) do if counts[node] ~= wanted[node] then return false end end
      for node in pairs(wanted) do if counts[node] ~= wanted[node] then return false end end
      return true
    end, Election.SOON), crown.json.encode(spread()))
  end

  it("are led by one node each, and evenly by those that live, also when some come and go", function()
    local one = start "one"
    becomes { one = COUNT }
    local two = start "two"
    becomes { one = 3, two = 3 }
    local three = start "three"
    becomes { one = 2, two = 2, three = 2 }
    election:says(one, "leadership.lost [^\n]*reason=handover error=\"handed over to [^\n]*: it has fewer shares\"")
    two:signal "TERM"
    assert.equal(0, two:wait(Election.SOON))
    becomes { one = 3, three = 3 }
    eventually(function() return election:count(one, three) >= COUNT end, Election.SOON)
    for _, each in ipairs { one, two, three } do assert.is_nil(each:output():find("TWICE", 1, true)) end
    for number = 1, COUNT do assert.is_truthy(one:output():find("works at " .. number, 1, true)) end
    assert.is_nil(read_file(dir .. "/7"))
  end)

  it("are taken by a node that comes while one is paused", function()
    start "one"
    becomes { one = COUNT }
    election:command(0, "pause", election.name .. ".1")
    start "two"
    becomes { one = 3, two = 2 }
  end)

  it("are left to the others by a node where their command fails", function()
    local one = start "one"
    becomes { one = COUNT }
    local two = election:start("two", "run", "--restart", "temporary", "--oracle", election.url, "--shares", COUNT, election.name,
      "sh", "-c", "sleep 0.2; exit 1")
    election:says(two, "asks for no more shares, since the command of one has failed here[^\n]* seconds=%d+")
    becomes { one = COUNT }
    local function asked() return select(2, one:output():gsub("reason=handover", "")) end
    local before = asked()
    crown.sleep(3) -- in which it would ask for several
    assert.equal(before, asked())
    assert.is_nil(one:output():find("TWICE", 1, true))
  end)

  it("are an app's by crown.shares, and refused where they have no effect", function()
    local function check(code, oracle, ...)
      local result = run { "check", "--oracle", oracle, "run", ... }
      assert.equal(code, result.code, result.stderr)
      return result.stdout .. result.stderr
    end
    assert.matches("run: 2 elections, nothing wrong", check(0, "redis://x", "--shares", "2", "x", "true"))
    assert.matches("with the oracle 'oban_peer' candidates know nothing", check(2, "oban+postgres://x/y", "--shares", "2", "x", "true"))
    assert.matches("preference has no place beside shares", check(2, "redis://x", "--shares", "2", "--prefer", "2", "x", "true"))
    assert.matches("both say how many elections there are", check(2, "redis://x", "--shares", "2", "--slots", "2", "x", "true"))
    local all = crown.shares { name = "shared", count = 3, oracle = "memory:" }
    finally(function() all:stop() end)
    eventually(function() return #all:held() == 3 end)
    assert.same({ 1, 2, 3 }, all:held())
    assert.equal("shared.2", all.elections[2].name)
    assert.is_false(pcall(crown.shares, { name = "other", count = 0 }))
    assert.is_false(pcall(crown.shares, "other"))
  end)
end)
