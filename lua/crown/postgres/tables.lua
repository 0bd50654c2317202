--- The tables of the Postgres oracles, and what tells whether the store still remembers what it promised.
--
-- `crown_store_v1` has a row for each kind of table ("advisory", "registry"). It names the place where the promises
-- were written: the cluster's system identifier, its timeline, the table, and the file that the table is in; and the
-- database, for one that was made of another as its template has the same tables in files of the same names. A promoted
-- replica, a restored backup, and a table made anew or emptied, are another place. Promises may be missing there, so nobody is
-- believed to be free until the longest TTL in use has passed since it was first seen, and epochs go on well above all that
-- can have been lost. `trusted_at` is when that is over: a longer TTL that is heard of moves it on by as much.
--
-- Leases end by the server's clock. Who finds it stepped forward writes that down as a doubt of the same kind. `set_back` counts
-- how often it was found to be behind what it had shown before: what is promised by a clock that was set back ends too early
-- when that is put right, and who has not asked meanwhile cannot tell by the time. The statement that makes such a promise
-- counts; who knows another count doubts. Who comes anew knows none: `behind` says by how many seconds it was set back in all, so
-- what ended less than that ago may not be over. Nor does who comes anew know what time was shown before: the store keeps when
-- something was last promised (`seen`). By that a step looks smaller than it was, by the time that has passed since: `behind` is
-- a day more then. Who has been there for as long as the longest TTL can tell again.
-- @internal crown.postgres.tables

local core = require "crown.core"
local epochs = require "crown.check.epoch"
local parts = require "crown.postgres.parts"
local schema = require "crown.postgres.schema"

local tables = {}

--- How far the epochs jump when promises may have been lost, at least: more terms than any store loses. They also jump to the
-- server's time in milliseconds, which goes on outside the store: one backup may be put back twice.
tables.EPOCH_JUMP = 1000000

--- What the server calls a table that is not there: SQLSTATE undefined_table.
tables.MISSING = "42P01"

-- SQLSTATE undefined_column.
local MISSING_COLUMN = "42703"

--- Whether an error means that a table, or a column of one, was dropped.
-- @string code SQLSTATE
-- @treturn boolean
function tables.is_dropped(code)
  return code == tables.MISSING or code == MISSING_COLUMN
end

--- What to do about a missing row of crown_store_v1.
tables.ROW_LOST = "crown_store_v1 has lost a row: INSERT INTO crown_store_v1 (part) VALUES ('%s')"

local LEAST_TIMEOUT = 2 -- seconds

--- The SQL expression for whether crown_store_v1 is there with all its columns: version 0.1.0 made it without the last
-- three.
tables.STORE_IS_WHOLE = schema.has_columns("crown_store_v1",
  { "part", "identity", "trusted_at", "longest_ttl", "epoch_floor", "set_back", "behind", "seen" })

-- Without `part` nobody can tell whose rows these were.
local STORE = ([[
CREATE TABLE IF NOT EXISTS crown_store_v1 (
  part TEXT PRIMARY KEY
);
IF NOT HAS_PART THEN
  DELETE FROM crown_store_v1;
  ALTER TABLE crown_store_v1 ADD COLUMN part TEXT PRIMARY KEY;
END IF;
IF NOT STORE_IS_WHOLE THEN
  ALTER TABLE crown_store_v1
    ADD COLUMN IF NOT EXISTS identity TEXT,
    ADD COLUMN IF NOT EXISTS trusted_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN IF NOT EXISTS longest_ttl DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS epoch_floor BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS set_back BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS behind DOUBLE PRECISION NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS seen TIMESTAMPTZ NOT NULL DEFAULT 'epoch';
END IF;
]]):gsub("STORE_IS_WHOLE", tables.STORE_IS_WHOLE):gsub("HAS_PART", (schema.has_columns("crown_store_v1", { "part" })))

-- Whether columns of crown_store_v1 were dropped, and not made anew yet. Those that an older version did not make have said
-- nothing.
local STORE_HAS_LOST = "(NOT " .. tables.STORE_IS_WHOLE .. [[ AND EXISTS (SELECT FROM pg_attribute
    WHERE attrelid = to_regclass('crown_store_v1') AND attisdropped))]]

