-- What the torture judges by, where no fault has to happen for it.
local heard = require "torture.heard"

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
