--- Whether a name that is missing was never there. A store that can tell (`marks`) keeps a mark of each record that is deleted,
-- and has another memory when it has lost all. There one record speaks for the place, `@store` (`@store@PART` in a part): it
-- names the memory in which nothing is missing but what is new.
-- @internal crown.register.place

local joined = require "crown.register.joined"
local record = require "crown.register.record"
local rule = require "crown.register.rule"

local place = {}

local STEPS_MOST = 4 -- looks and writes that find the record changed

-- @return "fine"; "wait", seconds, whether there was a record before; "write", the write; or nil, message
local function judge(session, trusts, answer, sent)
  local entry = session.place
  local seen, problem = session.seen:note(entry, answer, sent)
  if not seen then return nil, problem end
  local what, one = rule.place(session:me(trusts), seen)
  if what == "fine" then session.settled = answer.memory end
  if what == "wait" then
    return what, math.max(0, one - (session.env.now() - sent)), seen.record.lost
  end
  if what ~= "write" then return what end
  local text = record.text(one, session.env.nonce())
  return what, { name = entry.name, version = answer.version, memory = answer.memory, text = text }
end

local function settle(session, trusts)
  local env, store = session.env, session.store
  for _ = 1, STEPS_MOST do
    local sent = env.now()
    local answers, problem, code = store:look { session.place.name }
    if not answers then return nil, problem, code end
    local what, second, third = env.atomic(judge, session, trusts, answers[session.place.name], sent)
    if not what then return nil, second, "store" end
    if what == "fine" then return true end
    if what == "wait" then return false, second, third end
    local results
    results, problem, code = store:swap { second }
    if not results then return nil, problem, code end
  end
  return nil, "the record of the store changes faster than it can be written", "store"
end

--- Looks whether what is missing is new, and writes what is needed so that it will be.
-- @tparam Session session gets `settled`, the memory in which that is so
-- @bool trusts whether a place without any record was never used
-- @treturn boolean true; false, the seconds for which it is not, whether the place was there before; or nil, message, code
function place.settle(session, trusts)
  return joined(session.env, session.place, session.patience, function() return settle(session, trusts) end)
end

return place