tables.parts = parts

--- How far the server's log had come: a server that is found with less later on was put back to an older state.
tables.WRITTEN = "(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8"

local DATABASE = "(SELECT oid FROM pg_database WHERE datname = current_database())"

-- The SQL expression for the place where the promises of a table are written, as it is now.
local function place(part)
  return ([[((SELECT system_identifier::text FROM pg_control_system()) || ':' ||
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ':' || to_regclass('%s')::oid || ':' ||
  pg_relation_filenode(to_regclass('%s')))]]):format(part.table, part.table)
end

-- The SQL expression for the numbers of the columns that keep epochs: one that somebody has dropped and made anew has another
-- number, and nothing of what it said.
local function columns_of_epochs(part)
  return ([[(SELECT string_agg(attnum::text, '.' ORDER BY attrelid = to_regclass('crown_store_v1'))
  FROM pg_attribute WHERE NOT attisdropped AND (attrelid, attname) IN
    ((to_regclass('%s'), 'epoch'), (to_regclass('crown_store_v1'), 'epoch_floor')))]]):format(part.table)
end

--- The SQL expression for what crown_store_v1 names the place by. The end tells what an older version does not.
-- @tparam table part of crown.postgres.parts
-- @treturn string
function tables.identity(part)
  return ("%s || '@' || %s || '@' || %s"):format(place(part), DATABASE, columns_of_epochs(part))
end

--- The SQL expression for whether what crown_store_v1 names is the place as it is now. Versions that name no database, or no
-- columns, write there too, and theirs has to do: doubts without end would follow from two that take turns.
-- @string stored the expression for what it names
-- @string now the one of tables.identity
-- @treturn string
function tables.is_same(stored, now)
  return ("coalesce(starts_with(%s || '@', %s || '@'), FALSE)"):format(now, stored)
end

--- The SQL expression for whether a table is there with all columns and triggers of ours, and the queue beside it. It reads
-- the catalogs only: everybody may, and it locks nothing.
-- @tparam table part of crown.postgres.parts
-- @treturn string
function tables.is_whole(part)
  return ([[(%s AND (SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('%s') AND tgname IN ('%s')) = %d AND %s)]])
    :format(schema.has_columns(part.table, part.columns), part.table, table.concat(part.triggers, "', '"), #part.triggers,
      part.queue and schema.has_columns(part.queue, part.queue_columns) or "TRUE")
end

local function names_of(part)
  return { part.table, part.queue }
end

-- In which schemas the tables of a part are.
local function placement(part)
  return schema.placement(names_of(part)) .. (", %s AS store_schema"):format(schema.of "crown_store_v1")
end

-- @treturn string why the tables are not relied on in the schemas that they are in; nil where they are
local function misplaced(part, row, wanted)
  local store = row.schema and row.store_schema
  if store and store ~= row.schema and (not wanted or row.schema == wanted) then
    return ("%s is in the schema '%s', and crown_store_v1 in '%s', by this user's search_path; candidates that look in one of "
      .. "them alone would lead beside this one%s"):format(part.table, row.schema, store, schema.ONE_PATH)
  end
  return schema.misplaced(part.table, row, wanted)
end

--- Whether other candidates may look for the same tables in another schema.
-- @param client of crown.postgres
-- @string name of the part
-- @string[opt] wanted the option of that name: tables in others are none of this one's
-- @treturn string what is wrong; nil where nothing is, or it cannot be told
function tables.misplaced(client, name, wanted)
  local rows = client:query("SELECT " .. placement(parts[name]))
  return rows and misplaced(parts[name], rows[1], wanted) or nil
end

-- $1 table, %s whether it has its columns, whether it is whole, and where it is.
local LOOK = [[
SELECT pg_backend_pid() AS pid, current_setting('fsync')::boolean AS fsync, %s AS has_columns,
  %s AND ]] .. tables.STORE_IS_WHOLE .. [[ AS complete,
  (SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1)) AS persistence, %s]]

