--- The kinds of tables that the Postgres oracles and the registry keep, and the statements that make them; they run inside a
-- DO block. For each: `table`; `queue`: a table beside it; `columns`, `triggers` and `queue_columns`, for the check that nothing
-- is missing; `pooled`: why it is refused behind a pooler; `rights`: what a candidate needs, `{ table, privileges, trial }` each,
-- the trial being statements for crown.postgres.row_security; `make`; `docs`: the page that has the statements, where it is not
-- docs/oracle-postgres.md.
-- @internal crown.postgres.parts

-- A trigger that refuses what would take rows away.
-- @string name of the trigger and its function
-- @string table
-- @string events what it refuses, as CREATE TRIGGER has it
-- @string message why
-- @string[opt] hint what to do instead
local function refusal(name, table, events, message, hint)
  return ([[
CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $refuse$
BEGIN
  RAISE EXCEPTION '%s'%s;
END $refuse$;
IF NOT EXISTS (SELECT FROM pg_trigger
    WHERE tgrelid = '%s'::regclass AND tgname = '%s') THEN
  CREATE TRIGGER %s BEFORE %s ON %s
    FOR EACH STATEMENT EXECUTE FUNCTION %s();
END IF;
]]):format(name, message, hint and ("\n    USING HINT = '%s'"):format(hint) or "", table, name, name, events, table, name)
end

local STORE_RIGHTS = { "crown_store_v1", "SELECT,UPDATE", { "UPDATE crown_store_v1 SET seen = seen" } }

local parts = {
  advisory = {
    table = "crown_advisory_v1",
    rights = { { "crown_advisory_v1", "SELECT,INSERT,UPDATE", {
      [[INSERT INTO crown_advisory_v1 (lock_name, holder, acting_until, renewed_at, pid, direct, killed)
    VALUES ('@check', '', 'epoch', 'epoch', 0, FALSE, 0)]],
      "UPDATE crown_advisory_v1 SET epoch = epoch WHERE lock_name = '@check'" } }, STORE_RIGHTS },
    columns = { "lock_name", "holder", "epoch", "acting_until", "renewed_at", "pid", "direct", "killed", "evicted" },
    triggers = { "crown_advisory_v1_stay" },
    pooled = "behind a connection pooler an advisory lock belongs to whoever is lent the session: connect to the "
      .. "server itself, or use the lease (postgres://…)",
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
ALTER TABLE crown_advisory_v1
  ADD COLUMN IF NOT EXISTS epoch BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS evicted BOOLEAN NOT NULL DEFAULT FALSE;
]] .. refusal("crown_advisory_v1_stay", "crown_advisory_v1", "DELETE OR TRUNCATE",
      "crown_advisory_v1 says until when a leader acts: its rows are not deleted"),
  },
  registry = {
    table = "crown_registry_v1",
    queue = "crown_registry_queue_v1",
    queue_columns = { "registry", "number", "message" },
    rights = { { "crown_registry_v1", "SELECT,INSERT,UPDATE", {
      "INSERT INTO crown_registry_v1 (registry) VALUES ('@check')",
      "UPDATE crown_registry_v1 SET epoch = epoch WHERE registry = '@check'" } },
      { "crown_registry_queue_v1", "SELECT,INSERT,DELETE", {
        "INSERT INTO crown_registry_queue_v1 (registry, number, message) VALUES ('@check', 0, '{}')",
        "DELETE FROM crown_registry_queue_v1 WHERE registry = '@check'" } }, STORE_RIGHTS },
    docs = "docs/registry.md",
    columns = { "registry", "version", "epoch", "leader", "leader_token", "old_leader", "assumed", "members", "locked_until",
      "evicted", "committed_epoch", "committed", "tail" },
    triggers = { "crown_registry_v1_keep" },
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
ALTER TABLE crown_registry_v1
  ADD COLUMN IF NOT EXISTS version BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS epoch BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS leader TEXT,
  ADD COLUMN IF NOT EXISTS leader_token TEXT,
  ADD COLUMN IF NOT EXISTS old_leader TEXT,
  ADD COLUMN IF NOT EXISTS assumed BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS members JSONB NOT NULL DEFAULT '{}',
  ADD COLUMN IF NOT EXISTS locked_until TIMESTAMPTZ NOT NULL DEFAULT 'epoch',
  ADD COLUMN IF NOT EXISTS evicted BOOLEAN NOT NULL DEFAULT FALSE,
  ADD COLUMN IF NOT EXISTS committed_epoch BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS committed BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS tail BIGINT NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS crown_registry_queue_v1 (
  registry TEXT NOT NULL,
  number BIGINT NOT NULL,
  message JSONB NOT NULL,
  PRIMARY KEY (registry, number)
);
]] .. refusal("crown_registry_v1_keep", "crown_registry_v1", "DELETE OR TRUNCATE",
      "crown_registry_v1 keeps the epochs: its rows are not deleted",
      "A registry that nobody uses any more can be removed with the trigger disabled."),
  },
}

return parts
