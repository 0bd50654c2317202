-- The ports that specs which run side by side take for their servers.
local port = require "support.port"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("a port of a spec", function()
  local function other_may_take(number)
    local app = write_file(tempdir() .. "/app.lua",
      'package.path = "spec/?.lua;" .. package.path print(require("support.port").take(tonumber(arg[1])))')
    return run({ app, tostring(number) }).stdout == "true\n"
  end

  it("is nobody else's while the spec runs, also where no server listens", function()
    local number = port.free()
    assert.is_false(other_may_take(number))
    assert.are_not.equal(number, port.free())
  end)

  it("is free again when the spec has ended", function()
    local number = 11999 -- which free() never gives
    for _ = 1, 2 do assert.is_true(other_may_take(number)) end
  end)
end)
