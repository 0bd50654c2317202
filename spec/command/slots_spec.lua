-- Several leaders of one election, from outside: real candidates, whose children write down when they run.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Election = require "support.ordered_election"
local Etcd = require "support.etcd"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local SOON = Election.SOON

describe("an election with slots", function()
  local server, dir, election, name

  setup(function() server, dir = Redis.start(), tempdir() end)
  teardown(function() server:destroy() end)

  before_each(function()
    election = Election.new(server.url .. "?ttl=3&trust_empty=true&amnesia_wait=0", dir)
    name = election.name
  end)
  after_each(function() election:destroy() end)

  local function start(node, slots)
    return election:start(node, "run", "--oracle", election.url, "--log-level", "info", "--slots", slots or "2", name, "sleep", "600")
  end

  -- By the slot the node that leads it, as the store has it.
  local function leaders()
    local found = {}
    for _, one in ipairs(crown.json.decode(election:command(0, "info", "--json")).elections) do
      local slot = one.name:match("^" .. name:gsub("%-", "%%-") .. "%.(%d)$")
      if slot then found[tonumber(slot)] = one.node end
    end
    return found
  end

  local function settled(some, count)
    eventually(function() return election:count(unpack(some)) == count end, SOON)
    for _, one in ipairs(some) do assert.is_true(#one:pids "child" <= 1) end
  end

  it("has as many leaders as slots, each node one at most, and a free slot is taken", function()
    local some = { start "one", start "two", start "three" }
    settled(some, 2)
    local before = leaders()
    assert.is_true(before[1] ~= nil and before[2] ~= nil and before[1] ~= before[2])
    for _, one in ipairs(some) do
      if one.node == before[1] then one:signal "TERM" end
    end
    eventually(function()
      local now = leaders()
      return now[1] and now[1] ~= before[1] and now[2] == before[2]
    end, SOON)
    settled(some, 2)
  end)

  it("leaves slots free where there are fewer nodes, and tells the child which one it has", function()
    local app = write_file(tempdir() .. "/app.lua", ([[
      local crown = require "crown"
      crown.elect { name = %q, slots = 3, oracle = %q,
        child = { "sh", "-c", "echo slot=$CROWN_SLOT of=$CROWN_ELECTION epoch=$CROWN_EPOCH >> %s/said; exec sleep 600" } }
    ]]):format(name, election.url, dir))
    local one = election:start("one", app)
    settled({ one }, 1)
    local slot, of
    eventually(function()
      slot, of = (read_file(dir .. "/said") or ""):match "^slot=(%d) of=(%S+) epoch=%d+\n$"
      return slot
    end, SOON)
    assert.equal(("%s.%s"):format(name, slot), of)
    assert.same({ [tonumber(slot)] = "one" }, leaders())
    local two = election:start("two", app)
    settled({ one, two }, 2)
    election:command(0, "evict", "--force", of)
    eventually(function() -- in that slot or another one: there are more than nodes
      local nodes, count = {}, 0
      for _, node in pairs(leaders()) do nodes[node], count = true, count + 1 end
      return nodes.one and nodes.two and count == 2
    end, SOON)
    settled({ one, two }, 2)
  end)

  it("is named slot by slot: a verb that gets its name says so", function()
    local one = start "one"
    settled({ one }, 1)
    for _, words in ipairs { { "pause", name }, { "evict", "--force", name }, { "handover", name, "--to", "one" } } do
      assert.matches("it has slots, so name one of them: " .. name:gsub("%-", "%%-") .. "%.%d", election:command(1, unpack(words)))
    end
    for _, verb in ipairs { "history", "abdicate" } do
      assert.matches("it has slots, so name one of them: " .. name:gsub("%-", "%%-") .. "%.%d", election:command(1, verb, name))
    end
    local slot = next(leaders())
    election:command(0, "pause", ("%s.%d"):format(name, slot))
    election:says(one, ("'%s%%.%d' may not be led here: paused"):format(name:gsub("%-", "%%-"), slot))
    settled({ one }, 1) -- another one
  end)

  it("is taken over when a leader's host dies", function()
    local some = { start "one", start "two", start "three" }
    settled(some, 2)
    local before = leaders()
    for _, one in ipairs(some) do
      if one.node == before[2] then one:destroy() end
    end
    eventually(function()
      local now = leaders()
      return now[2] and now[2] ~= before[2] and now[1] == before[1]
    end, SOON)
  end)

  it("keeps no place in a queue for a slot that it would not lead", function()
    local etcd = Etcd.start()
    finally(function() etcd:destroy() end)
    election.url = etcd.url .. "?ttl=3&trust_empty=true"
    local leaders_of_old = { start "one", start "two" }
    settled(leaders_of_old, 2)
    local next_ones = { start "three", start "four" }
    for _, one in ipairs(next_ones) do
      eventually(function() return one:output():find "following '[%w-]+%.1'" and one:output():find "following '[%w-]+%.2'" end, SOON)
    end
    for _, one in ipairs(leaders_of_old) do
      one:signal "TERM"
      one:wait(SOON)
    end
    settled(next_ones, 2)
    local nodes = leaders()
    assert.is_true(nodes[1] ~= nil and nodes[2] ~= nil and nodes[1] ~= nodes[2])
  end)

  it("ends with its command, in all slots", function()
    local one = election:start("one", "run", "--oracle", election.url, "--slots", "3", name, "sh", "-c", "exit 7")
    assert.equal(7, one:wait(SOON))
    assert.same({}, leaders())
  end)

  it("refuses what has no place beside it", function()
    for words, options in pairs {
      ["%-%-slots cannot go with %-%-once"] = { "--once" }, ["%-%-slots cannot go with %-%-wait"] = { "--wait", "3" },
      ["%-%-slots cannot go with %-%-follower"] = { "--follower", "true" }, ["%-%-slots cannot go with %-%-signal"] = { "--signal" },
      ["%-%-slots"] = { "--slots", "0" },
    } do
      local line = { "run", "--slots", "2" }
      for _, word in ipairs(options) do line[#line + 1] = word end
      line[#line + 1], line[#line + 2] = name, "true"
      local result = run(line)
      assert.equal(2, result.code)
      assert.matches(words, result.stderr)
    end
    local long = run { "run", "--slots", "64", ("x"):rep(126), "true" }
    assert.same({ 2, 1 }, { long.code, select(2, long.stderr:gsub("at most 128 characters", "")) })
  end)
end)
