--- The records of sessions that have died: who takes an election over deletes that of its last holder, long afterwards. Else each
-- runtime that was killed would leave one for ever.
--
-- Whatever else the dead session held has been claimed by then, where anybody wants it. Who comes later finds no session, and
-- waits out a doubt (S8): so a deletion is never unsafe, only sometimes slow.
-- @internal crown.register.cleaning

local cleaning = {}

--- Seconds for which the record of a dead session stays.
cleaning.LINGERS = 3600

--- Notes whose election was taken over.
-- @tparam Session session
-- @tparam table entry what was seen of the session that held it
function cleaning.note(session, entry)
  if not entry or not session.store.deletes or entry.name == session.name then return end
  session.dead[entry.name] = { version = entry.version, since = session.env.now() }
end

local function due(session)
  local writes, now = {}, session.env.now()
  for name, one in pairs(session.dead) do
    if now - one.since >= session.lingers then
      writes[#writes + 1] = { name = name, version = one.version, memory = session.stands.memory, text = false }
      session.dead[name] = nil
    end
  end
  return writes
end

--- Deletes those that are due, each over the version that was seen: one that has come to life again stays. What is not answered
-- is left to the next one who takes over from it.
-- @tparam Session session
function cleaning.sweep(session)
  if not session.stands or not next(session.dead) then return end
  local writes = session.env.atomic(due, session)
  if #writes > 0 then session.store:swap(writes) end
end

return cleaning
