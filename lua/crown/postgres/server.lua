--- What a Postgres server and its catalogs say to tools about a table: how it is, and what a candidate lacks there.
-- @internal crown.postgres.server

local row_security = require "crown.postgres.row_security"
local schema = require "crown.postgres.schema"

local server = {}

local HEALTH = [[
SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
  current_setting('fsync') = 'on' AS fsync, current_setting('synchronous_standby_names') AS synchronous,
  pg_backend_pid() AS pid, (SELECT count(*)::int FROM pg_stat_replication) AS replicas,
  (SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1)) AS persistence,
  EXISTS (SELECT FROM pg_locks WHERE relation = to_regclass($1) AND mode = 'AccessExclusiveLock') AS blocked]]

--- What is lost where replication is asynchronous, by the register.
local LATE = "after a failover what was written last may be lost, and is waited for"

local ALONE = "synchronous_standby_names (%s) wants more standbys than are there (%d), so no write is confirmed and nobody can "
  .. "lead: start them, or write synchronous_commit=local in the URL"

-- Of a list such as "ANY 2 (a, b, c)" that many have to confirm.
local function lacks_standbys(row)
  if row.synchronous == "" then return nil end
  local wanted = tonumber(row.synchronous:match "^%a* ?(%d+) ?%(") or 1
  return row.replicas < wanted and ALONE:format(row.synchronous, row.replicas) or nil
end

local function warnings_of(row, named, late)
  local warnings = {}
  local function warn(text) warnings[#warnings + 1] = text end
  if not row.fsync then warn "fsync is off: after a crash the server may have forgotten a lease" end
  if row.persistence == "u" then warn(named .. " is UNLOGGED: a crash empties it") end
  if row.blocked then warn(named .. " is locked by somebody: nobody can refresh") end
  if row.replicas > 0 and row.synchronous == "" then
    warn("replication is asynchronous: " .. late)
  end
  warnings[#warnings + 1] = lacks_standbys(row)
  return warnings
end

--- What the server says of itself.
-- @param client of crown.postgres
-- @string named the table
-- @string late what follows of asynchronous replication
-- @string[opt] more columns to ask for
-- @treturn table `{ facts =, warnings =, hides = why elections may be there that are not seen }`; or nil, message, code
-- @treturn table the row that it said it by
function server.said(client, named, late, more)
  local rows, problem, code = client:query(HEALTH .. (more and ", " .. more or ""), named)
  if not rows then return nil, problem, code end
  local row = rows[1]
  local facts = { { "Store", ("PostgreSQL %s, %s, %d replica%s"):format(row.version:match "%S+",
    row.standby and "standby" or "primary", row.replicas, row.replicas == 1 and "" or "s") } }
  if row.pid ~= client.bare:server_pid() then facts[#facts + 1] = { "Connection", "by way of a pooler" } end
  local warnings, hides = warnings_of(row, named, late), row_security.hides(client, named)
  warnings[#warnings + 1] = hides
  return { facts = facts, warnings = warnings, hides = hides }, row
end

--- What `info` says of it.
-- @param client of crown.postgres
-- @string named the table
-- @string[opt] wanted the option schema
-- @treturn table as `said`; or nil, message, code
function server.health(client, named, wanted)
  local said, row, code = server.said(client, named, LATE, schema.placement { named })
  if not said then return nil, row, code end
  said.warnings[#said.warnings + 1] = schema.misplaced(named, row, wanted)
  return said
end

--- What to say of a table in which one name may stand twice.
server.UNKEYED = "{table} has no key over lock_name, so two could lead: start a candidate once as the table's owner, or CREATE "
  .. "UNIQUE INDEX ON {table} (lock_name)"

--- What to say of a view in the table's place.
server.VIEW = "{table} is a view, and no table: rename it, or have candidates look in another schema by the option schema"

local NEEDED = { "SELECT", "INSERT", "UPDATE" }

local LACKING = [[
SELECT (SELECT string_agg(p, ', ' ORDER BY n) FROM unnest($2::text[]) WITH ORDINALITY AS u(p, n)
  WHERE to_regclass($1) IS NOT NULL AND NOT has_table_privilege(to_regclass($1), p)) AS lacking]]

local LOCKED = "55P03"

-- A lock on the row alone is seen by who would write it. It is taken, and let go with the answer.
local function held_by_another(client, sql, name)
  local rows, problem, code = client:query(sql.hold, name)
  return not rows and code == LOCKED and problem or nil
end

--- What a candidate lacks, for `check --store`. Only catalogs are read, but for what crown.postgres.row_security tries.
-- @param client of crown.postgres
-- @tparam table sql of crown.postgres.register
-- @string[opt] wanted the option schema
-- @string[opt] name of an election, whose row is tried
-- @treturn table an array of texts; or nil, message, code
function server.lacks(client, sql, wanted, name)
  local rows, problem, code = client:query(sql.rights)
  if not rows then return nil, problem, code end
  local row, lacks, named = rows[1], {}, sql.table
  local function lack(...) lacks[#lacks + 1] = (...):format(select(2, ...)) end
  local misplaced = schema.misplaced(named, row, wanted)
  lacks[1] = misplaced
  if row.standby then
    lack "the server is a standby: it takes no writes"
  elseif row.read_only then
    lack("%s's transactions are read-only: see default_transaction_read_only", row.who)
  end
  if sql.waits then lacks[#lacks + 1] = lacks_standbys(row) end
  if row.unlogged then lack("%s is UNLOGGED, so a crash empties it: ALTER TABLE %s SET LOGGED", named, named) end
  if row.is_view then
    lacks[#lacks + 1] = server.VIEW:gsub("{table}", named)
  elseif row.there and not row.keyed and not row.owns then
    lacks[#lacks + 1] = server.UNKEYED:gsub("{table}", named)
  elseif row.there and not row.complete and not row.owns then
    lack("%s is not complete, and %s does not own it: see the oracle's page", named, row.who)
  elseif not row.there and not row.may_create and not misplaced then
    lack("there is no table %s, and %s may not create it: see the oracle's page", named, row.who)
  end
  if not row.may_identify then
    lack("%s may not call pg_control_system(): GRANT EXECUTE ON FUNCTION pg_control_system() TO %s", row.who, row.who)
  end
  rows, problem, code = client:query(LACKING, named, "{" .. table.concat(NEEDED, ",") .. "}")
  if not rows then return nil, problem, code end
  if rows[1].lacking then lack("%s may not %s %s", row.who, (rows[1].lacking:gsub(", ([^,]*)$", " and %1")), named) end
  if #lacks > 0 or not row.complete then return lacks end
  lacks[1] = name and held_by_another(client, sql, name)
  return row_security.add(lacks, client, { { named, nil, sql.trial, true } })
end

return server
