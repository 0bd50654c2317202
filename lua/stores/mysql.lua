--- A register in MySQL or MariaDB: rows of a table of InnoDB (crown.mysql.statements), asked by one connection.
-- @internal crown.stores.mysql

local Bell = require "crown.mysql.bell"
local Client = require "crown.mysql.client"
local nonce = require "crown.text.nonce"
local mysql_url = require "crown.mysql.url"
local record = require "crown.register.record"
local server = require "crown.mysql.server"
local statements = require "crown.mysql.statements"
local store_options = require "crown.oracle.options"

local LONGEST_NAME = 1000 -- bytes: what the table's column takes

local function lock_problem(lock)
  if #lock > LONGEST_NAME then return ("must have at most %d bytes"):format(LONGEST_NAME) end
end

local driver = { word = "mysql", ttl = 15, schemes = { "mysql", "mysqls" },
  clients = { socket = true, ca = true, cert = true, key = true, server_name = true, insecure = true },
  options = {
    url = { type = "string" },
    table = { type = "string", match = "^[%a_][%w_]*$", match_words = "letters, digits and '_'", default = "crown_register" },
    lock = store_options.lock(lock_problem),
  } }

local DENIED = 1142 -- a command was denied
local MISSING = { [1146] = true, [1054] = true, [1176] = true } -- a table, a column or a key is not there
local ELSEWHERE = { [1290] = true, [1836] = true, [1792] = true } -- the server is read-only
local DELETED = "deleted-" -- a version that is a mark's

-- A record that is deleted leaves its mark. The bell is a hint: followers look as often as those who hear nothing.
local Store = { marks = true, whole = true, deletes = true, deaf = true }
Store.__index = Store

-- --- the tables

local function make(self, connection, timeout, missing)
  for _, sql in ipairs(statements.make(self.table)) do
    local made, problem, code = connection:query(timeout, sql)
    if not made and code == DENIED then
      return nil, server.unseen(missing, problem), "usage"
    end
    if not made then return nil, problem, code end
  end
  return true
end

-- Once for each connection, which a restart of the server ends.
local function set_up(self, connection, timeout)
  local id, problem, code = server.set_up(connection, timeout, self.place.timeout)
  if not id then return nil, problem, code end
  local there
  there, problem, code = server.has_tables(connection, timeout, self.table)
  if there == false then there, problem, code = make(self, connection, timeout, problem) end
  if not there then return nil, problem, code end
  connection.memory = statements.memory(id, self.parsed.database, self.table)
  self.bell:opened(connection)
  return connection:query(timeout, statements.remember(self.table, nonce()))
end

-- @return the results and the connection; or nil, message, code
local function ask(self, form, after_error)
  self.client.timeout = self.place.timeout
  local connection, problem, code = self.client:ready()
  if not connection then return nil, problem, code end
  local results
  results, problem, code = connection:query(self.place.timeout, form(connection), after_error)
  if results then return results, connection end
  if MISSING[code] or ELSEWHERE[code] then connection:close(problem) end -- the next one makes it, or is to another server
  if type(code) ~= "number" then return nil, problem, code end
  return nil, connection:explained(problem), "store"
end

-- --- the two verbs

local STRANGE = "unexpected reply from MySQL"

local function read(rows, names)
  local memory, time, answers = nil, nil, {}
  for _, row in ipairs(rows) do
    if #row ~= 5 then return nil, STRANGE, "protocol" end
    if row[1] == "memory" then memory, time = row[2], tonumber(row[3]) end
  end
  if not memory then return nil end
  for _, name in ipairs(names) do answers[name] = { text = false, version = false, memory = memory, time = time } end
  for _, row in ipairs(rows) do
    local answer = answers[row[2]]
    if answer and row[1] == "record" then
      answer.version, answer.text, answer.age = row[3], row[4], (tonumber(row[5]) or 0) / 1e6
    elseif answer and row[1] == "mark" and not answer.text then
      answer.version = DELETED .. row[3]
    end
  end
  return answers
end

-- Every look of a follower names those who lead.
local function note_leaders(self, answers)
  for name, answer in pairs(answers) do
    local session = answer.text and not record.is_reserved(name) and answer.text:match '"by":"(@[^"\\]*)"'
    if session then self.bell:saw(session) end
  end
end

--- Looks at records.
-- @tparam table names
-- @treturn table for each name `{ text =, version =, memory =, time = in ms, age = in seconds, by the server's clock }`, text and
-- version false where there is none; or nil, message, code
function Store:look(names)
  local results, connection, code = ask(self, function(one) return statements.look(one.memory, self.table, names) end)
  if not results then return nil, connection, code end
  local answers, problem, kind = read(results[1].rows or {}, names)
  note_leaders(self, answers or {})
  if answers or problem then return answers, problem, kind end
  -- The next connection puts the row without a name there, or is to another server.
  connection:close "the server is read-only, or its tables were emptied"
  return nil, connection.closed, "store"
