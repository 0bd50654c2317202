--- A register in Postgres: rows of one table (crown.postgres.register), by one connection for questions and one that listens.
-- @internal crown.stores.postgres

local core = require "crown.core"
local explain = require "crown.link.explain"
local holders = require "crown.postgres.holder"
local json = require "crown.text.json"
local notices = require "crown.postgres.notices"
local postgres = require "crown.postgres"
local postgres_url = require "crown.postgres.url"
local record = require "crown.register.record"
local register = require "crown.postgres.register"
local rule = require "crown.register.rule"
local schema = require "crown.postgres.schema"
local server = require "crown.postgres.server"
local will = require "crown.postgres.will"

local driver = { word = "postgres_lease", ttl = 30, trusts_empty = true }

--- The options that only this store has.
driver.options = {
  url = postgres_url.RULE,
  schema = postgres_url.SCHEMA,
  shared = { type = "boolean", default = true },
  synchronous_commit = postgres_url.COMMIT,
}

local DROPPED = { ["42P01"] = true, ["42703"] = true } -- SQLSTATE: undefined table, undefined column
local NO_RIGHT = "42501"
local FOREVER = 86400 -- seconds: what others hold "for ever" is looked at again

-- A row that is deleted stays, and so does what tells that there was a table.
local Store = { marks = true, whole = true, deletes = true }
Store.__index = Store

-- --- the table

-- Told once, and as a warning: such a server is used all the same.
local function warn_of_fsync(self, state)
  if not state.fsync and not self.told_fsync then
    self.emit("oracle.postgres.not_durable",
      { error = "the server runs with fsync = off: after a crash it may have forgotten what it has promised" })
  end
  self.told_fsync = not state.fsync
end

local function server_of(self)
  return (self.client:condition().server:gsub("/[^/]*$", "")) -- which may name the database
end

local function look_at_table(self, bare, generation)
  local rows, problem, code = bare:query(self.sql.state, self.place.timeout, generation)
  if not rows then return nil, problem, code end
  local wrong = schema.misplaced(self.sql.table, rows[1], self.schema)
  return rows[1], wrong and explain.named(wrong, "postgres", server_of(self))
end

local REFUSED = {
  missing = "there is no table {table}, and this user may not make it: start a candidate once as a user who may, or run the "
    .. "statements of docs/oracle-postgres.md",
  incomplete = "{table} is not complete, and this user may not change that: start a candidate once as the table's owner, or run "
    .. "the statements of docs/oracle-postgres.md",
  unkeyed = server.UNKEYED,
}

-- What the server has said, without its name and a next step: both are told with what is said here.
local function bare_words(self, problem)
  return (explain.bare(server_of(self), problem):gsub("; allow it %(.*$", ""))
end

local function make(self, bare, generation, state)
  local made, problem, code = bare:query(self.sql.make, self.place.timeout, generation)
  if made then return true end
  if code == NO_RIGHT then
    local what = state.persistence == nil and "missing" or state.keyed and "incomplete" or "unkeyed"
    problem = ("%s (%s)"):format(REFUSED[what]:gsub("{table}", self.sql.table), bare_words(self, problem))
  end
  return nil, problem, code
end

-- Behind a pooler that lends its connections out nobody hears.
local function listen(self)
  local function heard(payload) self.heard(payload and payload:match "^%l+ (.*)$") end
  notices.listen(self, self.deaf, "a released lease is claimed when its followers look again", register.CHANNEL, heard,
    function() heard() end)
end

-- The statements are planned once, and not anew for each of the first five times that one is run (plan_cache_mode in the
-- manual): a new follower wins by its second swap. They are planned for a table that may grow, so by the index also where it is
-- one page now. What a server refuses here only takes longer. A pooler's next session would not know them.
local PLAN_ONCE = [[SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false),
  set_config('jit', 'off', false)]]

local function plan_once(self, bare, generation)
  if not self.deaf then bare:query(PLAN_ONCE, self.place.timeout, generation) end
  bare:prepare(not self.deaf)
end

-- Sees to it that the table is there and can be relied on; once for each connection.
local function set_up(self, bare, generation)
  bare:prepare(false)
  local state, wrong, code = look_at_table(self, bare, generation)
  if self.place.only_looks then
    self.misplaced = wrong
    return state and not wrong or nil, wrong
  end
  if state and not wrong and state.is_view then
    return nil, (server.VIEW:gsub("{table}", self.sql.table)), "usage"
  end
  if state and not wrong and not state.complete then
    local made
    made, wrong, code = make(self, bare, generation, state)
    if not made then return nil, wrong, code end
    state, wrong, code = look_at_table(self, bare, generation)
  end
  if not state or wrong then return nil, wrong, code or "usage" end
  if not state.complete then return nil, ("%s is not complete"):format(self.sql.table), "store" end
  if state.persistence == "u" then
    return nil, ("%s is UNLOGGED, so a crash empties it and two could lead: ALTER TABLE %s SET LOGGED")
      :format(self.sql.table, self.sql.table), "usage"
  end
  warn_of_fsync(self, state)
  self.deaf = state.pid ~= bare:server_pid()
  plan_once(self, bare, generation)
  if self.heard then listen(self) end
  return true
