--- The tables of the Postgres oracles, and what tells whether the store still remembers what it promised.
--
-- `crown_store_v1` has a row for each kind of table ("lease", "advisory", "registry"). It names the place where the promises were
-- written: the cluster's system identifier, its timeline, and the table itself. A promoted replica, a restored backup
-- or a table made anew is another place. Promises may be missing there, so nobody is believed to be free until the
-- longest TTL in use has passed, and epochs go on well above all that can have been lost.
-- @module crown.postgres.tables

local tables = {}

--- How far the epochs jump when promises may have been lost: more terms than any store loses.
tables.EPOCH_JUMP = 1000000

--- What to do about a missing row of crown_store_v1.
tables.ROW_LOST = "crown_store_v1 has lost a row: INSERT INTO crown_store_v1 (part) VALUES ('%s')"

local STORE = [[
CREATE TABLE IF NOT EXISTS crown_store_v1 (
  part TEXT PRIMARY KEY,
  identity TEXT,
  trusted_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  longest_ttl DOUBLE PRECISION NOT NULL DEFAULT 0,
  epoch_floor BIGINT NOT NULL DEFAULT 0
);
]]

-- The kinds of tables. `columns`: all columns of ours, for the check that nothing is missing.
tables.parts = {
  lease = {
    table = "crown_lease_v1",
    columns = { "claim", "epoch", "evicted" },
    trigger = "crown_lease_v1_keep",
    make = [[
CREATE TABLE IF NOT EXISTS crown_lease_v1 (
  lock_name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL
);
ALTER TABLE crown_lease_v1
  ADD COLUMN IF NOT EXISTS claim BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS epoch BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS evicted BOOLEAN NOT NULL DEFAULT FALSE;
CREATE OR REPLACE FUNCTION crown_lease_v1_keep() RETURNS trigger LANGUAGE plpgsql AS $keep$
BEGIN
  EXECUTE format('UPDATE %s SET holder = '''', expires_at = clock_timestamp() WHERE lock_name = $1', TG_RELID::regclass)
    USING OLD.lock_name;
  PERFORM pg_notify('crown_lease_v1', 'freed ' || OLD.lock_name);
  RETURN NULL;
END $keep$;
IF NOT EXISTS (SELECT FROM pg_trigger
    WHERE tgrelid = 'crown_lease_v1'::regclass AND tgname = 'crown_lease_v1_keep') THEN
  CREATE TRIGGER crown_lease_v1_keep BEFORE DELETE ON crown_lease_v1
    FOR EACH ROW EXECUTE FUNCTION crown_lease_v1_keep();
END IF;
]],
  },
  advisory = {
    table = "crown_advisory_v1",
    columns = { "lock_name", "holder", "epoch", "acting_until" },
    make = [[
CREATE TABLE IF NOT EXISTS crown_advisory_v1 (
  lock_name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  epoch BIGINT NOT NULL DEFAULT 0,
  acting_until TIMESTAMPTZ NOT NULL,
  renewed_at TIMESTAMPTZ NOT NULL,
  pid INTEGER NOT NULL,
  direct BOOLEAN NOT NULL,
  killed BIGINT NOT NULL,
  evicted BOOLEAN NOT NULL DEFAULT FALSE
);
]],
  },
  registry = {
    table = "crown_registry_v1",
    docs = "docs/registry.md",
    columns = { "registry", "version", "epoch", "leader", "leader_token", "old_leader", "assumed", "members", "locked_until",
      "evicted", "committed_epoch", "committed", "tail" },
    trigger = "crown_registry_v1_keep",
    make = [[
CREATE TABLE IF NOT EXISTS crown_registry_v1 (
  registry TEXT PRIMARY KEY,
  version BIGINT NOT NULL DEFAULT 0,
  epoch BIGINT NOT NULL DEFAULT 0,
  leader TEXT,
  leader_token TEXT,
  old_leader TEXT,
  assumed BIGINT NOT NULL DEFAULT 0,
  members JSONB NOT NULL DEFAULT '{}',
  locked_until TIMESTAMPTZ NOT NULL DEFAULT 'epoch',
  evicted BOOLEAN NOT NULL DEFAULT FALSE,
  committed_epoch BIGINT NOT NULL DEFAULT 0,
  committed BIGINT NOT NULL DEFAULT 0,
  tail BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS crown_registry_queue_v1 (
  registry TEXT NOT NULL,
  number BIGINT NOT NULL,
  message JSONB NOT NULL,
  PRIMARY KEY (registry, number)
);
CREATE OR REPLACE FUNCTION crown_registry_v1_keep() RETURNS trigger LANGUAGE plpgsql AS $keep$
BEGIN
  RAISE EXCEPTION 'crown_registry_v1 keeps the epochs: its rows are not deleted'
    USING HINT = 'A registry that nobody uses any more can be removed with the trigger disabled.';
END $keep$;
IF NOT EXISTS (SELECT FROM pg_trigger
    WHERE tgrelid = 'crown_registry_v1'::regclass AND tgname = 'crown_registry_v1_keep') THEN
  CREATE TRIGGER crown_registry_v1_keep BEFORE DELETE OR TRUNCATE ON crown_registry_v1
    FOR EACH STATEMENT EXECUTE FUNCTION crown_registry_v1_keep();
END IF;
]],
  },
}

-- Where the promises are written.
local PLACE = [[(SELECT system_identifier::text FROM pg_control_system()) || ':' ||
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)]]

-- Read only, and of the catalogs only: everybody may, and it locks nothing. $1 table, $2 trigger or '', $3 columns.
local LOOK = [[
SELECT pg_backend_pid() AS pid, ]] .. PLACE .. [[ AS place,
  pg_current_wal_lsn() - '0/0'::pg_lsn AS written,
  current_setting('fsync')::boolean AS fsync,
  to_regclass($1)::oid::int8 AS oid,
  to_regclass('crown_store_v1') IS NOT NULL AS store,
  (SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1)) AS persistence,
  (SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass($1) AND NOT attisdropped
     AND attname = ANY(string_to_array($3, ',')))::int AS columns,
  $2 = '' OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = $2) AS keeps]]

-- Makes what is missing; one at a time, however many start at once. A table that is made here has promised nothing
-- yet, so it is relied on at once. One without its row in crown_store_v1 has lost it, or was made by hand: it has to
-- wait.
local MAKE = [[
DO $make$
DECLARE
  known BOOLEAN;
BEGIN
  PERFORM pg_advisory_xact_lock(x'63726f776e6c7561'::bigint);
  known := EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('%s') AND attname = 'epoch');
  %s
  %s
  INSERT INTO crown_store_v1 (part, identity) VALUES ('%s', CASE WHEN NOT known
    THEN ]] .. PLACE .. [[ || ':' || to_regclass('%s')::oid END)
    ON CONFLICT DO NOTHING;
END $make$]]

-- $1 part, $2 identity, $3 TTL in seconds, $4 whether this process knows that something was lost.
local TRUST = [[
WITH changed AS (
UPDATE crown_store_v1 SET
  trusted_at = CASE WHEN identity IS DISTINCT FROM $2 OR $4::boolean
    THEN greatest(trusted_at, clock_timestamp() + make_interval(secs => greatest(longest_ttl, $3::float8)))
    ELSE trusted_at END,
  epoch_floor = CASE WHEN identity IS DISTINCT FROM $2 OR $4::boolean
    THEN greatest(epoch_floor, (SELECT coalesce(max(epoch), 0) FROM %s)) + %d ELSE epoch_floor END,
  longest_ttl = greatest(longest_ttl, $3::float8),
  identity = $2
WHERE part = $1 AND (identity IS DISTINCT FROM $2 OR longest_ttl < $3::float8 OR $4::boolean)
RETURNING trusted_at)
SELECT extract(epoch FROM coalesce((SELECT trusted_at FROM changed), trusted_at) - clock_timestamp())::float8 AS left
FROM crown_store_v1 WHERE part = $1]]

local function look(client, part, timeout, generation)
  local rows, problem, code = client:query(LOOK, timeout, generation, part.table, part.trigger or "",
    table.concat(part.columns, ","))
  if not rows then return nil, problem, code end
  return rows[1]
end

local function complete(seen, part)
  return seen.oid and seen.store and seen.columns == #part.columns and seen.keeps
end

local function make(client, name, part, timeout, generation)
  local made, problem, code = client:query(MAKE:format(part.table, part.make, STORE, name, part.table), timeout,
    generation)
  if made then return true end
  if code == "42501" then
    return nil, ("%s is not complete and this user may not change that (%s): run the statements of "
      .. "%s as the table's owner"):format(part.table, problem, part.docs or "docs/oracle-postgres.md"), code
  end
  return nil, problem, code
end

-- Whether what this process remembers of the store speaks against what it sees now.
local function contradicts(memory, identity, seen)
  return memory.identity ~= nil and (memory.identity ~= identity or tonumber(seen.written) < memory.written)
end

--- Sees to it that the tables are there and can be relied on; once for each connection.
-- @param client of crown.core.postgres
-- @string name of the part: "lease", "advisory" or "registry"
-- @tparam table memory kept by the caller from connection to connection
-- @tparam table limits `ttl` and `timeout` in seconds, `generation` of the connection
-- @treturn table `{ distrust = seconds to sit out or nil, pid =, fsync = }`, or nil, message, code
function tables.prepare(client, name, memory, limits)
  local part = tables.parts[name]
  local seen, problem, code = look(client, part, limits.timeout, limits.generation)
  if seen and not complete(seen, part) then
    local made
    made, problem, code = make(client, name, part, limits.timeout, limits.generation)
    seen = made and look(client, part, limits.timeout, limits.generation)
  end
  if not seen then return nil, problem, code end
  if seen.persistence == "u" then
    return nil, ("%s is UNLOGGED, so a crash empties it and two could lead: ALTER TABLE %s SET LOGGED")
      :format(part.table, part.table), "usage"
  end
  local identity = ("%s:%d"):format(seen.place, seen.oid)
  local lost = contradicts(memory, identity, seen)
  local rows
  rows, problem, code = client:query(TRUST:format(part.table, tables.EPOCH_JUMP), limits.timeout, limits.generation,
    name, identity, limits.ttl, lost)
  if not rows then return nil, problem, code end
  if not rows[1] then
    return nil, tables.ROW_LOST:format(name), "store"
  end
  memory.identity, memory.written = identity, tonumber(seen.written)
  local left = rows[1].left
  return { distrust = left > 0 and left or nil, pid = seen.pid, fsync = seen.fsync }
end

return tables
