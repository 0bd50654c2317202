-- The links of a registry's two members, both ways through proxies that play tricks from a step on: nobody loses the lead by it,
-- which does not hang on links, and when all is well the members hear of each other again.
local Candidate = require "support.candidate"
local cells = require "matrix.cells"
local crown = require "crown"
local judge = require "support.judge"
local port = require "support.port"
local Postgres = require "support.postgres"
local Stillness = require "support.stillness"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local Way = require "matrix.way"
local write_file = require "support.write_file"

local PLAYED = 5 -- seconds
local STEPS = { greeting = {}, hello = { says = '"version"' }, proof = { says = '"proof"' }, talk = { says = '"kind"' } }
local NAMES = { "greeting", "hello", "proof", "talk" }
local HUGE = { huge = "\127\255\255\255{" }
local TICKER = os.getenv "CROWN_TICKER" or "build/ticker"

local function chosen()
  local list = {}
  for i, one in ipairs(cells.chosen(NAMES, 1, 0)) do
    list[i] = { name = ("cell%02d"):format(i), step = one[1], trick = one[2], ways = {} }
  end
  return list
end

describe("the way between two members of a registry that, from a step on,", function()
  local played = chosen()
  local server, dir, victim, rival, output, still

  local function start(node)
    local registries = {}
    for i, cell in ipairs(played) do
      local way = cell.ways[node]
      registries[i] = { name = cell.name, url = server.url .. "?ttl=20&refresh=5&timeout=4", listen = "127.0.0.1:" .. way.target,
        advertise = "127.0.0.1:" .. way.port, secret = "a secret of the specs", ticks = cell.ticks }
    end
    local path = write_file(("%s/%s.json"):format(dir, node),
      crown.json.encode { ticker = TICKER, leads = node == "victim", registries = registries })
    return Candidate.start { args = { "spec/matrix/registry_app.lua", path }, node = node, log = ("%s/%s.log"):format(dir, node),
      env = { CROWN_LOOP_HELD = ("%s/%s.held"):format(dir, node) } }
  end

  local function await(words, is_so) cells.await(played, victim, 30, words, is_so) end

  setup(function()
    still = Stillness.start()
    server, dir = Postgres.start { config = "max_connections = 500" }, tempdir() -- each registry has some of its own
    for _, cell in ipairs(played) do
      cell.ticks = ("%s/ticks-%s"):format(dir, cell.name)
      for _, node in ipairs { "victim", "rival" } do cell.ways[node] = Way.open(port.free(), cell, HUGE, STEPS) end
    end
    victim = start "victim"
    await("the name was never registered", function(cell) return victim:output():find("REGISTERED " .. cell.name, 1, true) end)
    rival = start "rival"
    await("the step was never reached", function(cell) return cell.struck end)
    crown.sleep(PLAYED)
    cells.mend(played)
    await("the other member knows no names when all is well again",
      function(cell) return rival:output():find("FOUND " .. cell.name, 1, true) end)
    output = victim:output()
    rival:destroy()
    victim:destroy()
  end)

  teardown(function()
    cells.close(played)
    still:destroy()
    server:destroy()
  end)

  for _, cell in ipairs(played) do
    it(("%s: %s"):format(cell.trick, cell.step), function()
      ticks.finish(cell.ticks)
      assert.equal("victim", ticks.lives(cell.ticks)[1].node)
      assert.equal(1, #ticks.lives(cell.ticks), output)
      assert.is_nil(cell.problem, cell.problem and cell.problem .. "\n" .. output)
    end)
  end

  it("costs no other election anything", function() judge.program(output, dir .. "/victim.held", still) end)
end)
