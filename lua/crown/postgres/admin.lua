--- What `crown-lua info` and `evict` ask of the tables.
-- @internal crown.postgres.admin

local eviction = require "crown.oracle.eviction"
local holder = require "crown.postgres.holder"
local postgres = require "crown.postgres"
local postgres_url = require "crown.postgres.url"
local rights = require "crown.postgres.rights"
local server = require "crown.postgres.server"
local tables = require "crown.postgres.tables"

local admin = {}

--- Asks on a connection of a tool's own.
-- @tparam table opts `url`, `timeout`
-- @tparam function fn gets the client of crown.postgres
-- @return what that returns, up to three values; or nil, message, code
function admin.visit(opts, fn)
  local client, problem, code = postgres.connect(opts.url, { timeout = opts.timeout or 5, bounded = true })
  if not client then return nil, problem, code end
  local result
  result, problem, code = fn(client)
  client:close()
  return result, problem, code
end

local function candidates_of(row)
  if not row.candidates then return nil end
  local found = {}
  for name in row.candidates:gmatch "[^\n]+" do found[#found + 1] = name end
  return found
end

-- Where a role's search_path leads to other tables, nobody is found there, while somebody may lead.
local function looks_elsewhere(client, opts, part)
  return part and tables.misplaced(client, part, opts.schema)
end

--- Elections in a table.
-- @tparam table opts `url`, `timeout`, `schema`
-- @string[opt] part see crown.postgres.parts
-- @string sql with the columns name, holder, epoch, left (seconds); and candidates, a line each, where they are known
-- @treturn table an array of `{ name, node, epoch, expires_in, candidates }`, or nil and a message
function admin.list(opts, part, sql)
  return admin.visit(opts, function(client)
    local rows, problem, code = client:query(sql)
    if code == tables.MISSING then rows = {} end
    if not rows then return nil, problem end
    local found = {}
    if #rows == 0 then
      local wrong = looks_elsewhere(client, opts, part)
      if wrong then return nil, wrong, "usage" end
    end
    for i, row in ipairs(rows) do
      local led = row.left > 0 and row.holder ~= ""
      found[i] = { name = row.name, node = led and holder.node(row.holder) or nil, epoch = row.epoch,
        expires_in = led and row.left or nil, candidates = candidates_of(row) }
    end
    return found
  end)
end

local LATE = "after a failover one TTL is sat out, and the last epochs may be lost"

-- The longest TTL in use, as the store knows it; nil before anybody has been there.
local function longest_ttl(client, part)
  local rows = client:query("SELECT longest_ttl FROM crown_store_v1 WHERE part = $1 AND longest_ttl > 0", part)
  return rows and rows[1] and rows[1].longest_ttl or nil
end

--- What the server says of itself, for `info`.
-- @tparam table opts `url`, `timeout`
-- @string named the oracle's table
-- @string[opt] part of crown_store_v1 that knows the longest TTL in use
-- @tparam[opt] function more `more(client)` → an array of what else is to be warned of
-- @treturn table `{ ttl =, facts =, warnings = }`, or nil and a message
function admin.health(opts, named, part, more)
  return admin.visit(opts, function(client)
    local said, problem = server.said(client, named, LATE)
    if not said then return nil, problem end
    local warnings = said.warnings
    warnings[#warnings + 1] = part and tables.misplaced(client, part, opts.schema)
    for _, warning in ipairs(more and more(client) or {}) do warnings[#warnings + 1] = warning end
    return { ttl = part and longest_ttl(client, part), facts = said.facts, warnings = warnings, hides = said.hides }
  end)
end

--- What a candidate lacks, for `check --store`.
-- @tparam table opts `url`, `timeout`
-- @string part see crown.postgres.parts
-- @treturn table an array of texts, or nil and a message
function admin.rights(opts, part)
  local function lacks_on(client) return rights.lacks(client, part, opts.schema) end
  local lacks, problem, code = admin.visit(opts, lacks_on)
  if lacks or not tostring(problem):find("session is read-only", 1, true) then return lacks, problem, code end
  local any = setmetatable({ url = opts.url .. (opts.url:find("?", 1, true) and "&" or "?") .. "target_session_attrs=any" },
    { __index = opts })
  return admin.visit(any, lacks_on)
end

--- What somebody lacks who only reads a table.
-- @tparam table opts `url`, `timeout`
-- @string named the table
-- @treturn table an array of texts, or nil and a message
function admin.reading(opts, named)
  return admin.visit(opts, function(client)
    local lacks, there = rights.on(client, named, "SELECT")
    if not lacks then return nil, there end
    return there and lacks or { "there is no table " .. named }
  end)
end

local function one(client, sql, name)
  local rows, problem = client:query(sql, name)
  if not rows then return nil, problem end
  return rows[1] or { left = 0 }
end

--- Marks a leader as evicted, and waits until it has stepped down.
-- @tparam table opts `url`, `timeout`, `schema`, `wait` seconds (10)
-- @string part see crown.postgres.parts
-- @string name of the election
-- @tparam table sql `mark`, which returns holder and epoch, or no row; `leads`: holder, epoch, left
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function admin.evict(opts, part, name, sql)
  return admin.visit(opts, function(client)
    local function nobody()
      local wrong = looks_elsewhere(client, opts, part)
      if wrong then return nil, wrong, "usage" end
      return eviction.nobody(name)
    end
    local rows, problem, code = client:query(sql.mark, name)
    if code == tables.MISSING then return nobody() end
    if not rows then return nil, problem end
    local evicted = rows[1]
    if not evicted then
      local row
      row, problem = one(client, sql.leads, name)
      if not row then return nil, problem end
      if row.left <= 0 then return nobody() end
      return nil, ("'%s' is led by %s, which takes no evictions; its lease ends in %.1f s unless it is refreshed")
        :format(name, row.holder, row.left)
    end
    local ended
    ended, problem, code = eviction.await(name, opts.wait, function()
      local row, why = one(client, sql.leads, name)
      if not row then return nil, why end
      return row.epoch ~= evicted.epoch or row.left <= 0
    end, "the request stays until its lease ends")
    if not ended then return nil, problem, code end
    return { node = holder.node(evicted.holder), epoch = evicted.epoch }
  end)
end

--- Gives an oracle what `info`, `evict` and `check --store` call: list, evict, health, rights.
-- @tparam table oracle
-- @tparam table what `word` and `rules` of its options, `table`, its `part` of crown_store_v1, and the SQL: `list` as for
-- admin.list, `evict` as for admin.evict; `warnings` as `more` of admin.health
-- @treturn table the oracle
function admin.serve(oracle, what)
  local function options(opts) return postgres_url.options(what.word, opts, what.rules) end
  function oracle.list(opts) return admin.list(options(opts), what.part, what.list) end
  function oracle.evict(opts, name) return admin.evict(options(opts), what.part, name, what.evict) end
  function oracle.health(opts) return admin.health(options(opts), what.table, what.part, what.warnings) end
  function oracle.rights(opts) return admin.rights(options(opts), what.part) end
  return oracle
end

return admin
