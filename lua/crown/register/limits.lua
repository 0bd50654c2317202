--- Until when a term lasts that is not written again in the memory in which its session is renewed (S9).
--
-- A store that was put back to an older state knows nothing of the claims that came after that. Where sessions and elections have
-- one memory (`whole`), each renewal says in which memory its elections are. So others may claim as soon as all renewals in the
-- memories before have run out: see claim_foreign in crown.register.rule. In other stores S6 alone ends such a term.
-- @internal crown.register.limits

local limits = {}

--- @tparam Session session that stands
-- @tparam table term
-- @treturn number the instant, infinity for a term that all renewals count for
function limits.of(session, term)
  if not session.store.whole or term.memory == session.stands.memory then return math.huge end
  return term.limit
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
  for _, slot in pairs(session.terms) do
    if slot.term.memory == session.stands.memory then slot.term.limit = limits.now(session) end
  end
end

return limits
