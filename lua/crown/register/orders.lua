--- What operators order of an election's candidates: that nobody leads (a pause), or that one of them leads next (a hand-over).
-- Orders stand in the election's record, so every candidate sees them before it claims over that record. They are pure data here:
-- no clock, no store. crown.register.rule refuses claims by them, crown.register.obey has leaders follow them.
--
-- A pause: `pause` is true; `keep`: who leads goes on; `until`, seconds since 1970 by the hosts' wall clocks, or nil: it has no
-- end. A hand-over: `to` the node that leads next; `within`, seconds for which others leave that the election, counted by each
-- candidate's own clock from when it sees the record. Both: `since`, seconds since 1970; `by` whom; `why`. Other fields are
-- another order's, and are kept.
-- @internal crown.register.orders

local json = require "crown.text.json"

local orders = {}

--- Bytes of all orders of an election, as JSON.
orders.MOST = 1024

local ENDLESS = 60 -- seconds after which a candidate asks again that hears of no end

local FIELDS = { pause = "boolean", keep = "boolean", ["until"] = "number", to = "string", within = "number", since = "number",
  by = "string", why = "string" }

--- Whether a record's orders are such as this version knows.
-- @param found
-- @treturn boolean
function orders.is(found)
  if type(found) ~= "table" then return false end
  for field, wanted in pairs(FIELDS) do
    if found[field] ~= nil and type(found[field]) ~= wanted then return false end
  end
  return true
end

local function others_of(found)
  local one = {}
  for field, value in pairs(found or one) do
    if not FIELDS[field] then one[field] = value end
  end
  return one
end

local function or_none(one) return next(one) ~= nil and one or nil end

--- Orders in place of those that stand. What is no pause and no hand-over is kept.
-- @tparam[opt] table found those that stand
-- @tparam table fields see above
-- @treturn table; or nil and a message: they are too long
function orders.with(found, fields)
  local one = others_of(found)
  for field, value in pairs(fields) do one[field] = value end
  local ranks = one.ranks -- which have room of their own
  one.ranks = nil
  local size = #json.encode(one)
  one.ranks = ranks
  if size > orders.MOST then
    return nil, ("it has %d bytes with all that stands beside it, more than %d: say why in fewer words"):format(size, orders.MOST)
  end
  return one
end

--- What is left of orders when their pause or hand-over is over.
-- @tparam[opt] table found
-- @treturn table or nil: nothing
function orders.without(found)
  return found and or_none(others_of(found))
end

--- Whether a pause stands.
-- @tparam[opt] table found
-- @number time of day, in seconds
-- @treturn boolean
function orders.is_paused(found, time)
  return found ~= nil and found.pause == true and not (found["until"] and time >= found["until"])
end

--- For how long a candidate may not claim.
-- @tparam[opt] table found
-- @string node the candidate's
-- @number stood seconds for which the candidate has seen the record stand
-- @number time of day, in seconds
-- @treturn number seconds until it asks again; or nil: it may claim
function orders.wait(found, node, stood, time)
  if not found then return nil end
  if orders.is_paused(found, time) then
    return found["until"] and math.min(ENDLESS, found["until"] - time) or ENDLESS
  end
  local left = found.to and found.to ~= node and (found.within or 0) - stood or 0
  return left > 0 and left or nil
end

--- For how long anybody might have claimed: a hand-over's time and a pause do not count.
-- @tparam[opt] table found
-- @string node the candidate's
-- @number stood seconds for which the candidate has seen that nobody leads
-- @number time of day, in seconds
-- @treturn number seconds
function orders.open_for(found, node, stood, time)
  if not found then return stood end
  if found.to and found.to ~= node then stood = stood - (found.within or 0) end
  if found.pause and found["until"] then stood = math.min(stood, time - found["until"]) end
  return math.max(0, stood)
end

--- Orders that candidates have to obey now, and not only to keep.
-- @tparam[opt] table found
-- @treturn table or nil: there are none
function orders.binding(found)
  return found and (found.pause or found.to) and found or nil
end

local function instant(word, time)
  return time and os.date(" " .. word .. " %Y-%m-%d %H:%M:%S %z", time) or ""
end

local function told(what, found)
  local parts = { what, instant("since", found.since), instant("until", found["until"]), found.by and " by " .. found.by or "",
    found.keep and "; a leader may go on" or "", found.why and ": " .. found.why or "" }
  return table.concat(parts)
end

--- Orders in words.
-- @tparam[opt] table found
-- @number time of day, in seconds
-- @treturn string or nil: none stand
function orders.words(found, time)
  if not found then return nil end
  if orders.is_paused(found, time) then
    return told("paused", found)
  end
  if found.to then return told("handed over to " .. found.to, found) end
end

--- What speaks against a candidate's leading, also while it leads. Who waits for another one's hand-over is no more than refused
-- its claims for a while.
-- @tparam[opt] table found
-- @string node the candidate's
-- @bool leads whether it does
-- @number time of day, in seconds
-- @treturn string "paused" or "handover"; or nil: nothing
-- @treturn string why
function orders.bar(found, node, leads, time)
  if orders.is_paused(found, time) then
    if leads and found.keep then return nil end
    return "paused", orders.words(found, time)
  end
  if found and found.to and leads and found.to ~= node then return "handover", orders.words(found, time) end
end

return orders
