-- Thousands of file elections that begin in one process.
local crown = require "crown"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local MANY = 3000

-- How much of the time until all lead goes to looks at what is open: each look shows all the locks that are open by then.
local APP = ([[
local crown = require "crown"
local lockfile = require "crown.core.lockfile"
local looking, won, opened, began = 0, 0, lockfile.opened, crown.now()
function lockfile.opened()
  local from = crown.now()
  local found, problem = opened()
  looking = looking + crown.now() - from
  return found, problem
end
for i = 1, MANY do
  crown.elect { name = "e" .. i, oracle = "file:" .. arg[1], handlers = { won = function()
    won = won + 1
    if won < MANY then return end
    print(looking / (crown.now() - began))
    io.stdout:flush()
    local status = io.open "/proc/self/status":read "*a"
    crown.exec { "/bin/kill", status:match "PPid:%s*(%d+)" }
  end } }
end
]]):gsub("MANY", MANY)

describe("thousands of file elections", function()
  it("spend little of their start on looks for locks that were taken away", function()
    local dir = tempdir()
    write_file(dir .. "/app.lua", APP)
    assert(crown.exec { "/bin/mkdir", dir .. "/locks" })
    local result = run({ "--log-level", "error", dir .. "/app.lua", dir .. "/locks" },
      { timeout = 900, env = { CROWN_DIRECTORY = dir } })
    local share = tonumber(result.stdout:match "%S+")
    assert.is_true(share ~= nil and share < 0.2, result.stdout .. result.stderr)
  end)
end)