end

local function mark_of(version)
  return version and version:sub(1, #DELETED) == DELETED and version:sub(#DELETED + 1) or nil
end

local function prepare(writes)
  local list = {}
  for i, write in ipairs(writes) do
    local mark = mark_of(write.version)
    if #write.name <= LONGEST_NAME then
      list[#list + 1] = { at = i, name = write.name, version = mark or write.version, text = write.text, memory = write.memory,
        new = nonce(), is_marked = not record.is_reserved(write.name), over_mark = mark ~= nil }
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end) -- in one order, so that no two transactions wait for each other
  return list
end

-- Followers are told that they may claim an election, or that a session is over or gone.
local function tell_bell(self, connection, writes)
  local renewed, is_news = {}, false
  for _, write in ipairs(writes) do
    if not record.is_reserved(write.name) then
      is_news = is_news or write.frees
    else
      local found = write.text and record.parse(write.text, write.name)
      if found and found.at then renewed[#renewed + 1] = write.name end
      is_news = is_news or not write.text or found and found.over and found.over >= found.at
    end
  end
  self.bell:wrote(connection, renewed, is_news)
end

--- Writes records, each over the version and in the memory that it names, in one transaction.
-- @tparam table writes each `{ name =, version = or false, text =, memory = }`, text false for one that is to be deleted
-- @treturn table for each the new version, or false where it was not written; or nil, message, code
function Store:swap(writes)
  local list = prepare(writes)
  if #list == 0 then return nil, "the name is longer than the table takes", "store" end
  local lines, last = {}, {}
  for i, write in ipairs(list) do
    for _, sql in ipairs(statements.write(self.table, write)) do lines[#lines + 1] = sql end
    last[i] = #lines
  end
  local all = table.concat(lines, ";")
  local results, connection, code = ask(self, function(one)
    return ("%s;%s;COMMIT"):format(statements.begin(one.memory), all)
  end, "ROLLBACK")
  if not results then return nil, connection, code end
  tell_bell(self, connection, writes)
  local done = {}
  for i, write in ipairs(list) do
    local result = results[statements.BEGIN + last[i]]
    if not result or not result.changed then return nil, STRANGE, "protocol" end
    done[write.at] = result.changed > 0 and write.new
  end
  return done
end

-- --- the rest

--- The names of all records.
-- @treturn table an array; or nil, message, code
function Store:names()
  local results, problem, code = ask(self, function() return statements.names(self.table) end)
  if not results then return nil, problem, code end
  local names = {}
  for i, row in ipairs(results[1].rows or {}) do names[i] = row[1] end
  return names
end

-- A question of a tool's own, on a connection of its own: it also looks where nobody can be a candidate.
local function visit(self, fn, patience, ...)
  local timeout = patience or self.place.timeout
  local problem, code
  for _, place in ipairs(self.parsed.hosts) do
    local connection
    connection, problem, code = Client.open(self.parsed, place, self.place.timeout)
    if connection then
      local found
      found, problem, code = server.fit(connection, self.place.timeout, timeout)
      if found then found, problem, code = fn(connection, timeout, self.table, ...) end
      connection:close()
      return found, problem, code
    end
  end
  return nil, problem, code
end

--- What the server says of itself.
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function Store:health() return visit(self, server.health) end

--- What a candidate lacks.
-- @number[opt] patience seconds that a candidate waits for an answer
-- @string[opt] name of its election
-- @treturn table an array of texts; or nil, message, code
function Store:rights(patience, name) return visit(self, server.lacks, patience, name) end

--- Tells that elections' records may have changed.
-- @tparam function fn called without arguments
function Store:hear(fn) self.bell:hear(fn) end

--- Ends it.
function Store:close()
  self.bell:close()
  self.client:close()
end

--- Makes a store, and asks nobody yet.
-- @tparam table place see crown.oracle.driven
-- @treturn Store or nil and a message
function driver.open(place)
  local parsed, problem = mysql_url.parse(place.url)
  if not parsed then return nil, problem end
  local self = setmetatable({ place = place, parsed = parsed, table = place.options.table }, Store)
  self.client = Client.new(parsed, { timeout = place.timeout, label = not place.only_looks and driver.word or nil,
    setup = function(connection, timeout) return set_up(self, connection, timeout) end })
  self.bell = Bell.new(self.client, ("%s.%s."):format(parsed.database, self.table),
    { timeout = place.timeout, retry = place.options.retry })
  return self
end

return driver