end

-- --- the two verbs

-- A table or a column that was dropped beneath the connection is made anew by the next one.
local function ask(self, sql, ...)
  self.client:set_timeout(self.place.timeout)
  local bare = self.client.bare
  local generation = bare:generation()
  local rows, problem, code = self.client:query(sql, ...)
  if DROPPED[code] and not self.place.only_looks and bare:generation() == generation then bare:disconnect() end
  return rows, problem, self.misplaced and "usage" or code
end

-- Reads rows. A tool makes no table, and reads one that lacks our columns, as Crown makes it, or what keeps its rows.
local function read(self, names)
  local rows, problem, code = ask(self, self.sql.look, names)
  if rows or not (self.place.only_looks and DROPPED[code]) then return rows, problem, code end
  rows, problem, code = ask(self, self.sql.look_at_any, names)
  if not rows and DROPPED[code] then return {} end
  return rows, problem, code
end

-- What others hold, by the clock that they live by.
local function peer_of(row)
  return { node = row.left > 0 and holders.node(row.holder) or nil, wait = math.max(0, math.min(row.left, FOREVER)),
    epoch = row.epoch }
end

-- Seconds since a session was renewed; negative where the server's clock was set back since.
local function age(row)
  local ttl = row.ours and record.is_reserved(row.name) and tonumber(row.name:match "[^-]*$")
  return ttl and ttl - row.left or nil
end

--- Reads records.
-- @tparam table names
-- @treturn table for each name `{ text = or false, version = or false, memory =, time =, age = of a session }`, and `peer =
-- { node =, wait = seconds, epoch = }` where another one than crown-lua of this version has written there since; or nil,
-- message, code
function Store:look(names)
  local generation = self.client.bare:generation()
  local rows, problem, code = read(self, json.encode(names))
  if not rows then return nil, problem, code end
  local memory, time, answers = nil, nil, {}
  for _, row in ipairs(rows) do
    if row.memory then memory, time = row.memory, math.floor(row.left * 1000) end
  end
  for _, name in ipairs(names) do answers[name] = { text = false, version = false, memory = memory, time = time } end
  for _, row in ipairs(rows) do
    if row.name then
      answers[row.name] = { text = row.record or false, version = row.version, memory = memory, time = time,
        age = age(row), peer = not row.ours and peer_of(row) or nil }
    end
  end
  if memory or self.place.only_looks then return answers end
  if self.client.bare:generation() == generation then self.client.bare:disconnect() end
  return nil, ("%s lacks a trigger, or a key over lock_name: that is made anew, where this user owns the table")
    :format(self.sql.table), "store"
end

-- What others than ourselves see of a record: whose it is, and for how long they must leave it alone. Nil: for as long as before.
-- The name of a session ends with its TTL. One that is over holds nothing any more.
local function face(name, one)
  if record.is_reserved(name) then return one.node .. " @", one.ttl and not one.over and one.ttl or 0 end
  if one.by then return ("%s %s"):format(one.node, one.by), not one.directive and tonumber(one.by:match "[^-]*$") or nil end
  if one.doubt then return " @doubt", rule.standing_time(one.doubt) end
  return " @", 0
end

local function told(name, one)
  if record.is_reserved(name) then return one.over and "ended" or nil end
  return one.directive or one.by and "changed" or "freed"
end

local function row_of(write)
  local one = core.json.decode(write.text)
  local holder, lasts = face(write.name, one)
  return { name = write.name, was = write.version or nil, version = one.nonce, record = write.text, holder = holder,
    lasts = lasts, epoch = one.epoch or 0, memory = write.memory, told = told(write.name, one),
    renews = one.ttl and ("%s %s"):format(one.node, write.name) or nil }
end

