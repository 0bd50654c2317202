--- The end of a runtime, or of all that it leads: one write of the session says that all lives up to this one are over (S5), in
-- place of one for each election. Followers hear of a record that is given back, and see within a second that a session is over:
-- so it is for those who lead many.
-- @internal crown.register.ending

local duties = require "crown.register.duties"
local joined = require "crown.register.joined"
local record = require "crown.register.record"
local rule = require "crown.register.rule"
local runs = require "crown.register.runs"

local ending = {}

local PAUSE = 0.02 -- seconds in which nobody else ends, after which those who did are counted

local function owed(session)
  local count = 0
  for _ in pairs(session.unsettled) do count = count + 1 end
  return count
end

-- S16: whether a mark of a run is owed, which only the record itself takes.
local function owes_marks(session)
  for _, list in pairs(session.unsettled) do
    for _, duty in ipairs(list) do
      if duty.job and runs.owes(duty.job) then return true end
    end
  end
  return false
end

-- Every tree of this life has gone: nothing of it is led any more, and from now on no claim of it wins.
-- @return the write, and what it settles; or nil
local function prepare(session)
  local stands, settled = owed(session) >= session.many and not owes_marks(session) and session:leave(), {}
  if not stands then return nil end
  for slot, list in pairs(session.unsettled) do
    for _, duty in ipairs(list) do
      duty.settling = true
      settled[#settled + 1] = { slot, duty }
    end
  end
  local text = record.text(rule.over(stands.record), session.env.nonce())
  return { name = session.name, version = stands.version, memory = stands.memory, text = text }, settled
end

local function drop_all(session, settled)
  for _, one in ipairs(settled) do duties.drop(session, one[1], one[2]) end
end

-- Those who end together take some turns of the loop.
local function await_others(session)
  local before
  repeat
    before = owed(session)
    session.env.sleep(PAUSE)
  until owed(session) == before
end

local function finish(session)
  await_others(session)
  local write, settled = session.env.atomic(prepare, session)
  local results = write and session.store:swap { write }
  if results and results[1] then session.env.atomic(drop_all, session, settled) end
  return true
end

--- Settles all that a session owes by one write, where it leads nothing any more. Those who end together are waited for. What
-- that does not settle is given back one by one.
-- @tparam Session session
function ending.gather(session)
  if session.most < session.many then return end
  joined(session.env, session.ends, session.patience, function() return finish(session) end)
end

-- What nobody needs any more: no election names it, and nothing is owed of one.
local function useless(session)
  if session.is_named or not session.store.deletes or next(session.unsettled) then return nil end
  local stands = session:leave()
  return stands and { name = session.name, version = stands.version, memory = stands.memory, text = false }
end

--- Deletes the session's record when the last election is given back. Else each runtime would leave a record for ever. It stays
-- where an election may still name it: others would have to wait out a doubt.
-- @tparam Session session
function ending.forget(session)
  local write = session.env.atomic(useless, session)
  if write then session.store:swap { write } end
end

return ending
