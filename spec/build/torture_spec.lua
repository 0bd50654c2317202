-- What the torture judges by, where no fault has to happen for it.
local heard = require "torture.heard"
local ledger = require "torture.job_ledger"

local function log(...)
  local lines = {}
  for i, line in ipairs { ... } do lines[i] = "2026-11-22T22:03:25.809Z " .. line .. "\n" end
  return table.concat(lines)
end

local STARTS = "debug process.initialized name=spec node=ann phase=init oracle=redis epoch=0"
local HEARS = "debug leadership.rejected name=spec node=ann phase=following oracle=redis leader=ben epoch=7"
local WINS = "info  leadership.claimed name=spec node=ann phase=leading oracle=redis leader=ann epoch=%d"

describe("the torture", function()
  it("finds an epoch below one that the winner had heard of, and no other", function()
    assert.same({ "ann won epoch 6 when it had heard of 7: the epoch went back" }, heard.went_back(log(STARTS, HEARS, WINS:format(6))))
    assert.same({}, heard.went_back(log(STARTS, HEARS, WINS:format(8))))
    assert.same({}, heard.went_back(log(STARTS, HEARS, STARTS, WINS:format(6))))
  end)
end)

describe("what the runs of a job have written", function()
  local function line(what, slot, node, at) return { what = what, slot = slot, node = node, epoch = 1, at = at } end
  local RERUN = { line("begin", 60, "ann", 10), line("end", 60, "ann", 11), line("begin", 60, "ben", 15) }

  it("is wrong where two ran at once, and where something ran again after it or what came later had succeeded", function()
    local failed_first = { line("begin", 60, "ann", 10), line("begin", 60, "ben", 15), line("end", 60, "ben", 16) }
    assert.same({ {}, 0 }, { ledger.wrong(failed_first, {}, 1) })
    assert.matches("^two ran at once: slot 60, on ann", ledger.wrong({ line("two", 60, "ann", 10) }, {}, 1)[1])
    assert.matches("slot 60 begins on ben at 15.00, after slot 60 had succeeded on ann at 11.00", ledger.wrong(RERUN, {}, 1)[1])
    RERUN[2].slot = 120
    assert.matches("slot 60 begins on ben .* after slot 120", ledger.wrong(RERUN, {}, 1)[1])
    RERUN[2].slot = 60
  end)

  it("is let pass where its host could not note it, or the store has lost it", function()
    assert.same({ {}, 1 }, { ledger.wrong(RERUN, { { from = 11.5, to = 20 } }, 1) })
    assert.equal(1, #ledger.wrong(RERUN, { { from = 12.5, to = 20 } }, 1))
    assert.same({ {}, 1 }, { ledger.wrong(RERUN, { { from = 12.5, to = 20, loses = true } }, 1) })
  end)

  it("tells what has not run", function()
    local lines = { line("end", 60, "ann", 1), line("begin", 120, "ann", 1), line("end", 180, "ann", 2) }
    assert.same({ 120 }, ledger.missing(lines, 60, 180))
  end)
end)
