-- Thousands of elections that are declared at once.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local APP = [[
local crown = require "crown"
local MANY, claims, now, most = 6000, 0, 0, 0
local oracle = { timing = function() return 60, 20 end }
function oracle.init(opts) return { name = opts.crown_name } end
function oracle.claim(self)
  claims, now = claims + 1, now + 1
  most = math.max(most, now)
  HOW
  now = now - 1
  self.answered = true
  return true, 20, { ttl = 60 }
end
function oracle.refresh() return true, 20, { ttl = 60 } end
local told
function oracle.handle_info(self) told = self.answered end
local elections = {}
require("crown.core").atomic(function() -- in one turn of the loop
  for i = 1, MANY do elections[i] = crown.elect { name = "e" .. i, oracle = oracle } end
  BESIDE
end)
crown.spawn(function()
  THEN
  os.exit(0)
end)
]]

local function output(how, beside, after)
  local app = APP:gsub("HOW", how):gsub("BESIDE", beside):gsub("THEN", after)
  local result = run({ write_file(tempdir() .. "/app.lua", app) }, { timeout = 120 })
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

describe("thousands of elections that are declared at once", function()
  it("do not claim all at once, but all claim", function()
    local seen = output("crown.sleep(0.01)", "", [[
      repeat crown.sleep(0.05) until claims == MANY and now == 0
      print(most < MANY * 0.7)]])
    assert.equal("true\n", seen)
  end)

  it("all claim, also where the store answers none of them", function()
    assert.equal("all\n", output("crown.sleep(1000)", "", 'repeat crown.sleep(0.05) until claims == MANY print "all"'))
  end)

  it("claim before they are handed a message, and not at all where they are stopped before", function()
    local seen = output("crown.sleep(0.01)", [[
      elections[MANY]:send "word"
      for i = MANY - 10, MANY - 1 do elections[i]:stop() end]], [[
      repeat crown.sleep(0.05) until claims == MANY - 10 and now == 0 and told ~= nil
      print(told, claims)]])
    assert.equal("true\t5990\n", seen)
  end)
end)