-- Makes what is missing; one at a time, however many start at once. A table that is made here has promised nothing
-- yet, so it is relied on at once, where an empty store is trusted. One without its row in crown_store_v1 has lost it, or was
-- made by hand; where there is none any more, the functions of its triggers tell that there was one. Those have to wait, and
-- so has one that lacked columns: what they said is lost. All parts have those of crown_store_v1. Where another one has made
-- them in another schema meanwhile, they are not made in this one.
local MAKE = [[
DO $make$
DECLARE
  known BOOLEAN;
  had_all BOOLEAN;
  store_has_lost BOOLEAN;
BEGIN
  PERFORM pg_advisory_xact_lock(x'63726f776e6c7561'::bigint);
  IF %s IS NOT NULL THEN
    RETURN;
  END IF;
  had_all := %s;
  store_has_lost := %s;
  known := EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('%s') AND attname = 'epoch')
    OR to_regproc('%s') IS NOT NULL OR %s;
  %s
  %s
  UPDATE crown_store_v1 SET identity = NULL WHERE part = '%s' AND NOT had_all OR store_has_lost;
  INSERT INTO crown_store_v1 (part, identity, trusted_at) VALUES ('%s', CASE WHEN NOT known THEN %s END,
    CASE WHEN known THEN clock_timestamp() ELSE 'epoch' END)
    ON CONFLICT DO NOTHING;
END $make$]]

--- The SQL expression for how many seconds the clock was set back in all, whatever somebody has written there.
tables.BEHIND = "least(behind, 1e9)"

-- Whatever somebody has written there, no TTL is longer.
local LONGEST = "least(longest_ttl, 86400)"

-- No doubt lasts longer: where it seems so the server's clock was set back.
local DOUBTED_MOST = "clock_timestamp() + make_interval(secs => greatest(" .. LONGEST .. ", $3::float8, $6::float8))"

-- $1 part, $2 what this process knows of the place or '', $3 TTL in seconds, $4 how far it knows the log to have come, $5 an
-- epoch that it knows to have been given, $6 seconds to wait at least where nobody knows how long leases were, $7 how often it
-- knows the clock to have been set back or -1. In one statement, so that a pooler cannot put another server between the look and
-- what is written.
local LOST = "(NOT " .. tables.is_same("identity", "here.named") .. " OR $2 NOT IN ('', here.place) OR here.written < $4::int8 "
  .. "OR $7::int8 NOT IN (-1, set_back))"
local TRUST = ([[
WITH here AS MATERIALIZED (SELECT %s || '@' || DATABASE AS place, %s AS named, WRITTEN AS written),
changed AS (
UPDATE crown_store_v1 SET
  trusted_at = least(MOST, CASE WHEN LOST
    THEN greatest(trusted_at, clock_timestamp() + make_interval(secs =>
      greatest(LONGEST, $3::float8, CASE WHEN longest_ttl = 0 THEN $6::float8 END)))
    ELSE trusted_at + make_interval(secs => greatest(0, $3::float8 - LONGEST)) END),
  epoch_floor = CASE WHEN LOST
    THEN greatest(greatest(epoch_floor, (SELECT coalesce(max(epoch), 0) FROM %s)) + %d,
      (extract(epoch FROM clock_timestamp()) * 1000)::int8, $5::int8) ELSE epoch_floor END,
  longest_ttl = greatest(LONGEST, $3::float8),
  set_back = set_back + (trusted_at > MOST)::int,
  behind = behind + CASE WHEN trusted_at > MOST THEN extract(epoch FROM trusted_at - clock_timestamp()) ELSE 0 END,
  seen = CASE WHEN trusted_at > MOST THEN least(seen, clock_timestamp()) ELSE seen END,
  identity = CASE WHEN LOST THEN here.named ELSE identity END
FROM here WHERE part = $1 AND (LOST OR longest_ttl NOT BETWEEN $3::float8 AND 86400 OR trusted_at > MOST)
RETURNING trusted_at, set_back)
SELECT extract(epoch FROM coalesce((SELECT trusted_at FROM changed), trusted_at) - clock_timestamp())::float8 AS left,
  here.place, here.written, coalesce((SELECT set_back FROM changed), set_back) AS set_back,
  greatest(LONGEST, $3::float8) AS longest, BEHIND::float8 AS behind,
  extract(epoch FROM clock_timestamp())::float8 AS server
FROM crown_store_v1, here WHERE part = $1]]):gsub("LOST", LOST):gsub("MOST", DOUBTED_MOST):gsub("LONGEST", LONGEST)
  :gsub("BEHIND", tables.BEHIND)
  :gsub("DATABASE", DATABASE):gsub("WRITTEN", (tables.WRITTEN:gsub("%%", "%%%%")))

