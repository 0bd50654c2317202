-- The links of a registry's two members, both ways through proxies that play tricks from a step on: nobody loses the lead by it,
-- which does not hang on links, and when all is well the members hear of each other again.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local judge = require "matrix.judge"
local port = require "support.port"
local Postgres = require "support.postgres"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local tricks = require "matrix.tricks"
local Way = require "matrix.way"
local write_file = require "support.write_file"

local PLAYED = 5 -- seconds
local STEPS = { greeting = {}, hello = { says = '"version"' }, proof = { says = '"proof"' }, talk = { says = '"kind"' } }
local NAMES = { "greeting", "hello", "proof", "talk" }
local HUGE = { huge = "\127\255\255\255{" }
local TICKER = os.getenv "CROWN_TICKER" or "build/ticker"

local function chosen()
  local list, cells = {}, {}
  for trick in pairs(tricks) do list[#list + 1] = trick end
  table.sort(list)
  for i, trick in ipairs(list) do
    for k, step in ipairs(NAMES) do
      if os.getenv "MATRIX" == "all" or k == i % #NAMES + 1 then
        cells[#cells + 1] = { name = ("cell%02d"):format(#cells + 1), trick = trick, step = step, ways = {} }
      end
    end
  end
  return cells
end

describe("the way between two members of a registry that, from a step on,", function()
  local cells = chosen()
  local server, dir, victim, rival, output

  local function start(node)
    local registries = {}
    for i, cell in ipairs(cells) do
      local way = cell.ways[node]
      registries[i] = { name = cell.name, url = server.url .. "?ttl=8&refresh=2&timeout=2", listen = "127.0.0.1:" .. way.target,
        advertise = "127.0.0.1:" .. way.port, secret = "a secret of the specs", ticks = cell.ticks }
    end
    local path = write_file(("%s/%s.json"):format(dir, node),
      crown.json.encode { ticker = TICKER, leads = node == "victim", registries = registries })
    return Candidate.start { args = { "spec/matrix/registry_app.lua", path }, node = node, log = ("%s/%s.log"):format(dir, node),
      env = { CROWN_LOOP_HELD = ("%s/%s.held"):format(dir, node) } }
  end

  local function each(words, is_so)
    local left
    pcall(eventually, function()
      left = {}
      for _, cell in ipairs(cells) do
        if not is_so(cell) then left[#left + 1] = cell end
      end
      return #left == 0
    end, 30)
    for _, cell in ipairs(left) do cell.problem = cell.problem or words end
  end

  setup(function()
    server, dir = Postgres.start(), tempdir()
    for _, cell in ipairs(cells) do
      cell.ticks = ("%s/ticks-%s"):format(dir, cell.name)
      for _, node in ipairs { "victim", "rival" } do cell.ways[node] = Way.open(port.free(), cell, HUGE, STEPS) end
    end
    victim = start "victim"
    each("the name was never registered", function(cell) return victim:output():find("REGISTERED " .. cell.name, 1, true) end)
    rival = start "rival"
    each("the step was never reached", function(cell) return cell.struck end)
    crown.sleep(PLAYED)
    for _, cell in ipairs(cells) do
      for _, way in pairs(cell.ways) do way.well = true end
    end
    each("the other member knows no names when all is well again",
      function(cell) return rival:output():find("FOUND " .. cell.name, 1, true) end)
    output = victim:output()
    rival:destroy()
    victim:destroy()
  end)

  teardown(function()
    for _, cell in ipairs(cells) do
      for _, way in pairs(cell.ways) do way:close() end
    end
    server:destroy()
  end)

  for _, cell in ipairs(cells) do
    it(("%s: %s"):format(cell.trick, cell.step), function()
      ticks.finish(cell.ticks)
      assert.equal("victim", ticks.lives(cell.ticks)[1].node)
      assert.equal(1, #ticks.lives(cell.ticks), output)
      assert.is_nil(cell.problem, cell.problem and cell.problem .. "\n" .. output)
    end)
  end

  it("costs no other election anything", function() judge(output, dir .. "/victim.held") end)
end)
