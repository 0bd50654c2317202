-- How many inputs the programs of libFuzzer are given.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- Stands for one of them: notes what it was told, and has read as many inputs.
local PROGRAM = [[#!/bin/sh
echo "$@" >>"$0.told"
case "$*" in *-runs=*) runs=${*#*-runs=}; echo "stat::number_of_executed_units: ${runs%% *}" ;; esac
]]

describe("a target of libFuzzer", function()
  local path
  before_each(function()
    path = write_file(tempdir() .. "/target", PROGRAM)
    assert(crown.exec { "/bin/chmod", "+x", path })
  end)

  -- @return what was said, and what the program was told each time
  local function fuzz(...)
    local result = assert(crown.exec { "tools/fuzz-core.sh", path, ... })
    assert.equal(0, result.code, result.stderr)
    local told = {}
    for line in (read_file(path .. ".told") or ""):gmatch "[^\n]+" do told[#told + 1] = line:match "^(.-) %-print_final_stats" end
    return result.stdout, told
  end

  it("reads as many inputs as are asked for, also where that is less than one process may read, or no multiple", function()
    for inputs, told in pairs { ["1000"] = { "-seed=7 -runs=1000" },
      ["120000"] = { "-seed=7 -runs=50000", "-seed=8 -runs=50000", "-seed=9 -runs=20000" } } do
      os.remove(path .. ".told")
      local said, found = fuzz(inputs, "7", "50000")
      assert.same(told, found)
      assert.matches("target +" .. inputs .. " inputs, nothing found\n", said)
    end
    os.remove(path .. ".told")
    assert.same({ "-seed=7 -runs=120000" }, select(2, fuzz("120000", "7")))
  end)

  it("reads for as long as is asked for", function()
    assert.same({ "-seed=7 -max_total_time=60" }, select(2, fuzz("60s", "7")))
    os.remove(path .. ".told")
    assert.same({ "-seed=7 -max_total_time=60 -runs=50000" }, select(2, fuzz("60s", "7", "50000")))
  end)
end)
