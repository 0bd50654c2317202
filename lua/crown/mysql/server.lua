--- What a MySQL or MariaDB server says of itself, what a session there is to be like, and what a candidate lacks.
-- @internal crown.mysql.server

local explain = require "crown.link.explain"
local statements = require "crown.mysql.statements"

local server = {}

local SHARE = 0.75 -- of the time-out, for a statement on the server
local LEAST_IDLE = 60 -- seconds after which the server ends a silent session: one that waits is asked for a sign of life sooner

local VARIABLES = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uid', 'server_uuid', 'read_only', 'wsrep_on', "
  .. "'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'binlog_format', 'version_comment')"
-- Both are counted from the start of the statement, so that their difference is the second in which the server started. Where its
-- clock was set back to before that, the server tells a negative time as one without a sign.
local STARTED = "SELECT CONNECTION_ID(), CAST(UNIX_TIMESTAMP() AS SIGNED) - CAST(CAST(VARIABLE_VALUE AS UNSIGNED) AS SIGNED) "
  .. "FROM %s.global_status "
  .. "WHERE VARIABLE_NAME = 'UPTIME'"
local READ_ONLY = "the server is read-only (read_only is on): it takes no writes"
local PROXY = "a proxy in between lends its connections out, so nobody knows which server answers: name the server itself"
local GALERA = "this is a node of a Galera cluster, whose nodes take writes apart from each other: no election can be held there"

-- What a server says that has given up a wait: a lock of another session's, or a statement that took too long.
local WAITED = { [1205] = true, [1969] = true, [3024] = true }

local function is_mariadb(connection)
  return connection.greeting.version:find "MariaDB" ~= nil
end

--- What the server is set to.
-- @tparam Connection connection
-- @number timeout seconds
-- @treturn table texts by name; or nil, message, code
function server.settings(connection, timeout)
  local results, problem, code = connection:query(timeout, VARIABLES)
  if not results then return nil, problem, code end
  local found = {}
  for _, row in ipairs(results[1].rows or {}) do found[tostring(row[1])] = row[2] or "" end
  return found
end

local function is_on(value)
  return value ~= nil and value ~= "OFF" and value ~= "0" and value ~= ""
end

-- A statement, and what it waits for, is given up by the server before nobody waits for its answer any more: so that it says why.
local function session(connection, timeout)
  local whole, most = math.max(1, math.ceil(timeout)), timeout * SHARE
  local lock = math.max(1, math.floor(most))
  local longest = is_mariadb(connection) and ("max_statement_time = %.3f"):format(math.max(0.01, most))
    or ("max_execution_time = %d"):format(math.max(10, most * 1000))
  return ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION autocommit = 1, time_zone = '+00:00', "
    .. "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', sql_safe_updates = 0, sql_select_limit = 18446744073709551615, "
    .. "innodb_lock_wait_timeout = %d, lock_wait_timeout = %d, "
    .. "wait_timeout = %d, %s"):format(lock, lock, math.max(LEAST_IDLE, 4 * whole), longest)
end

--- Makes a session fit.
-- @tparam Connection connection
-- @number timeout seconds for the question
-- @number longest seconds that a statement may take
-- @treturn table or nil, message, code
function server.fit(connection, timeout, longest)
  return connection:query(timeout, session(connection, longest))
end

-- @return what names the server and its start; or nil, message, code
local function identity(connection, settings, timeout)
  local results, problem, code = connection:query(timeout,
    STARTED:format(is_mariadb(connection) and "information_schema" or "performance_schema"))
  if not results then return nil, problem, code end
  local row = results[1].rows and results[1].rows[1]
  local id = settings.server_uuid or settings.server_uid
  if not row or not row[1] or not row[2] or not id then return nil, "this server does not tell its id and when it started" end
  if tonumber(row[1]) % 2 ^ 32 ~= connection.greeting.thread then return nil, PROXY, "usage" end
  return ("%s:%s"):format(id, row[2])
end

--- Makes a session fit, and looks whether the server is.
-- @tparam Connection connection
-- @number timeout seconds for each question
-- @number longest seconds that a statement may take
-- @treturn string what names the server and its start; or nil, message, code
function server.set_up(connection, timeout, longest)
  local fine, problem, code = server.fit(connection, timeout, longest)
  if not fine then return nil, problem, code end
  local settings
  settings, problem, code = server.settings(connection, timeout)
  if not settings then return nil, problem, code end
  if is_on(settings.wsrep_on) then return nil, GALERA, "usage" end
  if is_on(settings.read_only) then return nil, READ_ONLY, "store" end
  return identity(connection, settings, timeout)
end

local VIEW = "%s is a view, or a table of an engine that the server lacks: rename it, or name another table by table=NAME in the "
  .. "URL"

local UNKEYED = "%s has no primary key over name, so two could lead: ALTER TABLE %s ADD PRIMARY KEY (name)"

