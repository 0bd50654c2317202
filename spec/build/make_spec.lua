-- What make hands on to the tools.
local crown = require "crown"

local function says(...)
  local result = assert(crown.exec({ "env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "make", "-n", ... }, { timeout = 60 }))
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

describe("make", function()
  it("hands store, faults and seed on to the torture", function()
    assert.matches("run%-torture.sh http 25 19\n", says("torture", "STORE=http", "SEED=19"))
    assert.matches("run%-torture.sh redis 40 1\n", says("torture", "STORE=redis", "FAULTS=40"))
  end)

  it("hands rows, runs and a store on to the benchmarks", function()
    assert.matches("bench/main.lua 'file, ' 5\n", says("bench", "ROWS=file, ", "N=5"))
    assert.matches("BENCH_STORE_URL='redis://db%?ttl=5'", says("bench", "STORE_URL=redis://db?ttl=5"))
  end)
end)
