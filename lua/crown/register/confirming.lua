--- Terms that stand as they were written (S6): a store may say so with a word for each, in place of its record. With many
-- elections that is most of what a patrol costs.
-- @internal crown.register.confirming

local confirming = {}

-- What was seen of a term last is what was written last, in the memory of the session.
local function is_as_written(session, slot)
  local term = slot.term
  return slot.text == term.text and slot.memory == term.memory and slot.memory == session.stands.memory
end

local function asked_of(session, names)
  local asked = { names = {}, versions = {}, terms = {}, memory = session.stands and session.stands.memory }
  for _, name in ipairs(names) do
    local slot, at = session.terms[name], #asked.names + 1
    if slot and is_as_written(session, slot) then
      asked.names[at], asked.versions[at], asked.terms[at] = name, slot.version, slot.term
    end
  end
  return asked
end

-- A term that began after the question was sent, or of which something else was seen meanwhile, is not confirmed by it.
local function note(session, names, asked, answers, sent)
  local confirmed, left = {}, {}
  for i, name in ipairs(asked.names) do
    local slot = session.terms[name]
    local term = slot and slot.term
    if answers[i] and term == asked.terms[i] and slot.version == asked.versions[i] and slot.text == term.text then
      term.patrol, confirmed[name] = math.max(term.patrol, sent), true
    end
  end
  for _, name in ipairs(names) do
    if not confirmed[name] then left[#left + 1] = name end
  end
  return left
end

--- Asks which terms stand as they were written.
-- @tparam Session session
-- @tparam table names of elections
-- @treturn table the names of those that have to be looked at; or nil, message, code
function confirming.ask(session, names)
  local env, store = session.env, session.store
  if not store.same then return names end
  local asked = env.atomic(asked_of, session, names)
  if #asked.names == 0 then return names end
  local sent = env.now()
  local answers, problem, code = store:same(asked.names, asked.versions, asked.memory)
  if not answers then return nil, problem, code end
  return env.atomic(note, session, names, asked, answers, sent)
end

return confirming
