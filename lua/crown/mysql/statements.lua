--- The statements of the register in MySQL. Two tables of InnoDB: one has the records; the other one has a mark of each election
-- that ever had a record, which stays when that is deleted, and one row without a name, whose mark is gone when all is lost.
-- A text is written in hexadecimal digits, so that nothing in it is taken for SQL.
-- @internal crown.mysql.statements

local hex = require "crown.text.hex"

local statements = {}

--- A text as a literal.
-- @string text
-- @treturn string
local function quoted(text)
  return "X'" .. hex(text) .. "'"
end

statements.quoted = quoted

--- The statements that make the tables.
-- @string name of the table of records
-- @treturn table an array
function statements.make(name)
  return {
    ("CREATE TABLE IF NOT EXISTS %s (name VARBINARY(1000) NOT NULL PRIMARY KEY, version VARBINARY(64) NOT NULL, "
      .. "record MEDIUMBLOB NOT NULL, written DATETIME(6) NOT NULL) ENGINE=InnoDB ROW_FORMAT=DYNAMIC"):format(name),
    ("CREATE TABLE IF NOT EXISTS %s_mark (name VARBINARY(1000) NOT NULL PRIMARY KEY, mark VARBINARY(64) NOT NULL) "
      .. "ENGINE=InnoDB ROW_FORMAT=DYNAMIC"):format(name),
  }
end

--- What shows whether the tables are there: their names and engines; and, as a second question, the names of those whose primary
-- key has each name once.
-- @string name
-- @treturn string
function statements.tables(name)
  return ("SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() "
    .. "AND TABLE_NAME IN ('%s', '%s_mark'); "
    .. "SELECT TABLE_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() "
    .. "AND TABLE_NAME IN ('%s', '%s_mark') AND INDEX_NAME = 'PRIMARY' "
    .. "GROUP BY TABLE_NAME HAVING COUNT(*) = 1 AND MAX(COLUMN_NAME) = 'name' AND MAX(SUB_PART) IS NULL")
    :format(name, name, name, name)
end

--- What puts the row without a name there.
-- @string name
-- @string mark for it
-- @treturn string
function statements.remember(name, mark)
  return ("INSERT INTO %s_mark (name, mark) VALUES ('', %s) ON DUPLICATE KEY UPDATE name = '' "):format(name, quoted(mark))
end

-- What names the memory. A table that was made anew, from a dump for example, has another time of creation. No record is without
-- a name: both tables are asked, so that neither can be made anew before the transaction ends. Without their keys, which have a
-- claim written once, the server refuses the question.
local MADE = "(SELECT CREATE_TIME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '%s' AND TABLE_NAME = '%s')"
local MEMORY = "SELECT CONCAT_WS(':', %s, kept.mark, %s, %s) FROM %s_mark AS kept FORCE INDEX (PRIMARY) "
  .. "WHERE kept.name = '' AND CAST(@@global.read_only AS CHAR) IN ('0', 'OFF') "
  .. "AND NOT EXISTS (SELECT 1 FROM %s FORCE INDEX (PRIMARY) WHERE name = '')"

--- What names the memory: nothing where there is no row without a name, and on a server that is read-only.
-- @string server what names it and its start
-- @string database
-- @string name of the table
-- @treturn string a SELECT
function statements.memory(server, database, name)
  return MEMORY:format(quoted(server), MADE:format(database, name), MADE:format(database, name .. "_mark"), name, name)
end

--- Reads records.
-- @string memory as above
-- @string name of the table
-- @tparam table names
-- @treturn string its rows: a kind and four columns. "memory", with that and the time of day in ms; "record", with name, version,
-- text and microseconds since it was written; "mark", with name and mark
function statements.look(memory, name, names)
  local list = {}
  for i, one in ipairs(names) do list[i] = quoted(one) end
  local wanted = table.concat(list, ",")
  return ("SELECT 'memory', (%s), CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS UNSIGNED), NULL, NULL "
    .. "UNION ALL SELECT 'record', name, version, LEFT(record, 131072), "
    .. "TIMESTAMPDIFF(MICROSECOND, written, UTC_TIMESTAMP(6)) FROM %s WHERE name IN (%s) "
    .. "UNION ALL SELECT 'mark', name, mark, NULL, NULL FROM %s_mark WHERE name IN (%s)")
    :format(memory, name, wanted, name, wanted)
end

-- --- writes

-- The memory is compared in each statement: it was read, and locked, at the transaction's beginning.
local function same_memory(write)
  return "@crown_memory = " .. quoted(write.memory)
end

-- A row that is there already is not changed, and does not count.
local function unless_there(name)
  return (" ON DUPLICATE KEY UPDATE %s.name = %s.name"):format(name, name)
end

local function replace(name, write)
  return { ("UPDATE %s SET version = %s, record = %s, written = UTC_TIMESTAMP(6) WHERE name = %s AND version = %s AND %s")
    :format(name, quoted(write.new), quoted(write.text), quoted(write.name), quoted(write.version), same_memory(write)) }
end

local function delete(name, write)
  return { ("DELETE FROM %s WHERE name = %s AND version = %s AND %s"):format(name, quoted(write.name), quoted(write.version),
    same_memory(write)) }
end

local function create(name, write, condition)
  return ("INSERT INTO %s (name, version, record, written) SELECT %s, %s, %s, UTC_TIMESTAMP(6) FROM %s_mark AS kept WHERE %s%s")
    :format(name, quoted(write.name), quoted(write.new), quoted(write.text), name, condition, unless_there(name))
end

-- The record is only written where the mark is the one that was just made.
local function create_marked(name, write)
  local marks, mark = name .. "_mark"
  if write.version then
    mark = ("UPDATE %s SET mark = %s WHERE name = %s AND mark = %s AND %s"):format(marks, quoted(write.new), quoted(write.name),
      quoted(write.version), same_memory(write))
  else
    mark = ("INSERT INTO %s (name, mark) SELECT %s, %s FROM %s AS kept WHERE kept.name = '' AND %s%s"):format(marks,
      quoted(write.name), quoted(write.new), marks, same_memory(write), unless_there(marks))
  end
  return { mark, create(name, write, ("kept.name = %s AND kept.mark = %s"):format(quoted(write.name), quoted(write.new))) }
end

--- The statements of one write. Whether it was done the last one says, by the rows that it changed.
-- @string name of the table
-- @tparam table write `{ name =, version = or false, text = or false (it is deleted), memory =, new = its version, is_marked =
-- whether the record is to have a mark, over_mark = whether `version` is that of a mark }`
-- @treturn table an array
function statements.write(name, write)
  if not write.text then return delete(name, write) end
  if write.version and not write.over_mark then return replace(name, write) end
  if write.is_marked then return create_marked(name, write) end
  return { create(name, write, "kept.name = '' AND " .. same_memory(write)) }
end

--- How many statements begin a transaction.
statements.BEGIN = 2

--- What begins a transaction of writes. The row without a name is locked until the end.
-- @string memory as above
-- @treturn string
function statements.begin(memory)
  return ("START TRANSACTION; SET @crown_memory = (%s LOCK IN SHARE MODE)"):format(memory)
end

--- Reads the names of all records.
-- @string name of the table
-- @treturn string
function statements.names(name)
  return ("SELECT name FROM %s ORDER BY name"):format(name)
end

return statements