-- For how long this process has come anew to a clock that was set back before.
local function unsure_for(party)
  return math.max(0, (party.memory.sure_at or 0) - core.now())
end

--- For how long this process, which came anew, cannot tell whether what has ended by the server's clock is over.
-- @tparam table party as for tables.trust
-- @number left seconds until it ended, not above 0
-- @treturn number seconds, 0 where it can
function tables.unsure(party, left)
  return math.max(0, math.min(unsure_for(party), left + (party.memory.behind or 0)))
end

--- How often this process knows the server's clock to have been set back, for a claim.
-- @tparam table party as for tables.trust
-- @treturn number -1 where it does not know; that many below -2 where what ended not long ago may not be over
function tables.knows(party)
  local count = tables.known_set_back(party)
  return unsure_for(party) > 0 and -2 - count or count
end

--- How often this process knows the server's clock to have been set back.
-- @tparam table party as for tables.trust
-- @treturn number -1 where it does not know
function tables.known_set_back(party)
  return party.memory.set_back or -1
end

--- Notes that a statement of this process has counted a step back. Where others have counted too, it still knows less.
-- @tparam table party as for tables.trust
-- @tparam ?number count what that made it, nil where it has not
function tables.counted_set_back(party, count)
  if count and count == tables.known_set_back(party) + 1 then party.memory.set_back = count end
end

--- Whether others have found the server's clock set back since this process last knew: until that is written down as a doubt,
-- with tables.trust.
-- @tparam table party as for tables.trust
-- @tparam table row `set_back`, as the store tells it (nil where it has no row), and `counted`, what this statement made it
-- @treturn boolean
function tables.was_set_back(party, row)
  local found = row.set_back ~= nil and row.set_back ~= tables.known_set_back(party)
  tables.counted_set_back(party, row.counted)
  return found
end

local NOW = "extract(epoch FROM clock_timestamp())::float8"

-- Seconds that `seen` may seem to be ahead without a step.
local SLACK = "0.02"

--- The statement that counts a step back of the server's clock, where it shows less than it has to; `set_back` is what that made
-- it. It comes before all that locks rows of a part's own table, so that no two of these wait for each other. Who has not seen
-- the clock before goes by what the store has. Nobody knows for how long that had stood idle before the step: for a day at most.
-- @string name of the part
-- @string due the parameter that has the time which the clock has to show, as crown.oracle.server_clock tells it
-- @treturn string
function tables.count_set_back(name, due)
  return (([[UPDATE crown_store_v1 SET set_back = set_back + 1, seen = clock_timestamp(),
  behind = behind + greatest(DUE - NOW, SEEN - NOW + CASE WHEN NOW < DUE THEN 0 ELSE 86400 END)
  WHERE part = 'PART' AND NOW < greatest(DUE, SEEN - SLACK) RETURNING set_back]])
    :gsub("SEEN", "extract(epoch FROM seen)::float8"):gsub("NOW", NOW):gsub("SLACK", SLACK)
    :gsub("PART", name):gsub("DUE", function() return due .. "::float8" end))
end

--- The statement that keeps the time for who comes later, in one that promises something and begins with `back`: what
-- tables.count_set_back says. It is not written each time, and waits for nobody: who has the row's lock writes it. A stricter
-- isolation than the usual one would fail the statement where another one has written there since it began.
-- @string name of the part
-- @string[opt] condition
-- @treturn string
function tables.keep_time(name, condition)
  return (([[UPDATE crown_store_v1 s SET seen = clock_timestamp() FROM (
    SELECT ctid AS place FROM crown_store_v1 WHERE part = 'PART' AND seen < clock_timestamp() - interval '0.1 s'
      AND current_setting('transaction_isolation') = 'read committed'
      AND (SELECT count(*) FROM back) = 0 AND CONDITION FOR NO KEY UPDATE SKIP LOCKED) AS free
  WHERE s.ctid = free.place]]):gsub("PART", name):gsub("CONDITION", function() return condition or "TRUE" end))
