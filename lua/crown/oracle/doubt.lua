--- What a candidate answers while its store may have lost the record of who leads, and what that says to people: one sentence for
-- all stores. It names the store, why nobody claims, for how long, and the options that say so.
-- @internal crown.oracle.doubt

local figure = require "crown.check.figure"

local Doubt = {}
Doubt.__index = Doubt

-- Where a store is, without a login and options: "redis at db:6379".
local function place(word, url)
  local there = url and url:match "^%a[%w+.-]*://([^?]*)"
  there = there and there:gsub("^.*@", ""):gsub("/+$", "")
  return there and there ~= "" and ("%s at %s"):format(word, there) or word
end

--- The doubts of a store.
-- @string word what messages call the store
-- @string[opt] url of it
-- @tparam[opt] table party `amnesia_wait` in seconds and `trust_empty`, as options of the oracle; they may change. `twice`: the
-- store is waited for twice as long
-- @treturn Doubt
function Doubt.of(word, url, party)
  return setmetatable({ word = word, place = place(word, url), party = party or {} }, Doubt)
end

local ROUNDING = 1 -- seconds

local function seconds_of(value)
  return value < 1 and figure.about(value) or ("%.0f"):format(value)
end

local WAITS = "%s has no record of this election. Waiting %s s, in case another candidate still leads by a record that was lost"
local LOST = "%s may have lost records, or the one of this election. Waiting %s s, in case another candidate still leads "
  .. "by a record that was lost (trust_empty=true does not skip this: the store is not new, or another candidate doubts it)."
local MAY_HAVE_LOST = "%s may have lost records: it %swas restarted, restored or failed over, %sor its clock was set. "
  .. "Waiting %s s, until every lease that it may have granted is over"

-- What else may have happened to a store, which then looks the same.
local REWRITTEN = "its table was made anew or rewritten (ALTER TABLE, VACUUM FULL), "
local ELSE = { postgres = REWRITTEN, postgres_lease = REWRITTEN, mysql = "its tables were made anew, " }

local CHANGED = "%s: %s. Waiting %s s, until every lease that it may have granted is over"

--- Notes why the store is doubted, where that is known; it counts until another reason is noted.
-- @string[opt] cause words; nil where it is not known
function Doubt:because(cause)
  self.cause = cause
end

-- What amnesia_wait alone makes of a wait, with 1 % and a quarter of a second where a register adds them.
local function longest(party)
  return party.twice and 2 * party.amnesia_wait * 1.01 + ROUNDING or party.amnesia_wait + ROUNDING
end

--- Why nobody claims.
-- @number seconds for which that is so
-- @tparam[opt] boolean is_empty whether the store has no record at all, as a new one; nil where that cannot be told
-- @treturn string
function Doubt:words(seconds, is_empty)
  local party = self.party
  if is_empty and party.trust_empty then return LOST:format(self.place, seconds_of(seconds)) end
  if is_empty then
    local wait = party.amnesia_wait and ("amnesia_wait=%s%s%s"):format(figure.exact(party.amnesia_wait),
      party.twice and ", twice" or "", seconds > longest(party) and ", but no less than the longest ttl" or "")
    local options = wait and (" (%s; trust_empty=true skips this in a new store)"):format(wait) or ""
    return WAITS:format(self.place, seconds_of(seconds)) .. options .. "."
  end
  if self.cause then return CHANGED:format(self.place, self.cause, seconds_of(seconds)) .. "." end
  local is_new = is_empty == nil and party.trust_empty == false and "is new, or " or ""
  return MAY_HAVE_LOST:format(self.place, is_new, ELSE[self.word] or "", seconds_of(seconds)) .. "."
end

--- What `info` says of a store that is in doubt.
-- @tparam table facts as health returns them; one more is added, where there is something to say
-- @number seconds until the store is believed
function Doubt.tell(facts, seconds)
  if seconds <= 0 then return end
  facts[#facts + 1] = { "Doubt",
    ("nobody new leads for %s s: a record of who leads may have been lost"):format(seconds_of(seconds)) }
end

--- What a claim or a refresh answers meanwhile.
-- @number seconds until the store is believed
-- @tparam[opt] boolean is_empty as for words
-- @tparam[opt] table holder what else the answer says; `expires_in` where it is to be asked again later than that
-- @treturn boolean false
-- @treturn table the holder
function Doubt:denial(seconds, is_empty, holder)
  holder = holder or {}
  holder.amnesia, holder.expires_in = true, holder.expires_in or seconds
  holder.error = holder.error or self:words(seconds, is_empty)
  return false, holder
end

return Doubt
