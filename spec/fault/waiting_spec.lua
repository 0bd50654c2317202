-- A runtime that comes after one that was killed gets ready while the old tree is being killed; it begins nothing before.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local write_file = require "support.write_file"

-- Each run notes when its script began, when os.execute and io.popen returned, and when `lost` ran.
local APP = [[
local crown = require "crown"
local notes = assert(io.open(os.getenv "NOTES", "a"))
local function note(what) notes:write(("%s %.9f\n"):format(what, crown.now())) notes:flush() end
local command = { unpack(arg, 2) }
note "script"
crown.elect { name = "spec", oracle = "file:" .. arg[1], child = command, handlers = {
  won = function() note "won" end, lost = function() note "lost" end } }
local started = os.getenv "STARTS"
if started == "execute" then os.execute "true" elseif started == "popen" then io.popen("true"):close() end
note "started"
]]

describe("the next runtime, while a stopped keeper holds up the end of the tree,", function()
  local cluster

  after_each(function() cluster:finish() end)

  -- Kills the runtime while its keeper is stopped, and lets the keeper go on when the next script has begun.
  -- @return the times that the second run has noted, by what; when the old child ticked last
  local function replaced(starts)
    local notes = tempdir() .. "/notes"
    local function noted(what)
      local found = {}
      for at in (read_file(notes) or ""):gmatch(what .. " (%S+)") do found[#found + 1] = tonumber(at) end
      return found
    end
    cluster = Cluster.new { oracle = "file", app = APP, env = { one = { NOTES = notes, STARTS = starts } } }
    local leader = cluster:join "one"
    local term = ticks.await(cluster.ticks, 0, 10)
    eventually(function() return #noted "started" == 1 end, 10)
    leader:hurt("STOP", "keeper")
    leader:hurt("KILL", "runtime")
    eventually(function() return #noted "script" == 2 end, 10)
    leader:hurt("CONT", "keeper")
    cluster:succeed(term.epoch, 20)
    eventually(function() return #noted "won" == 2 and #noted "started" == 2 end, 10)
    local last = ticks.terms(cluster.ticks)[1].last
    return { script = noted("script")[2], started = noted("started")[2], lost = noted("lost")[1], won = noted("won")[2] }, last
  end

  it("reads its script, and tells of the old term and leads when the tree is gone (K5, R10)", function()
    local at, last = replaced()
    assert.is_true(at.script < last)
    assert.is_true(last < at.lost)
    assert.is_true(at.lost <= at.won)
  end)

  for _, starts in ipairs { "execute", "popen" } do
    it("starts no process of its own by " .. starts .. " (K5)", function()
      local at, last = replaced(starts)
      assert.is_true(last < at.started)
    end)
  end
end)

describe("an election that ends before it may begin", function()
  local one

  after_each(function() one:destroy() end)

  it("tells lost of the term of the runtime before (R10)", function()
    local dir = tempdir()
    write_file(dir .. "/app.lua", [[
local crown = require "crown"
local again = io.open(arg[1] .. "/again") ~= nil
local function say(what) print(what) io.flush() end
local election = crown.elect { name = "short", oracle = "file:" .. arg[1], child = { "/bin/sleep", "1000" }, handlers = {
  won = function() say "WON" end, lost = function(reason) say("LOST " .. reason) end } }
if again then election:stop() end
]])
    one = Candidate.start { args = { dir .. "/app.lua", dir }, node = "one", log = dir .. "/log" }
    eventually(function() return one:output():find "WON" and #one:pids "child" == 1 end, 10)
    write_file(dir .. "/again", "")
    one:hurt("KILL", "runtime")
    assert.equal(0, one:wait(20))
    local _, lost = one:output():gsub("LOST runtime_died", "")
    assert.equal(1, lost)
  end)
end)