end

--- The SQL expression for when something ends that is given back now: so that who comes anew knows that it is over.
-- @string name of the part
-- @treturn string
function tables.over(name)
  return ("clock_timestamp() - coalesce((SELECT make_interval(secs => %s) FROM crown_store_v1 WHERE part = '%s'), '0')")
    :format(tables.BEHIND, name)
end

-- Catalogs and locks take their time where a whole runtime begins at once.
local function patience(party)
  return math.max(party.timeout, LEAST_TIMEOUT)
end

local function look(client, part, party, generation)
  local sql = LOOK:format(schema.has_columns(part.table, part.columns), tables.is_whole(part), placement(part))
  local rows, problem, code = client:query(sql, patience(party), generation, part.table)
  if not rows then return nil, problem, code end
  return rows[1]
end

local function make(client, name, part, party, generation)
  local others = party.schema and "NULL" or schema.elsewhere(names_of(part), "current_schema()")
  local sql = MAKE:format(others, schema.has_columns(part.table, part.columns), STORE_HAS_LOST, part.table, part.triggers[1],
    party.trust_empty and "FALSE" or "TRUE", part.make, STORE, name, name, tables.identity(part))
  local made, problem, code = client:query(sql, patience(party), generation)
  if made then return true end
  if code == "42501" then
    return nil, ("%s is not complete, and this user may not change that: run the statements of %s as the table's owner (%s)")
      :format(part.table, part.docs or "docs/oracle-postgres.md", problem), code
  end
  return nil, problem, code
end

-- What to do about a column without which rows mean nothing, and that is not made anew. @return message, code
local function still_lacking(seen, part)
  local name = seen.has_columns and part.queue or part.table
  return ("%s has lost a column that cannot be made anew: DROP TABLE %s, and all of it is made anew"):format(name, name), "usage"
end

--- Doubts the store, where it is not as it was, and says how long it has to be sat out.
-- @param client of crown.core.postgres
-- @string name of the part: "advisory" or "registry"
-- @tparam table party who relies on the store: `ttl`, `amnesia_wait` and `timeout` in seconds; `memory` of what answered it, kept
-- from connection to connection and brought up to date here
-- @number generation of the connection (0: any)
-- @treturn number seconds, 0 when it is believed; or nil, message, code
function tables.trust(client, name, party, generation)
  local part, memory = parts[name], party.memory
  local sql = TRUST:format(place(part), tables.identity(part), part.table, tables.EPOCH_JUMP)
  local sent = core.now()
  local rows, problem, code = client:query(sql, patience(party), generation, name, memory.place or "", party.ttl,
    ("%.0f"):format(memory.written or 0), ("%.0f"):format(memory.epoch or 0), party.amnesia_wait, tables.known_set_back(party))
  if not rows then return nil, problem, code end
  if not rows[1] then return nil, tables.ROW_LOST:format(name), "store" end
  if not memory.set_back then party.clock:saw(sent, rows[1].server) end -- the first that this process hears of it
  if not memory.set_back and rows[1].behind > 0 then memory.sure_at = core.now() + rows[1].longest end
  memory.place, memory.written, memory.set_back = rows[1].place, tonumber(rows[1].written), rows[1].set_back
  memory.behind = rows[1].behind
  return math.max(0, rows[1].left)
end