-- What is not taken, as on a connection with TLS, only takes longer: the next runtime leads again, or the session runs out.
-- Behind a pooler the server's session may be another one's by then.
local function leave_wills(self)
  local rows = {}
  for _, row in pairs(self.wills) do rows[#rows + 1] = row end
  if self.deaf ~= false or #rows == 0 then return end
  local words = json.encode(rows):gsub("[\\']", "%0%0")
  local sql = self.sql.give_back:gsub("%$1", function() return "E'" .. words .. "'" end)
  self.client.bare:will(will.messages("/* last will */ " .. sql))
end

-- @return what was done of it, as a set; or nil, message, code
local function carry_out(self, sql, words)
  local done = {}
  if #words == 0 then return done end
  local rows, problem, code = ask(self, sql, json.encode(words))
  if not rows then return nil, problem, code end
  for _, one in ipairs(core.json.decode(rows[1].done or "[]")) do done[one] = true end
  return done
end

--- Writes records, each over the version that it names.
-- @tparam table writes `{ name =, version = or false, text =, memory =, frees = }` each, text false of a session that is to be
-- deleted
-- @treturn table for each the new version, or false; or nil, message, code
function Store:swap(writes)
  local words, ended, results = {}, {}, {}
  local sql = self.sql.give_back -- which waits for no disk and no replica
  for i, write in ipairs(writes) do
    local list = write.text and words or ended
    local row = write.text and row_of(write) or { name = write.name, was = write.version, memory = write.memory }
    row.at, list[#list + 1] = i, row
    if write.text and not write.frees and row.told ~= "ended" then sql = self.sql.swap end
  end
  local done, problem, code = carry_out(self, sql, words)
  if not done then return nil, problem, code end
  local gone = carry_out(self, self.sql.clean, ended) or {} -- who may not delete leaves a row that nobody needs
  for _, word in ipairs(words) do
    results[word.at] = done[word.version] and ("%s %s"):format(word.version, word.holder) or false
  end
  for _, word in ipairs(ended) do results[word.at] = gone[word.name] or false end
  return results
end

-- --- the rest

--- Has somebody told of changes.
-- @tparam function fn `fn(name)`; `fn(nil)` where some may have been missed
function Store:hear(fn)
  self.heard = fn
  if self.deaf ~= nil then listen(self) end
end

--- Has the supervisor make a write when this runtime is dead and its trees are gone, on the connection that there is then.
-- @tparam table write as of `swap`; in place of the last one of its name
function Store:will(write)
  self.wills[write.name] = row_of(write)
  leave_wills(self)
end

--- The names of all records.
-- @treturn table an array; or nil, message, code
function Store:names()
  local rows, problem, code = ask(self, "SELECT lock_name FROM " .. self.sql.table .. " ORDER BY lock_name")
  if DROPPED[code] and self.place.only_looks then return {} end
  if not rows then return nil, problem, code end
  local names = {}
  for i, row in ipairs(rows) do names[i] = row.lock_name end
  return names
end

-- A question of a tool's own, on a connection of its own: it also looks where nobody can be a candidate.
local function visit(self, more, fn, patience)
  local client, problem, code = postgres.connect(self.url .. more, { timeout = self.timeout, bounded = true })
  if not client then return nil, problem, code end
  client:set_timeout(patience or self.timeout)
  local found
  found, problem, code = fn(client)
  client:close()
  return found, problem, code
end

--- What the server says of itself.
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function Store:health()
  return visit(self, "", function(client) return server.health(client, self.sql.table, self.schema) end)
end

--- What a candidate lacks.
-- @number[opt] patience seconds that a candidate waits for an answer
-- @string[opt] name of its election
-- @treturn table an array of texts; or nil, message, code
function Store:rights(patience, name)
  local function lacks_on(client) return server.lacks(client, self.sql, self.schema, name) end
  local lacks, problem, code = visit(self, "", lacks_on, patience)
  if lacks or not tostring(problem):find("session is read-only", 1, true) then return lacks, problem, code end
  return visit(self, (self.url:find("?", 1, true) and "&" or "?") .. "target_session_attrs=any", lacks_on, patience)
end

--- Closes the connections.
function Store:close()
  if self.listener then self.listener:close() end
  self.client:close()
end

--- Checks the options of an oracle.
function driver.check(opts, rules)
  return postgres_url.durable_options(driver.word, opts, rules)
end

--- Makes a store, and asks nobody yet.
-- @tparam table place see crown.oracle.driven
-- @treturn Store or nil, message, code
function driver.open(place)
  local options = place.options
  local self = setmetatable({ place = place, url = place.url, timeout = place.timeout, emit = place.emit or function() end,
    wills = {}, schema = options.schema,
    sql = register.statements(options.shared, options.synchronous_commit, options.schema) }, Store)
  local client, problem, code = postgres.new(place.url, { timeout = place.timeout, background = true,
    label = not place.only_looks and driver.word or nil,
    bounded = true, setup = function(bare, generation) return set_up(self, bare, generation) end })
  if not client then return nil, problem, code end
  self.client = client
  return self
end

return driver
