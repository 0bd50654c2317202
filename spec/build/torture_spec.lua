-- What the torture judges by, where no fault has to happen for it.
local heard = require "torture.heard"
local judge = require "torture.judge"
local ledger = require "torture.job_ledger"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function log(...)
  local lines = {}
  for i, line in ipairs { ... } do lines[i] = "2026-11-22T22:03:25.809Z " .. line .. "\n" end
  return table.concat(lines)
end

local STARTS = "debug process.initialized name=spec node=ann phase=init oracle=redis epoch=0"
local HEARS = "debug leadership.rejected name=spec node=ann phase=following oracle=redis leader=ben epoch=7"
local WINS = "info  leadership.claimed name=spec node=ann phase=leading oracle=redis leader=ann epoch=%d"

-- A file of ticks: each life as { node, epoch, first, last }, in milliseconds.
local function ticked(...)
  local path, lines = tempdir() .. "/ticks", {}
  for i, life in ipairs { ... } do
    for _, at in ipairs { life[3], life[4] } do
      lines[#lines + 1] = ("%d %s %d leader 1 %d\n"):format(at * 1000000, life[1], life[2], i)
    end
  end
  write_file(path, table.concat(lines))
  return path
end

local function judged(...)
  return judge.run { paths = { ... }, intervals = {}, ended = 1 }
end

describe("the torture", function()
  it("judges each slot by itself, and lets a node lead one of them at a time", function()
    local first = ticked({ "ann", 1, 100, 300 }, { "ben", 2, 400, 500 })
    assert.same({}, judged(first, ticked({ "ben", 1, 100, 350 }, { "cat", 2, 360, 700 })).wrong)
    assert.same({ "ann led two slots at once, in their epochs 1 and 2" },
      judged(first, ticked({ "ben", 1, 100, 200 }, { "ann", 2, 250, 700 })).wrong)
    local both = judged(first, ticked({ "ben", 1, 100, 300 }, { "cat", 2, 200, 390 }))
    assert.same({ "leader of ben in epoch 1 and leader of cat in epoch 2 ticked at once for 100.000 ms" }, both.wrong)
    assert.near(100, both.overlap, 0.001)
    assert.equal(4, both.terms)
  end)

  it("compares no epochs of two elections", function()
    local other = WINS:format(6):gsub("name=spec", "name=spec.2")
    assert.same({}, heard.went_back(log(STARTS, HEARS, other)))
  end)

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
