-- What make hands on to the tools.
local crown = require "crown"
local tempdir = require "support.tempdir"

local function make(...)
  local result = assert(crown.exec({ "env", "-u", "MAKEFLAGS", "-u", "MFLAGS", ... }, { timeout = 60 }))
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

local function says(...) return make("make", "-n", ...) end

describe("make", function()
  it("hands store, faults and seed on to the torture", function()
    assert.matches("run%-torture.sh http 25 19\n", says("torture", "STORE=http", "SEED=19"))
    assert.matches("run%-torture.sh redis 40 1\n", says("torture", "STORE=redis", "FAULTS=40"))
    assert.matches("run%-torture.sh jobs:redis 25 1\n", says("torture", "STORE=redis", "JOBS=1"))
  end)

  it("hands a seed and files on to the specs in another order", function()
    assert.matches("SHUFFLE=7 .*run%-units.sh shuffled spec/a_spec.lua spec/b_spec.lua\n",
      says("shuffle", "SEED=7", "FILES=spec/a_spec.lua spec/b_spec.lua"))
    assert.matches("SHUFFLE=%d+ ", says "shuffle")
    assert.not_equal(says "shuffle":match "SHUFFLE=%d+", says "shuffle":match "SHUFFLE=%d+")
  end)

  it("has words mean the same in every language", function()
    local locales = tempdir()
    local compiled = crown.exec({ "localedef", "-i", "tr_TR", "-f", "UTF-8", locales .. "/tr_TR.UTF-8" }, { timeout = 60 })
    if compiled and compiled.code == 0 then -- its sources are there
      local verbs = make("LOCPATH=" .. locales, "LC_ALL=tr_TR.UTF-8", "make", "-s", "--eval=show: ; @echo $(VERBS)", "show")
      for _, verb in ipairs { "info", "evict", "history", "completion" } do assert.matches(verb, verbs) end
    end
    assert.equal("C.UTF-8\n", make("LC_ALL=tr_TR.UTF-8", "make", "-s", "--eval=show: ; @echo $$LC_ALL", "show"))
  end)

  it("builds what says the version anew when that changes", function()
    for _, object in ipairs { "runtime/main.o", "runtime/bind/bind_core.o" } do
      assert.matches("%-o build/" .. object:gsub("%p", "%%%0") .. " ", says("-W", "Makefile", "build/" .. object))
    end
  end)

  it("hands rows, runs and a store on to the benchmarks", function()
    assert.matches("bench/main.lua 'file, ' 5\n", says("bench", "ROWS=file, ", "N=5"))
    assert.matches("BENCH_STORE_URL='redis://db%?ttl=5'", says("bench", "STORE_URL=redis://db?ttl=5"))
  end)
end)
