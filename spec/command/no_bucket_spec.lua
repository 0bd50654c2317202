-- A NATS bucket that is not there: what the verbs say of it.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local run = require "support.run"
local tempdir = require "support.tempdir"

describe("a NATS bucket that is not there", function()
  local server

  setup(function() server = Nats.start() end)
  teardown(function() server:destroy() end)

  it("has no leader whom evict could ask to go", function()
    local result = run { "evict", "--oracle", server.url .. "/NONE", "--force", "e" }
    assert.same({ 1, ("crown-lua: evict: nobody leads 'e', and there is no bucket NONE, in %s/NONE\n"):format(server.url) },
      { result.code, result.stderr })
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
