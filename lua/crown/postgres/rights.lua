--- What a candidate lacks on a Postgres server: a part of the verb `check`. Only catalogs are read, but for what
-- crown.postgres.row_security tries.
-- @internal crown.postgres.rights

local parts = require "crown.postgres.parts"
local row_security = require "crown.postgres.row_security"
local tables = require "crown.postgres.tables"

local rights = {}

-- $1 table, %s whether it is whole.
local LOOK = [[
SELECT current_user::text AS who, pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS read_only,
  current_schema() IS NOT NULL AND has_schema_privilege(current_schema(), 'CREATE') AS may_create,
  to_regclass($1) IS NOT NULL AS there, to_regclass('crown_store_v1') IS NOT NULL AS has_store,
  coalesce((SELECT relpersistence = 'u' FROM pg_class WHERE oid = to_regclass($1)), FALSE) AS unlogged,
  coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1)), FALSE) AS owns,
  %s AS whole, ]] .. tables.STORE_IS_WHOLE .. [[ AS store_is_whole,
  coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('crown_store_v1')), FALSE) AS owns_store,
  has_function_privilege('pg_control_system()', 'EXECUTE') AS may_identify]]

local LACKING = [[
SELECT current_user::text AS who, to_regclass($1) IS NOT NULL AS there,
  (SELECT string_agg(p, ', ' ORDER BY n) FROM unnest(string_to_array($2, ',')) WITH ORDINALITY AS u(p, n)
    WHERE to_regclass($1) IS NOT NULL AND NOT has_table_privilege(to_regclass($1), p)) AS lacking]]

local function words(list)
  return (list:gsub(", ([^,]*)$", " and %1"))
end

--- Rights on one table.
-- @param client of crown.postgres
-- @string named the table
-- @string privileges with commas between them
-- @treturn table an array of texts; or nil and a message
-- @treturn boolean whether there is such a table
function rights.on(client, named, privileges)
  local rows, problem = client:query(LACKING, named, privileges)
  if not rows then return nil, problem end
  local row = rows[1]
  return { row.lacking and ("%s may not %s %s"):format(row.who, words(row.lacking), named) }, row.there
end

local function of_server(row, part, lacks)
  local misplaced = lacks[1]
  local function lack(...) lacks[#lacks + 1] = (...):format(select(2, ...)) end
  if row.standby then
    lack "the server is a standby: it takes no writes"
  elseif row.read_only then
    lack("%s's transactions are read-only: see default_transaction_read_only", row.who)
  end
  if row.unlogged then lack("%s is UNLOGGED, so a crash empties it: ALTER TABLE %s SET LOGGED", part.table, part.table) end
  if row.there and not row.whole and not row.owns then
    lack("%s is not complete, and %s does not own it: see the oracle's page", part.table, row.who)
  elseif row.has_store and not row.store_is_whole and not row.owns_store then
    lack("crown_store_v1 is not complete, and %s does not own it: see the oracle's page", row.who)
  elseif not (row.there and row.has_store) and not row.may_create and not misplaced then
    lack("there is no table %s, and %s may not create it: see the oracle's page", row.there and "crown_store_v1" or part.table,
      row.who)
  end
  if not row.may_identify then
    lack("%s may not call pg_control_system(): GRANT EXECUTE ON FUNCTION pg_control_system() TO %s", row.who, row.who)
  end
  return row.store_is_whole and row.whole
end

-- A pooler gives its clients a process id of its own.
local function is_pooled(client)
  local rows, problem = client:query "SELECT pg_backend_pid() AS pid"
  if not rows then return nil, problem end
  return rows[1].pid ~= client.bare:server_pid()
end

--- Rights on the tables of a part, and whether it may be kept behind a pooler where there is one.
-- @param client of crown.postgres
-- @string name of the part: see crown.postgres.parts
-- @string[opt] schema the option of that name
-- @treturn table an array of texts, or nil and a message
function rights.lacks(client, name, schema)
  local part, lacks = parts[name], {}
  lacks[1] = tables.misplaced(client, name, schema)
  local rows, problem = client:query(LOOK:format(tables.is_whole(part)), part.table)
  if not rows then return nil, problem end
  local made = of_server(rows[1], part, lacks)
  if part.pooled then
    local pooled
    pooled, problem = is_pooled(client)
    if pooled == nil then return nil, problem end
    if pooled then lacks[#lacks + 1] = part.pooled end
  end
  for _, right in ipairs(part.rights) do
    local found
    found, problem = rights.on(client, right[1], right[2])
    if not found then return nil, problem end
    lacks[#lacks + 1] = found[1]
  end
  if not made or #lacks > 0 then return lacks end
  local found, why, code = row_security.add(lacks, client, part.rights)
  if not found or #lacks > 0 then return found, why, code end
  rows, problem = client:query("SELECT FROM crown_store_v1 WHERE part = $1", name)
  if not rows then return nil, problem end
  if not rows[1] then lacks[1] = tables.ROW_LOST:format(name) end
  return lacks
end

return rights
