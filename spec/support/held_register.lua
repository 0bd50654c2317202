--- Terms of a session over a store that a spec plays by hand, and what another runtime writes there.
local world = require "support.played_register"

local held = {}

held.TTL = 12
held.MARGIN = held.TTL / 100 + 0.25
held.EPOCH = 900000 -- of others: above those of a runtime that has begun here
held.SESSION, held.OTHER = "@t-12", "@other-12"

--- A runtime whose candidates lead.
-- @tparam[opt] table names of elections ({ "a" })
-- @treturn table of support.played_register
-- @return its members
function held.used(names)
  local here, members = world(), {}
  for i, name in ipairs(names or { "a" }) do
    members[i] = here.member(name)
    assert(members[i].claim() == true)
  end
  return here, unpack(members)
end

--- Has another runtime's records stand there.
-- @tparam table here
-- @string name of an election
-- @string[opt] more fields of its record
function held.strange(here, name, more)
  here.rows[held.OTHER] = { text = '{"v":1,"serial":1,"memory":"m","ttl":12,"at":1,"node":"o","nonce":"o"}', version = "o1" }
  here.rows[name] = { version = "x1",
    text = ('{"v":1,"serial":20,"memory":"m","epoch":%d,"by":"%s","at":1,"node":"o","nonce":"x"%s}'):format(held.EPOCH, held.OTHER,
      more or "") }
end

--- Has that runtime renew its session.
-- @tparam table here
-- @string word another nonce and version
function held.renewed(here, word)
  here.rows[held.OTHER] = { text = here.rows[held.OTHER].text:gsub('"nonce":"[^"]*"', '"nonce":"' .. word .. '"'), version = word }
end

return held