--- The statement that shortens what a row says of the future to what it can mean: nobody has promised more than the longest TTL.
-- Where it seems so the server's clock was set back, or a standby whose clock is behind has taken its place: that is counted. $1
-- name, $2 the `amnesia_wait`, which no TTL is above: the store may have forgotten which TTL was the longest. $3 whether the
-- statement that found the row has counted that.
-- @tparam table part of crown.postgres.parts
-- @string name of it
-- @string column the time in question
-- @string[opt] condition which rows it is about
-- @treturn string
function tables.shorten(part, name, column, condition)
  return (([[
WITH back AS (
  UPDATE crown_store_v1 SET set_back = set_back + 1 - $3::boolean::int,
    behind = behind + (1 - $3::boolean::int)
      * (SELECT coalesce(max(extract(epoch FROM COLUMN - clock_timestamp())), 0) FROM TABLE WHERE lock_name = $1)
  WHERE part = 'PART' AND EXISTS (SELECT FROM TABLE WHERE lock_name = $1
    AND COLUMN > clock_timestamp() + make_interval(secs => greatest(longest_ttl, $2::float8)) CONDITION)
  RETURNING set_back, greatest(longest_ttl, $2::float8) AS most)
UPDATE TABLE SET COLUMN = clock_timestamp() + make_interval(secs => most) FROM back
WHERE lock_name = $1 AND COLUMN > clock_timestamp() + make_interval(secs => most) CONDITION RETURNING set_back]])
    :gsub("CONDITION", function() return condition or "" end)
    :gsub("TABLE", part.table):gsub("COLUMN", column):gsub("PART", name))
end

-- Told once, and as a warning: such a server is used all the same.
local function warn_of_fsync(party, seen)
  if not seen.fsync and not party.told_fsync then
    party.emit("oracle.postgres.not_durable",
      { error = "the server runs with fsync = off: after a crash it may have forgotten what it has promised" })
  end
  party.told_fsync = not seen.fsync
end

--- Sees to it that the tables are there and can be relied on; once for each connection.
-- @param client of crown.core.postgres
-- @string name of the part
-- @tparam table party as for tables.trust, `trust_empty`: whether tables that were never there have forgotten nothing, `emit`,
-- and `schema`, where they are in one on purpose
-- @number generation
-- @treturn table `{ distrust = seconds to sit out or nil, pid = }`, or nil, message, code
function tables.prepare(client, name, party, generation)
  local part = parts[name]
  local seen, problem, code = look(client, part, party, generation)
  local wrong = seen and misplaced(part, seen, party.schema)
  if seen and not wrong and not seen.complete then
    local made
    made, problem, code = make(client, name, part, party, generation)
    if made then seen, problem, code = look(client, part, party, generation) else seen = nil end
    wrong = seen and misplaced(part, seen, party.schema)
  end
  if not seen then return nil, problem, code end
  if wrong then return nil, wrong, "usage" end
  if not seen.complete then return nil, still_lacking(seen, part) end
  if seen.persistence == "u" then
    return nil, ("%s is UNLOGGED, so a crash empties it and two could lead: ALTER TABLE %s SET LOGGED")
      :format(part.table, part.table), "usage"
  end
  local left
  left, problem, code = tables.trust(client, name, party, generation)
  if not left then return nil, problem, code end
  warn_of_fsync(party, seen)
  return { distrust = left > 0 and left or nil, pid = seen.pid }
end

--- Notes an epoch that was given out.
-- @tparam table party as for tables.trust
-- @param epoch as the store tells it
function tables.heard_of(party, epoch)
  party.memory.epoch = math.max(party.memory.epoch or 0, epochs.counted(epoch))
end

--- Whether the store's epochs were higher before: an older state that was put back may have written more log since than it had
-- lost. Until that is written down as a doubt, with tables.trust.
-- @tparam table party as for tables.trust
-- @tparam table row `epoch`, as the store tells it, of the one election that this party asks for, and `epoch_floor`
-- @treturn boolean
function tables.epochs_went_back(party, row)
  local before = party.memory.epoch or 0
  tables.heard_of(party, row.epoch)
  local back = math.max(epochs.counted(row.epoch), epochs.counted(row.epoch_floor)) < before
  if back then party.memory.place = "gone back" end
  return back
end

--- Whether the server's clock was stepped forward, so that leases ended too early by it: until that is written down as a doubt,
-- with tables.trust. The caller then settles the clock.
-- @tparam table party as for tables.trust, and its `clock` of crown.oracle.server_clock
-- @number sent `crown.now()` before the question was sent
-- @number server the server's time in seconds, as it answered
-- @treturn boolean
function tables.is_stepped(party, sent, server)
  local doubted = party.clock:is_doubted(sent, server)
  if doubted then party.memory.place = "a clock that was stepped" end
  return doubted
end

return tables
