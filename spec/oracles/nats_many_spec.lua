-- Thousands of elections that begin at once in one NATS bucket, while others keep the cores busy.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local own_servers = require "support.own_servers"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local MANY, SPINNING = 5000, 2

local APP = [[
local crown = require "crown"
local elections = require "crown.core.election"
for i = 1, MANY do
  crown.elect { name = "e" .. i, oracle = { "nats_kv", url = arg[1], ttl = 60, trust_empty = true } }
end
local function led() -- now: one that was lost on a busy host was claimed twice
  local counts = elections.counts()
  return counts["leadership.claimed"] - counts["leadership.lost"]
end
crown.spawn(function()
  repeat crown.sleep(0.05) until led() == MANY
  local file = assert(io.open(arg[2], "w"))
  file:write "all"
  file:close()
end)
]]

describe("thousands of elections in a NATS bucket", function()
  local start, destroy = own_servers(Nats.start)
  local others = {}

  after_each(function()
    for _, one in ipairs(others) do one:destroy() end
    others = {}
    destroy()
  end)

  it("are all led, and their runtime is not killed as silent, though they begin while the cores are busy", function()
    local server, dir = start(), tempdir()
    for i = 1, SPINNING do
      others[i] = Candidate.start { program = "/bin/sh", args = { "-c", "while :; do :; done" }, node = "spins", log = dir .. "/spins" }
    end
    write_file(dir .. "/app.lua", (APP:gsub("MANY", MANY)))
    local one = Candidate.start { args = { "--log-level", "warn", dir .. "/app.lua", server.url .. "/MANY", dir .. "/led" },
      node = "one", log = dir .. "/log" }
    others[#others + 1] = one
    eventually(function() return read_file(dir .. "/led") == "all" end, 100)
    assert.is_nil(one:output():find "silent")
    assert.is_nil(one:output():find "runtime.restarted")
  end)
end)
