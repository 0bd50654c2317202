--- How often a candidate that follows asks again: the election's options `splay` and `backoff`, on every oracle.
-- @internal crown.election.pace

local schema = require "crown.check.schema"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local Pace = {}
Pace.__index = Pace

-- Seconds between the tries of a candidate that follows; the last goes on.
local BACKOFFS = {
  five_sec = { 0.5, 0.7, 0.9, 1.1, 1.4, 2, 3, 4, 5 },
  twenty_sec = { 0.5, 1, 2, 4, 7, 11, 15, 20 },
}

local function backoff_problem(backoff)
  local words = "must be five_sec, twenty_sec, or a list of seconds"
  if type(backoff) == "string" then
    return not BACKOFFS[backoff] and words .. usage.suggest(backoff, usage.names(BACKOFFS)) or nil
  end
  if type(backoff) ~= "table" or #backoff == 0 then return words end
  for _, seconds in ipairs(backoff) do
    if type(seconds) ~= "number" or not (seconds > 0 and seconds < math.huge) then return words end
  end
end

--- The options, as crown.check.schema has them.
Pace.RULES = {
  backoff = { type = "any", check = backoff_problem },
  splay = { type = "number", least = 0, most = 3600 },
}

--- Takes these options out of an oracle's, where they may stand too: as in a URL.
-- @tparam table options of the oracle
-- @treturn table what was there: `backoff`, `splay`
function Pace.take(options)
  local taken = {}
  for name in pairs(Pace.RULES) do taken[name], options[name] = options[name], nil end
  if next(taken) and options.url then options.url = url.without(options.url, Pace.RULES) end
  return taken
end

--- The pace of one candidate.
-- @string where how messages name the election
-- @tparam table checked the election's options
-- @tparam[opt] table given what stood among the oracle's
-- @treturn Pace nil where it is not asked for
function Pace.new(where, checked, given)
  local beside = schema.check(where, given or {}, Pace.RULES)
  local backoff, splay = checked.backoff or beside.backoff, checked.splay or beside.splay or 0
  if backoff == nil and splay == 0 then return nil end
  return setmetatable({ delays = type(backoff) == "string" and BACKOFFS[backoff] or backoff, splay = splay, tries = 0 }, Pace)
end

--- How much longer than the others this candidate waits for its first claim.
-- @treturn number seconds
function Pace:apart()
  return math.random() * self.splay
end

--- Seconds after which a candidate that was denied asks again, where the user chose; no later than at the lease's end.
-- @number[opt] expires_in until the lease ends
-- @treturn number or nil
function Pace:again(expires_in)
  if not self.delays then return nil end
  self.tries = math.min(self.tries + 1, #self.delays)
  return math.min(expires_in or math.huge, self.delays[self.tries])
end

--- The longest pause between two claims that the user chose.
-- @treturn number seconds; 0 where the user chose none
function Pace:longest()
  return math.max(0, unpack(self.delays or {}))
end

--- The candidate leads: the next time it begins anew.
function Pace:won()
  self.tries = 0
end

return Pace
