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

  it("reads as many inputs as are asked for", function()
    local said, found = fuzz("120000", "7")
    assert.same({ "-seed=7 -runs=120000" }, found)
    assert.matches("target +120000 inputs, nothing found\n", said)
  end)

  it("reads for as long as is asked for", function()
    assert.same({ "-seed=7 -max_total_time=60" }, select(2, fuzz("60s", "7")))
  end)
end)
