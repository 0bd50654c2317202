--- Whether a candidate can read and write its rows, or row-level security, a trigger, a rule or a constraint of somebody else's
-- keeps it from that: a part of the verb `check`. These are not read but tried, by statements that are taken back.
-- @internal crown.postgres.row_security

local explain = require "crown.link.explain"

local row_security = {}

local TAKEN_BACK = "CL001" -- SQLSTATE of our own: all of it was done

local ACTIVE = "SELECT current_user::text AS who, row_security_active(to_regclass($1)) AS active"

local TRIAL = [[
DO $trial$
DECLARE
  touched BIGINT;
BEGIN
%s
  RAISE EXCEPTION 'taken back' USING ERRCODE = ']] .. TAKEN_BACK .. [[';
END $trial$]]

local STEP = [[
  %s;
  GET DIAGNOSTICS touched = ROW_COUNT;
  IF touched = 0 THEN
    RAISE EXCEPTION 'the row is not there as it was written';
  END IF;]]

local WARNING = "row-level security is on for %s: where a policy hides a row from one candidate, two may lead"

-- What the server's words are followed by, where they are told alone.
local function without_step(problem) return problem:match "^(.*); turn it off" or problem end

local MEND = "row-level security of %s keeps %s from leading (%s): ALTER TABLE %s DISABLE ROW LEVEL SECURITY, or CREATE POLICY "
  .. "candidates ON %s TO %s USING (true)"

local BLOCKED = "%s does not take what %s writes (%s): look for triggers, rules and constraints there that are not crown-lua's"

-- @return what keeps this user from the rows of a table, or false; and a warning where policies count; or nil, message, code
local function try(client, named, statements, always)
  local rows, problem, code = client:query(ACTIVE, named)
  if not rows then return nil, problem, code end
  if not rows[1].active and not always then return false end
  local steps, who, is_active = {}, rows[1].who, rows[1].active
  for i, statement in ipairs(statements) do steps[i] = STEP:format(statement) end
  rows, problem, code = client:query(TRIAL:format(table.concat(steps, "\n")))
  if code == TAKEN_BACK then return false, is_active and WARNING:format(named) or nil end
  if not rows and (code == "timeout" or code == "closed") then return nil, problem, code end
  if not is_active then
    local server = client:condition().server:gsub("/[^/]*$", "") -- which may name the database
    return BLOCKED:format(named, who, explain.bare(server, problem))
  end
  return MEND:format(named, who, without_step(problem), named, named, who)
end

--- What keeps a user from seeing rows, where it may: a policy hides them, and the server says nothing of that.
-- @param client of crown.postgres
-- @string named the table
-- @treturn string a sentence; or nil
function row_security.hides(client, named)
  local rows = client:query(ACTIVE, named)
  return rows and rows[1].active
    and ("row-level security is on for %s: it may hide elections from %s"):format(named, rows[1].who) or nil
end

--- Tries what a candidate does with the rows of tables.
-- @tparam table lacks an array of texts, to which is added what keeps the user from that, and a field `warning` where policies
-- count
-- @param client of crown.postgres
-- @tparam table tables `{ name, privileges, statements, always }` each; a statement that touches no row has failed. `always`:
-- also where row-level security does not count for this user
-- @treturn table lacks; or nil, message, code
function row_security.add(lacks, client, tables)
  for _, one in ipairs(tables) do
    local lack, more, code = try(client, one[1], one[3], one[4])
    if lack == nil then return nil, more, code end
    lacks[#lacks + 1], lacks.warning = lack or nil, lacks.warning or more
  end
  return lacks
end

return row_security
