--- Until when a term lasts that is not written again in the memory in which its session is renewed (S9).
--
-- A store that was put back to an older state knows nothing of the claims that came after that. Where sessions and elections have
-- one memory (`whole`), each renewal says in which memory its elections are. So others may claim as soon as all renewals in the
-- memories before have run out: see claim_foreign in crown.register.rule. In other stores S6 alone ends such a term.
-- @internal crown.register.limits

local rule = require "crown.register.rule"

local limits = {}

--- @tparam Session session that stands
-- @tparam table term
-- @treturn number the instant, infinity for a term that all renewals count for
function limits.of(session, term)
  if not session.store.whole or term.memory == session.stands.memory then return math.huge end
  return term.limit
end

--- Until when a term lasts that is not looked at any more (S6).
-- @tparam Session session
-- @tparam table term
-- @treturn number an instant
function limits.unseen(session, term)
  if session.store.tells_all then return math.huge end
  return term.patrol + rule.patrol_time(session.ttl)
end

--- Notes that a term is new, or written in a memory: `first_look` is no later than the last look at any term of the session.
-- @tparam Session session
-- @tparam table term
function limits.note(session, term)
  local is_limited = limits.of(session, term) < math.huge
  local looked = session.store.tells_all and math.huge or term.patrol
  session.first_look = is_limited and -math.huge or math.min(session.first_look, looked)
end

--- What renewals up to now give to a term.
-- @tparam Session session
-- @treturn number an instant
function limits.now(session)
  return session.sent + session.ttl
end

--- Notes that the session is renewed in another memory from now on: what it has is all for the terms of this one.
-- @tparam Session session
function limits.set(session)
  session.first_look = -math.huge
  for _, slot in pairs(session.terms) do
    if slot.term.memory == session.stands.memory then slot.term.limit = limits.now(session) end
  end
end

return limits