--- Whether the tables are there, and can be relied on.
-- @tparam Connection connection
-- @number timeout seconds
-- @string name of the table of records
-- @treturn boolean true; false, and the name of one that this user does not see; or nil, message, code
function server.has_tables(connection, timeout, name)
  local results, problem, code = connection:query(timeout, statements.tables(name))
  if not results then return nil, problem, code end
  local rows, missing = results[1].rows or {}, { [name] = true, [name .. "_mark"] = true }
  for _, row in ipairs(rows) do
    missing[row[1]] = nil
    if not row[2] then return nil, VIEW:format(row[1]), "usage" end
    if row[2] ~= "InnoDB" then
      return nil, ("%s is a table of %s, which may forget what it has confirmed: ALTER TABLE %s ENGINE = InnoDB"):format(row[1],
        row[2], row[1]), "usage"
    end
  end
  local unkeyed = { name, name .. "_mark" }
  for _, row in ipairs(#rows == 2 and results[2].rows or {}) do table.remove(unkeyed, row[1] == unkeyed[1] and 1 or 2) end
  if #rows == 2 and unkeyed[1] then return nil, UNKEYED:format(unkeyed[1], unkeyed[1]), "usage" end
  if #rows == 2 then return true end
  return false, missing[name] and name or name .. "_mark"
end

--- What to say where a table is not seen and cannot be made: MySQL shows a user no table that it has no right to.
-- @string named the table
-- @string problem the server's words
-- @treturn string
function server.unseen(named, problem)
  return ("there is no table %s that this user has a right to, and it may not create it (%s): grant it SELECT, INSERT, UPDATE "
    .. "and DELETE there, or run the statements of docs/oracle-mysql.md"):format(named, problem)
end

local DURABLE = {
  { "innodb_flush_log_at_trx_commit", "1", "innodb_flush_log_at_trx_commit is %s: after a crash the server may have forgotten "
    .. "what it has promised; set it to 1" },
  { "sync_binlog", "1", "sync_binlog is %s: after a crash the server and its replicas may not agree; set it to 1", "log_bin" },
}

local function warnings_of(settings)
  local found = {}
  for _, one in ipairs(DURABLE) do
    local name, wanted, text, with = unpack(one)
    if settings[name] and settings[name] ~= wanted and (not with or is_on(settings[with])) then
      found[#found + 1] = text:format(settings[name])
    end
  end
  if is_on(settings.log_bin) and settings.binlog_format == "STATEMENT" then
    found[#found + 1] = "binlog_format is STATEMENT, with which InnoDB refuses what crown-lua writes; set ROW or MIXED"
  end
  if is_on(settings.wsrep_on) then found[#found + 1] = GALERA end
  if is_on(settings.read_only) then found[#found + 1] = READ_ONLY end
  return found
end

--- What the server says of itself.
-- @tparam Connection connection
-- @number timeout seconds
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function server.health(connection, timeout)
  local settings, problem, code = server.settings(connection, timeout)
  if not settings then return nil, problem, code end
  local version = connection.greeting.version
  return { facts = { { "Store", ("%s %s, %s"):format(is_mariadb(connection) and "MariaDB" or "MySQL",
    version:match "(%d+%.%d+%.%d+)%-MariaDB" or version, is_on(settings.read_only) and "read-only" or "takes writes") } },
    warnings = warnings_of(settings) }
end

-- Statements that need a right, and do nothing; and one that waits for the lock on an election's record, as a write does.
local function needed(name, election)
  local mark = name .. "_mark"
  return { ("SELECT 1 FROM %s WHERE name = %s FOR UPDATE"):format(name, statements.quoted(election or "")),
    ("SELECT 1 FROM %s, %s WHERE FALSE"):format(name, mark),
    ("INSERT INTO %s SELECT * FROM %s WHERE FALSE"):format(name, name), ("UPDATE %s SET name = name WHERE FALSE"):format(name),
    ("DELETE FROM %s WHERE FALSE"):format(name),
    ("INSERT INTO %s SELECT * FROM %s WHERE FALSE"):format(mark, mark), ("UPDATE %s SET name = name WHERE FALSE"):format(mark) }
end

-- @return an array of texts; or nil, message, code
local function lacks_of(connection, timeout, name, election)
  local settings, problem, code = server.settings(connection, timeout)
  if not settings then return nil, problem, code end
  local lacks = {}
  if is_on(settings.wsrep_on) then lacks[1] = GALERA end
  if is_on(settings.read_only) then return { READ_ONLY, lacks[1] } end -- it would refuse all that is tried below
  local there, missing
  there, missing, code = server.has_tables(connection, timeout, name)
  if there == nil and code ~= "usage" then return nil, missing, code end
  if there == nil then lacks[#lacks + 1] = missing end
  local tried = needed(name, election)
  if there == false then tried = { "PREPARE crown_may_create FROM " .. statements.quoted(statements.make(name)[1]) } end
  for _, sql in ipairs(tried) do
    local fine, why, kind = connection:query(timeout, sql)
    if not fine and type(kind) ~= "number" then return nil, why, kind end
    if not fine then lacks[#lacks + 1] = there == false and server.unseen(missing, why) or why end
    if WAITED[kind] then return { why } end -- as each of them would
  end
  return lacks
end

--- What a candidate lacks. Nothing is changed.
-- @tparam Connection connection
-- @number timeout seconds
-- @string name of the table of records
-- @string[opt] election whose record is tried
-- @treturn table an array of texts; or nil, message, code
function server.lacks(connection, timeout, name, election)
  local lacks, problem, code = lacks_of(connection, timeout, name, election)
  if not lacks then return nil, problem, code end
  for i, text in ipairs(lacks) do lacks[i] = explain.answer(text, "mysql", connection.place_named) end
  return lacks
end

return server
