--- Operators' orders in Postgres beside elections whose own table has no room for them: rows of `crown_KIND_orders_v1`. The first
-- order makes it, in the schema of that table. So nobody needs it who gives no orders. A text is its own version.
-- @internal crown.postgres.orders

local json = require "crown.text.json"
local ordered = require "crown.oracle.ordered"
local postgres = require "crown.postgres"
local rights = require "crown.postgres.rights"
local tables = require "crown.postgres.tables"

local Orders = {}
Orders.__index = Orders

local TABLE = "crown_%s_orders_v1" -- and the channel that tells of changes

local NO_RIGHT, DUPLICATE = "42501", "23505" -- SQLSTATE; two that make the same table at once may meet in its catalog
local MAKES = 3

-- Who may read or write the table beside it may the same with this one, and its owner is the owner, where the user may have that:
-- an order that no candidate can read is none.
local MAKE = [[
DO $make$
DECLARE place name; owner name; one record;
BEGIN
  SELECT n.nspname, pg_get_userbyid(c.relowner) INTO place, owner
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('BESIDE');
  EXECUTE format('CREATE TABLE IF NOT EXISTS %I.NAMED (lock_name TEXT PRIMARY KEY, orders TEXT NOT NULL)', place);
  BEGIN
    FOR one IN SELECT a.privilege_type AS may, a.grantee AS who FROM pg_class c, aclexplode(c.relacl) a
      WHERE c.oid = to_regclass('BESIDE') AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
      EXECUTE format('GRANT %s ON %I.NAMED TO %s', one.may, place,
        CASE one.who WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(one.who)) END);
    END LOOP;
    EXECUTE format('ALTER TABLE %I.NAMED OWNER TO %I', place, owner);
  EXCEPTION WHEN insufficient_privilege THEN NULL;
  END;
END $make$]]

local THERE = "SELECT to_regclass('BESIDE') IS NOT NULL AS there"

-- $1 names as JSON, or nothing.
local LOOK = [[
SELECT lock_name AS name, orders FROM ORDERS
WHERE $1::json IS NULL OR lock_name IN (SELECT json_array_elements_text($1::json))]]

-- Whoever listens looks again.
local TELL = "WITH done AS (%s RETURNING lock_name)\nSELECT pg_notify('NAMED', lock_name) FROM done"

-- $1 name.
local CHANGES = {
  insert = "INSERT INTO ORDERS (lock_name, orders) VALUES ($1, $2) ON CONFLICT DO NOTHING",
  update = "UPDATE ORDERS SET orders = $3 WHERE lock_name = $1 AND orders = $2",
  delete = "DELETE FROM ORDERS WHERE lock_name = $1 AND orders = $2",
}

--- Makes one.
-- @tparam Client client of crown.postgres
-- @string kind of elections
-- @string beside the table of the elections, as SQL names it
-- @string[opt] schema of both, quoted; nil: the user's search_path
-- @treturn Orders see crown.oracle.order_book
function Orders.new(client, kind, beside, schema)
  local bare = TABLE:format(kind)
  local words = { BESIDE = beside, NAMED = bare, ORDERS = schema and schema .. "." .. bare or bare }
  local function of(sql) return (sql:gsub("%f[%w_]%u+%f[^%w_]", words)) end
  local sql = { there = of(THERE), make = of(MAKE), look = of(LOOK) }
  for name, statement in pairs(CHANGES) do sql[name] = of(TELL:format(statement)) end
  return setmetatable({ client = client, beside = beside, named = words.ORDERS, sql = sql }, Orders)
end

-- The server has answered: so that a candidate tells of it that may not read them.
local function said(problem, code)
  return nil, problem, type(code) == "string" and code:find "^[%dA-Z]+$" and "store" or code
end

--- As a store of orders has it. Before the first order there is no table.
function Orders:read(names)
  local rows, problem, code = self.client:query(self.sql.look, names and json.encode(names) or nil)
  if code == tables.MISSING then rows = {} end
  if not rows then return said(problem, code) end
  local found = {}
  for _, name in ipairs(names or {}) do found[name] = false end
  for _, row in ipairs(rows) do found[row.name] = { text = row.orders, version = row.orders } end
  return found
end

-- @return true; or nil, message, code
local function make(self)
  local rows, problem, code = self.client:query(self.sql.there)
  if not rows then return said(problem, code) end
  if not rows[1].there then
    return nil, ("there is no table %s: the first candidate makes it"):format(self.beside), "refused"
  end
  for _ = 1, MAKES do
    rows, problem, code = self.client:query(self.sql.make)
    if rows then return true end
    if code ~= DUPLICATE then break end
  end
  if code == NO_RIGHT then
    problem = ("there is no table %s, and this user may not make it: see the oracle's page (%s)"):format(self.named, problem)
  end
  return said(problem, code)
end

local function change(self, name, text, version)
  if not version then return self.client:query(self.sql.insert, name, text) end
  if not text then return self.client:query(self.sql.delete, name, version) end
  return self.client:query(self.sql.update, name, version, text)
end

--- As a store of orders has it.
function Orders:write(name, text, version)
  local rows, problem, code = change(self, name, text, version)
  if code == tables.MISSING then
    local made
    made, problem, code = make(self)
    if not made then return nil, problem, code end
    rows, problem, code = change(self, name, text, version)
  end
  if not rows then return said(problem, code) end
  return rows[1] ~= nil
end

--- What is to be warned of, for `info` and `check --store`.
-- @string privileges that a candidate needs, with commas between them
-- @treturn table an array of texts
function Orders:warnings(privileges)
  local lacks, there = rights.on(self.client, self.named, privileges)
  return { lacks and there and lacks[1] and lacks[1] .. ", which operators' orders need" or nil }
end

--- Has the candidates of a place hear of orders.
-- @tparam table place of crown.oracle.ordered, with a `client` of crown.postgres
-- @string kind of elections
-- @treturn table the place
function Orders.heard(place, kind)
  place.client:listen(TABLE:format(kind), function(name) ordered.hear(place, name) end, function() ordered.hear(place) end)
  return place
end

local places = {}

--- Where a runtime's candidates of one database look at orders, and hear of them, on a connection of its own: one that waits for
-- a lock answers nothing meanwhile.
-- @string url
-- @string kind of elections
-- @number timeout seconds for one question, where it is the first to ask for it
-- @treturn table a place of crown.oracle.ordered, with `client` of crown.postgres; or nil, message
function Orders.place(url, kind, timeout)
  local key = kind .. " " .. url
  if places[key] then return places[key] end
  local client, problem = postgres.new(url, { timeout = timeout, background = true, bounded = true, label = "postgres orders" })
  if not client then return nil, problem end
  places[key] = Orders.heard({ client = client }, kind)
  return places[key]
end

return Orders
