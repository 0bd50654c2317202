-- A release: a tarball that is the same whenever it is made, and says one version everywhere.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local run = require "support.run"

local function make_dist()
  local result = assert(crown.exec({ "make", "-s", "dist" }, { timeout = 60 }))
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

describe("a release", function()
  it("is the same tarball whenever it is made of one commit", function()
    local first = make_dist()
    crown.sleep(1.1) -- a time stamp would be another one
    assert.equal(first, make_dist())
  end)

  it("bears the version that the program says", function()
    local version = read_file("Makefile"):match "\nVERSION := (%S+)"
    assert.equal("crown-lua " .. version .. "\n", run({ "--version" }).stdout)
    assert.matches("crown%-lua%-" .. version:gsub("%p", "%%%0") .. "%.tar%.gz", make_dist())
  end)
end)
