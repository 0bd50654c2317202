-- A NATS bucket that is not there: what the verbs say of it.
local json = require("crown").json
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Wire = require "support.nats_wire"

describe("a NATS bucket that is not there", function()
  local server

  setup(function() server = Nats.start() end)
  teardown(function() server:destroy() end)

  it("has no leader whom evict could ask to go", function()
    local result = run { "evict", "--oracle", server.url .. "/NONE", "--force", "e" }
    assert.same({ 1, ("crown-lua: evict: nobody leads 'e', and there is no bucket NONE, in %s/NONE\n"):format(server.url) },
      { result.code, result.stderr })
  end)

  it("is told to be gone where somebody deletes it, and is made again", function()
    local at = ("nats at 127.0.0.1:%d: the bucket DELETED is gone: .*the next claim makes it again"):format(server.port)
    local all = {}
    local function start(node)
      all[node] = Candidate.start { args = { "run", "--oracle", server.url .. "/DELETED?ttl=2&amnesia_wait=0", "x", "sleep", "1000" },
        node = node, log = tempdir() .. "/log", env = { CROWN_DIRECTORY = tempdir() } }
      finally(function()
        for _, one in pairs(all) do one:destroy() end
      end)
    end
    start "leader"
    eventually(function() return all.leader:pids("child")[1] end, 30)
    start "follower"
    eventually(function() return all.follower:output():find("leader leads", 1, true) end, 30)
    Wire.open(server.port):ask("$JS.API.STREAM.DELETE.KV_DELETED", nil, "")
    eventually(function() return all.leader:output():find("oracle%.error[^\n]*" .. at) end, 30)
    eventually(function()
      local _, terms = (all.leader:output() .. all.follower:output()):gsub("crown%-lua: leading 'x'", "")
      return terms >= 2
    end, 30)
    for _, one in pairs(all) do assert.is_nil(one:output():find("JetStream on", 1, true)) end
  end)

  it("is new to run --once, which says once that it waits", function()
    local one = Candidate.start { args = { "run", "--once", "--oracle", server.url .. "/NEW?ttl=30", "x", "true" }, node = "one",
      log = tempdir() .. "/log" }
    finally(function() one:destroy() end)
    local said = eventually(function() return one:output():match "crown%-lua: [^\n]*\n" end, 20)
    assert.matches("Waiting 30 s", said)
    assert.equal(1, select(2, one:output():gsub("crown%-lua: ", "")))
  end)
end)

describe("a key of a NATS bucket that somebody has written by hand", function()
  local server

  setup(function() server = Nats.start() end)
  teardown(function() server:destroy() end)

  it("has no epoch, and not that of the leader before it", function()
    local url = server.url .. "/HAND?ttl=4&amnesia_wait=0"
    local one = Candidate.start { args = { "run", "--oracle", url, "x", "sleep", "1000" }, node = "one", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = tempdir() } }
    finally(function() one:destroy() end)
    eventually(function() return one:pids("child")[1] end, 30)
    Wire.open(server.port):ask("$KV.HAND.x", nil, "hand")
    local found = json.decode(run({ "info", "--oracle", url, "--json" }).stdout).elections[1]
    assert.same({ "hand", nil }, { found.node, found.epoch })
    local said = eventually(function() return one:output():match "following 'x'; hand leads[^\n]*" end, 30)
    assert.is_nil(said:find("epoch", 1, true), said)
    assert.equal("0", one:output():match "leadership%.rejected [^\n]*leader=hand epoch=(%d+)")
  end)
end)
