--- What runtime/candidate/renewals.c does, for specs without a runtime: one renewal of a session counts for all of its terms.
local Renewals = {}

--- Makes what a session's `env` has as `renewals`.
-- @tparam function now
-- @tparam function random
function Renewals.of(now, random)
  local function answer(it, problem)
    it.asked, it.problem = nil, problem
    local waiting = it.waiting
    it.waiting = {}
    for _, fn in ipairs(waiting) do fn(problem) end
  end
  return {
    new = function(options)
      return { now = now, random = random, options = options, waiting = {} }
    end,
    count = function(it, sent, offset, first)
      it.sent, it.offset, it.first = sent, offset, first
      answer(it)
    end,
    forget = function(it)
      it.sent = nil
      answer(it)
    end,
    fail = function(it, problem) answer(it, problem or "no answer") end,
  }
end

--- What a refresh gets at once.
-- @bool stands whether nothing speaks against the term
-- @number asked when the refresh was called
-- @treturn number seconds until the next one, or nil: it has to wait, or the oracle is asked
-- @treturn table as an oracle's grant, but for the epoch
function Renewals.grant(it, stands, asked)
  local options = it.options
  if not stands or not it.sent or it.now() - it.sent > options.fresh then return nil end
  local past, rounds = math.max(0, asked - it.sent), options.delay - options.apart
  local left = math.ceil((asked + options.apart - it.first) / rounds) * rounds + it.first - asked
  local second = math.min(left + options.apart * it.random(), it.sent + options.delay - asked)
  return second, { ttl = options.ttl - past, past = past > 0 and past or nil }
end

--- Waits for the next renewal, and has it begin.
-- @tparam function fn is called with why there was none, or nothing
function Renewals.wait(it, fn)
  it.waiting[#it.waiting + 1] = fn
  if it.asked and it.now() - it.asked <= it.options.patience then return end
  it.asked = it.now()
  it.options.renew()
end

return Renewals
