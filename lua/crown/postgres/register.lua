--- The table in which Postgres keeps a register, and the statements that make it, read it and write it.
--
-- `crown_lease_v1` is the table of the Elixir library Crown, whose nodes know `lock_name`, `holder` and `expires_at`; `epoch` is
-- also what version 0.1.0 of crown-lua knows. `version` and `record` are ours alone, and what others write leaves them as they
-- are. A row is ours as long as its holder is one that we wrote: `NODE @SESSION`, ` @` for nobody, ` @doubt`; no others have " @"
-- in theirs. (Version 0.1.0 shortens what is promised by a holder with a # in it.) So the version that is compared is both:
-- `version || ' ' || holder`.
--
-- `crown_register_v1` (shared=0) has the same columns, and nobody else knows it.
-- @internal crown.postgres.register

local schema = require "crown.postgres.schema"

local register = {}

--- The channel on which changes are told: a word, then the name of the election. Version 0.1.0 knows the words freed and evict.
register.CHANNEL = "crown_lease_v1"

local COLUMNS = { "lock_name", "holder", "expires_at", "epoch", "version", "record" }

-- What makes that no row vanishes unseen. They work for each session, also as `session_replication_role` says replica.
local TRIGGERS = { "keep", "name", "stay" }

-- Where the promises are: the cluster, its timeline, the database, the table's file, and when the server was started. A standby
-- writes on no timeline, and refuses. A row may have been deleted or renamed while a trigger was off: the transactions that
-- made the triggers what they are are a part of it. While one is off there is none, nor while two rows may have one name.
local MEMORY = [[((SELECT system_identifier::text FROM pg_control_system()) || ':' ||
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ':' ||
  (SELECT oid FROM pg_database WHERE datname = current_database()) || ':' || pg_relation_filenode('{table}'::regclass) || ':' ||
  extract(epoch FROM pg_postmaster_start_time())::text || ':' ||
  (SELECT string_agg(xmin::text, ',' ORDER BY tgname) FROM pg_trigger WHERE {guards}
    HAVING count(*) = {count} AND {keyed}))]]

local VERSION = "coalesce(r.version, '') || ' ' || r.holder"

-- Beside what is asked for, one row has the memory, and the time as `left`. What is longer than any record is cut: nobody can
-- read it anyway, and the others are not to wait for its megabytes.
local LOOK = [[
SELECT {memory} AS memory, NULL AS name,
  NULL AS record, NULL AS version, NULL AS holder, NULL::int8 AS epoch,
  extract(epoch FROM clock_timestamp())::float8 AS left, NULL::boolean AS ours
UNION ALL
SELECT NULL, r.lock_name, left(r.record, 131072), {version}, r.holder, r.epoch,
  (extract(epoch FROM r.expires_at) - extract(epoch FROM clock_timestamp()))::float8, r.holder LIKE '% @%'
FROM {table} r WHERE r.lock_name IN (SELECT json_array_elements_text($1::json))]]

-- The same of a table without our columns, or without what keeps its rows: by way of JSON.
local LOOK_AT_ANY = [[
SELECT NULL AS memory, r.lock_name AS name, to_jsonb(r) ->> 'record' AS record,
  coalesce(to_jsonb(r) ->> 'version', '') AS version, r.holder, coalesce((to_jsonb(r) ->> 'epoch')::int8, 0) AS epoch,
  (extract(epoch FROM r.expires_at) - extract(epoch FROM clock_timestamp()))::float8 AS left, r.holder LIKE '% @%' AS ours
FROM {table} r WHERE r.lock_name IN (SELECT json_array_elements_text($1::json))]]

-- $1 what is to be written. Durable before it counts, whatever the server's settings are, unless it only gives back. Rows are
-- locked in the order of their names, so that two of these do not wait for each other. What others hold is theirs until it is
-- over by this server's clock, by which they live. A session that is renewed keeps others away from all that it holds.
local SWAP = [[
WITH here AS MATERIALIZED (SELECT {memory} AS memory, set_config('synchronous_commit', '{commit}', true) AS durable),
w AS MATERIALIZED (
  SELECT w.* FROM here, json_to_recordset($1::json) AS w (name text, was text, version text, record text, holder text,
    lasts float8, epoch int8, renews text, told text, memory text)
  WHERE w.memory = here.memory AND here.durable IS NOT NULL),
found AS MATERIALIZED (
  SELECT w.* FROM w JOIN {table} r ON r.lock_name = w.name
  WHERE w.was = {version} AND (r.holder LIKE '% @%' OR r.expires_at <= clock_timestamp())
  ORDER BY r.lock_name FOR NO KEY UPDATE OF r),
changed AS (
  UPDATE {table} r SET version = found.version, record = found.record, holder = found.holder, epoch = found.epoch,
    expires_at = coalesce(clock_timestamp() + make_interval(secs => found.lasts), r.expires_at)
  FROM found WHERE r.lock_name = found.name RETURNING r.version, found.told || ' ' || found.name AS notice),
made AS (
  INSERT INTO {table} (lock_name, version, record, holder, epoch, expires_at)
  SELECT name, version, record, holder, epoch, clock_timestamp() + make_interval(secs => coalesce(lasts, 0))
  FROM w WHERE was IS NULL ORDER BY name ON CONFLICT DO NOTHING RETURNING version),
kept AS (
  UPDATE {table} r SET expires_at = clock_timestamp() + make_interval(secs => s.lasts)
  FROM (SELECT renews, lasts FROM found WHERE renews IS NOT NULL) s
  WHERE r.holder = s.renews AND r.lock_name NOT IN (SELECT name FROM w))
SELECT memory, (SELECT json_agg(version)::text FROM (SELECT version FROM changed UNION ALL TABLE made) AS done) AS done,
  (SELECT count(pg_notify('{channel}', notice)) FROM changed WHERE notice IS NOT NULL) AS notified
FROM here]]

-- $1 the sessions that are to be deleted, each over its version. A role that may not delete leaves them.
local CLEAN = [[
WITH here AS MATERIALIZED (SELECT {memory} AS memory, set_config('crown_lua.deletes', 'sessions', true) AS may),
w AS MATERIALIZED (
  SELECT w.* FROM here, json_to_recordset($1::json) AS w (name text, was text, memory text)
  WHERE w.memory = here.memory AND here.may IS NOT NULL),
gone AS (DELETE FROM {table} r USING w WHERE r.lock_name = w.name AND w.was = {version} RETURNING r.lock_name)
SELECT (SELECT json_agg(lock_name)::text FROM gone) AS done]]

--- What makes a table, in words for its owner: docs/oracle-postgres.md shows it. A row that is deleted stays. Where somebody
-- leads by it, the leader is asked to go, also one of version 0.1.0; where it is another one's, it is free. A session's goes for
-- its runtime, and when nobody has renewed it for a day. What nobody can read goes, and its row tells that it was lost. No row
-- gets another name.
register.MAKE = [[
CREATE TABLE IF NOT EXISTS {table} (
  lock_name TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at TIMESTAMPTZ NOT NULL);
ALTER TABLE {table} SET (fillfactor = 50);
ALTER TABLE {table}
  ADD COLUMN IF NOT EXISTS epoch BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS version TEXT,
  ADD COLUMN IF NOT EXISTS record TEXT;
CREATE INDEX IF NOT EXISTS {table}_holder ON {table} (holder);
CREATE OR REPLACE FUNCTION {table}_keep() RETURNS trigger LANGUAGE plpgsql AS $keep$
DECLARE
  id TEXT := md5(random()::text || clock_timestamp()::text);
  stood JSONB;
BEGIN
  BEGIN
    stood := OLD.record::jsonb;
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END;
  IF OLD.record IS NOT NULL AND (stood ->> 'v' IS NULL OR jsonb_typeof(stood -> 'serial') IS DISTINCT FROM 'number'
    OR OLD.lock_name NOT LIKE '@%' AND jsonb_typeof(stood -> 'epoch') IS DISTINCT FROM 'number') THEN
    EXECUTE format('UPDATE %s SET version = $2, record = NULL, holder = '' @'' WHERE lock_name = $1', TG_RELID::regclass)
      USING OLD.lock_name, id;
    PERFORM pg_notify('{channel}', 'evict ' || OLD.lock_name);
  ELSIF OLD.lock_name LIKE '@%' THEN
    IF OLD.lock_name NOT LIKE '@store%' AND (OLD.expires_at < clock_timestamp() - interval '1 day'
      OR current_setting('crown_lua.deletes', TRUE) = 'sessions') THEN
      RETURN OLD;
    END IF;
  ELSIF OLD.holder LIKE '%_ @%' THEN
    EXECUTE format('UPDATE %s SET version = $2, record = $3 WHERE lock_name = $1', TG_RELID::regclass)
      USING OLD.lock_name, id, (stood || jsonb_build_object('directive', 'evict', 'nonce', id,
        'serial', (stood ->> 'serial')::int8 + 1))::text;
    PERFORM pg_notify('{channel}', 'evict ' || OLD.lock_name);
  ELSIF OLD.holder LIKE '%#%' AND OLD.expires_at > clock_timestamp() THEN
    IF to_jsonb(OLD) ? 'evicted' THEN
      EXECUTE format('UPDATE %s SET evicted = TRUE WHERE lock_name = $1', TG_RELID::regclass) USING OLD.lock_name;
    END IF;
    PERFORM pg_notify('{channel}', 'evict ' || OLD.lock_name);
  ELSIF OLD.holder NOT LIKE '% @%' THEN
    EXECUTE format('UPDATE %s SET holder = '''', expires_at = clock_timestamp() WHERE lock_name = $1',
      TG_RELID::regclass) USING OLD.lock_name;
    PERFORM pg_notify('{channel}', 'freed ' || OLD.lock_name);
  END IF;
  RETURN NULL;
END $keep$;
DROP TRIGGER IF EXISTS {table}_keep ON {table};
CREATE TRIGGER {table}_keep BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_keep();
CREATE OR REPLACE FUNCTION {table}_stay() RETURNS trigger LANGUAGE plpgsql AS $stay$
BEGIN
  RAISE EXCEPTION '{table} says who leads: it is not truncated'
    USING HINT = 'crown-lua evict asks a leader to go. A row that is deleted asks its leader to go.';
END $stay$;
DROP TRIGGER IF EXISTS {table}_stay ON {table};
CREATE TRIGGER {table}_stay BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {table}_stay();
CREATE OR REPLACE FUNCTION {table}_name() RETURNS trigger LANGUAGE plpgsql AS $name$
BEGIN
  RAISE EXCEPTION '{table} says who leads: its rows are not renamed'
    USING HINT = 'An election begins under another name by itself. A row that is deleted asks its leader to go.';
END $name$;
DROP TRIGGER IF EXISTS {table}_name ON {table};
CREATE TRIGGER {table}_name BEFORE UPDATE OF lock_name ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_name();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_keep, ENABLE ALWAYS TRIGGER {table}_name, ENABLE ALWAYS TRIGGER {table}_stay;
]]

-- One at a time, however many start at once. Where another one has made them in another schema meanwhile, they are not made in
-- this one. Where there was a table of ours before, what it said is lost, or a part of it: its trigger's function tells. Then the
-- store's record is marked as one that was deleted. A restore adds the key behind the rows, and not at all where a name stands
-- twice by then: nobody knows which of these rows counts, so what they said is lost.
local MAKING = [[
DO $make$
DECLARE
  lost BOOLEAN;
BEGIN
  PERFORM pg_advisory_xact_lock(x'63726f776e6c7561'::bigint);
  IF {elsewhere} IS NOT NULL OR {whole} THEN
    RETURN;
  END IF;
  lost := to_regproc('{table}_keep') IS NOT NULL AND (to_regclass('{table}') IS NULL OR {ours});
]] .. register.MAKE .. [[
  IF NOT {keyed} THEN
    ALTER TABLE {table} DISABLE TRIGGER {table}_keep;
    UPDATE {table} r SET version = md5(random()::text || clock_timestamp()::text), record = NULL, holder = ' @',
      epoch = twice.epoch FROM (SELECT lock_name, max(epoch) AS epoch FROM {table} GROUP BY lock_name HAVING count(*) > 1) twice
      WHERE r.lock_name = twice.lock_name;
    DELETE FROM {table} a USING {table} b WHERE a.lock_name = b.lock_name AND a.ctid < b.ctid;
    ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_keep;
    DROP INDEX IF EXISTS {table}_names;
    CREATE UNIQUE INDEX {table}_names ON {table} (lock_name);
  END IF;
INSERT INTO {table} (lock_name, holder, expires_at, version) SELECT '@store', ' @', 'epoch', 'lost' WHERE lost
  ON CONFLICT DO NOTHING;
END $make$]]

local GUARDS = "tgrelid = to_regclass('{table}') AND tgenabled = 'A' AND tgname IN ('{table}_"
  .. table.concat(TRIGGERS, "', '{table}_") .. "')"

-- Version 0.1.0 has triggers of these names.
local OURS = [[coalesce((SELECT prosrc LIKE '%directive%' AND prosrc LIKE '%OTHERS%' FROM pg_proc
  WHERE oid = to_regproc('{table}_keep')), FALSE)]]

-- What has a claim written once, however many write it.
local KEYED = [[EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'lock_name'
  WHERE i.indrelid = to_regclass('{table}') AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
  AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)]]

local WHOLE = [[({columns} AND {keyed} AND to_regclass('{table}_holder') IS NOT NULL
  AND (SELECT count(*) FROM pg_trigger WHERE {guards}) = {count} AND {ours})]]

local IS_VIEW = "coalesce((SELECT relkind NOT IN ('r', 'p') FROM pg_class WHERE oid = to_regclass('{table}')), FALSE)"

local STATE = [[
SELECT pg_backend_pid() AS pid, current_setting('fsync')::boolean AS fsync, {whole} AS complete, {keyed} AS keyed,
  {view} AS is_view, (SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass('{table}')) AS persistence,
  current_user::text AS who, {placement}]]

local RIGHTS = [[
SELECT current_user::text AS who, pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS read_only,
  current_schema() IS NOT NULL AND has_schema_privilege(current_schema(), 'CREATE') AS may_create,
  to_regclass('{table}') IS NOT NULL AS there, {whole} AS complete, {keyed} AS keyed, {view} AS is_view,
  coalesce((SELECT relpersistence = 'u' FROM pg_class WHERE oid = to_regclass('{table}')), FALSE) AS unlogged,
  coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('{table}')), FALSE) AS owns,
  has_function_privilege('pg_control_system()', 'EXECUTE') AS may_identify,
  current_setting('synchronous_standby_names') AS synchronous, (SELECT count(*)::int FROM pg_stat_replication) AS replicas,
  {placement}]]

-- Waits for the row as a swap does.
local HOLD = "SELECT FROM {table} WHERE lock_name = $1 FOR NO KEY UPDATE"

-- What a candidate writes, for crown.postgres.row_security.
local TRIAL = { [[INSERT INTO {table} (lock_name, version, record, holder, epoch, expires_at)
    VALUES ('@check', 'one', repeat('x', 1000), repeat('x', 100), 9000000000000, clock_timestamp()) ON CONFLICT DO NOTHING]],
  "UPDATE {table} SET version = 'two', record = repeat('y', 1000) WHERE lock_name = '@check'",
  "PERFORM FROM {table} WHERE lock_name = '@check' AND version = 'two' AND record = repeat('y', 1000)" }

--- The statements for a table.
-- @bool is_shared with Elixir's Crown, or ours alone
-- @string commit synchronous_commit of what is written
-- @string[opt] wanted the schema that it is to be in: then tables in others are none of this one's
-- @treturn table `table`; `waits`, whether a write waits for standbys; SQL: `look`, `look_at_any`, `swap`, `give_back` and
-- `clean`, see lua/stores/postgres.lua; `hold`, of one name; `make`; `state` and `rights`, of one row; `trial`, an array
function register.statements(is_shared, commit, wanted)
  local named = is_shared and "crown_lease_v1" or "crown_register_v1"
  local words = { table = named, commit = commit, channel = register.CHANNEL, version = VERSION, memory = MEMORY, whole = WHOLE,
    keyed = KEYED, view = IS_VIEW, ours = OURS, guards = GUARDS, count = #TRIGGERS,
    columns = schema.has_columns(named, COLUMNS), placement = schema.placement { named },
    elsewhere = wanted and "NULL" or schema.elsewhere({ named }, "current_schema()") }
  local function fill(sql)
    return (sql:gsub("{(%l+)}", function(word) return fill(tostring(words[word])) end))
  end
  local swap, waits = fill(SWAP), commit ~= "local"
  words.commit = "off" -- what a crash takes back was still held: followers wait for one TTL
  return { table = named, waits = waits, look = fill(LOOK), look_at_any = fill(LOOK_AT_ANY), swap = swap, give_back = fill(SWAP),
    clean = fill(CLEAN), hold = fill(HOLD), make = fill(MAKING), state = fill(STATE), rights = fill(RIGHTS),
    trial = { fill(TRIAL[1]), fill(TRIAL[2]), fill(TRIAL[3]) } }
end

return register
