--- The end of a runtime, or of all that it leads: one write of the session says that all lives up to this one are over (S5), in
-- place of one for each election. Followers hear of a record that is given back, and see within a second that a session is over:
-- so it is for those who lead many.
-- @internal crown.register.ending

local duties = require "crown.register.duties"
local joined = require "crown.register.joined"
local record = require "crown.register.record"
local rule = require "crown.register.rule"

local ending = {}

local function owed(session)
  local count = 0
  for _ in pairs(session.unsettled) do count = count + 1 end
  return count
end

-- Every tree of this life has gone: nothing of it is led any more, and from now on no claim of it wins.
-- @return the write, and what it settles; or nil
local function prepare(session)
  local stands, settled = owed(session) >= session.many and session:leave(), {}
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

local function finish(session)
  session.env.sleep(0) -- the others who end in this turn
  local write, settled = session.env.atomic(prepare, session)
  local results = write and session.store:swap { write }
  if results and results[1] then session.env.atomic(drop_all, session, settled) end
  return true
end

--- Settles all that a session owes by one write, where it leads nothing any more. Those who end in one turn of the loop are
-- waited for. What that does not settle is given back one by one.
-- @tparam Session session
function ending.gather(session)
  if session.most < session.many then return end
  joined(session.env, session.ends, session.patience, function() return finish(session) end)
end

return ending
