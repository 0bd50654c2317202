-- The cells of the matrix, where the program that plays them ends before its time.
local Candidate = require "support.candidate"
local cells = require "matrix.cells"
local tempdir = require "support.tempdir"

describe("a cell of the matrix", function()
  it("has its problem noted also when the program had ended before it was looked at", function()
    local program = Candidate.start { program = "/bin/true", args = {}, node = "victim", log = tempdir() .. "/log" }
    program:wait()
    local list = { { name = "well" }, { name = "bad" }, { name = "worse", problem = "an earlier one" } }
    cells.await(list, program, 60, "it never was", function(cell) return cell.name == "well" end)
    assert.same({ nil, "it never was", "an earlier one" }, { list[1].problem, list[2].problem, list[3].problem })
  end)
end)
