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

-- Followers, and one leader among them. When all have been told that somebody leads, THEN begins.
local FOLLOWERS = [[
local crown = require "crown"
local MANY, denied, asked, now, most, before = 6000, 0, 0, 0, 0, nil
local began = crown.now()
local oracle = { timing = function() return 60, 20 end }
local function ask()
  asked, now = asked + 1, now + 1
  most = math.max(most, now)
  crown.sleep(0.01)
  now = now - 1
  return true, 20, { ttl = 60 }
end
function oracle.init(opts) return { leads = opts.crown_name == "leader" } end
function oracle.claim(self)
  if self.leads then return true, 20, { ttl = 60 } end
  if self.claimed then return ask() end
  self.claimed, denied = true, denied + 1
  return false, { node = "another", DENIAL }
end
function oracle.refresh() return true, 20, { ttl = 60 } end
function oracle.handle_info(self)
  if not self.leads then return ask() end
  before = asked
end
local elections = {}
for i = 1, MANY do elections[i] = crown.elect { name = "e" .. i, oracle = oracle } end
local leader = crown.elect { name = "leader", oracle = oracle }
local function tell()
  for i = 1, MANY do elections[i]:send "freed" end
  leader:send "word"
end
local function answered() return asked == MANY and now == 0 end
crown.spawn(function()
  repeat crown.sleep(0.05) until denied == MANY and leader:is_leader()
  THEN
  os.exit(0)
end)
]]

-- All of them lead when their runtime is killed. THEN runs in the next one.
local KILLED = [[
local crown = require "crown"
local ffi = require "ffi"
ffi.cdef "int raise(int);"
local MANY, claims, now, most, lost = 6000, 0, 0, 0, 0
local again = io.open(arg[1]) ~= nil
local oracle = { timing = function() return 60, 20 end, init = function() return {} end }
function oracle.claim()
  claims, now = claims + 1, now + 1
  most = math.max(most, now)
  for _ = 1, 2 do -- none of those that begin at once is over before all have begun
    local before
    repeat before = claims crown.sleep(0.01) until claims == before
  end
  now = now - 1
  return true, 20, { ttl = 60 }
end
function oracle.refresh() return true, 20, { ttl = 60 } end
local elections = {}
require("crown.core").atomic(function()
  for i = 1, MANY do elections[i] = crown.elect { name = "e" .. i, oracle = oracle, handlers = { HANDLERS } } end
  if again then BESIDE end
end)
local function all_have_won() return require("crown.core.election").counts()["leadership.claimed"] == MANY end
crown.spawn(function()
  if not again then
    repeat crown.sleep(0.05) until all_have_won()
    assert(io.open(arg[1], "w")):close()
    ffi.C.raise(9)
  end
  THEN
  os.exit(0)
end)
]]

local function output(app, words)
  local dir = tempdir()
  local result = run({ write_file(dir .. "/app.lua", (app:gsub("%u+", words))), dir .. "/died" }, { timeout = 120 })
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

describe("thousands of elections that are declared at once", function()
  it("do not claim all at once, but all claim", function()
    local seen = output(APP, { HOW = "crown.sleep(0.01)", BESIDE = "", THEN = [[
      repeat crown.sleep(0.05) until claims == MANY and now == 0
      print(most < MANY * 0.7)]] })
    assert.equal("true\n", seen)
  end)

  it("all claim, also where the store answers none of them", function()
    assert.equal("all\n", output(APP, { HOW = "crown.sleep(1000)", BESIDE = "",
      THEN = 'repeat crown.sleep(0.05) until claims == MANY print "all"' }))
  end)

  it("claim before they are handed a message, and not at all where they are stopped before", function()
    local seen = output(APP, { HOW = "crown.sleep(0.01)", BESIDE = [[
      elections[MANY]:send "word"
      for i = MANY - 10, MANY - 1 do elections[i]:stop() end]], THEN = [[
      repeat crown.sleep(0.05) until claims == MANY - 10 and now == 0 and told ~= nil
      print(told, claims)]] })
    assert.equal("true\t5990\n", seen)
  end)
end)

describe("thousands of followers", function()
  local LONG = "retry_in = 3600"

  it("that are told at once that nobody leads do not claim all at once, but all claim", function()
    assert.equal("true\n", output(FOLLOWERS, { DENIAL = LONG, THEN = [[
      require("crown.core").atomic(tell)
      repeat crown.sleep(0.05) until answered()
      print(most < MANY * 0.7)]] }))
  end)

  it("whose leases end in one instant do not claim all at once, but all claim", function()
    assert.equal("true\n", output(FOLLOWERS, { DENIAL = "expires_in = math.max(0, began + 5 - crown.now())", THEN = [[
      repeat crown.sleep(0.05) until answered()
      print(most < MANY * 0.7)]] }))
  end)

  it("do not hold up what a leader is told", function()
    assert.equal("true\n", output(FOLLOWERS, { DENIAL = LONG, THEN = [[
      require("crown.core").atomic(tell)
      repeat crown.sleep(0.001) until before
      print(before < MANY / 2)]] }))
  end)
end)

describe("thousands of elections whose runtime was killed while they led", function()
  local ALL_CLAIM = "repeat crown.sleep(0.05) until claims == MANY and now == 0 print(most < MANY * 0.7, lost)"

  it("do not claim all at once, but all claim", function()
    assert.equal("true\t0\n", output(KILLED, { HANDLERS = "", BESIDE = "", THEN = ALL_CLAIM }))
  end)

  it("do not claim all at once behind what lost has to do, but all claim", function()
    assert.equal("true\t6000\n", output(KILLED, { HANDLERS = "lost = function() lost = lost + 1 end", BESIDE = "",
      THEN = ALL_CLAIM }))
  end)

  it("are told of that also where they are stopped before they begin (R10)", function()
    assert.equal("1\n", output(KILLED, { HANDLERS = "lost = function() lost = lost + 1 end",
      BESIDE = "for i = 2, MANY do elections[i]:stop() end",
      THEN = "repeat crown.sleep(0.05) until claims > 0 and lost == MANY print(claims)" }))
  end)
end)
