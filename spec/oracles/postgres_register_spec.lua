-- The register in Postgres asked by hand: what a write names has to stand, and whoever else writes to the table is seen.
local crown = require "crown"
local driver = require "crown.stores.postgres"
local eventually = require("crown.testing").eventually
local json = require "crown.text.json"
local Pgbouncer = require "support.pgbouncer"
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"

local TTL = 15
local SESSION = "@token-" .. TTL

-- What the Elixir library Crown runs.
local CROWNS = [[
INSERT INTO crown_lease_v1 AS l (lock_name, holder, expires_at) VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3::float8))
ON CONFLICT (lock_name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE l.expires_at <= clock_timestamp() OR l.holder = excluded.holder RETURNING holder]]

local serial = 0

-- A text as the register writes it, with a nonce of its own.
local function text(fields)
  serial = serial + 1
  local one = { v = 1, serial = serial, epoch = 7, node = "one", nonce = "nonce-" .. serial }
  for key, value in pairs(fields) do one[key] = value or nil end
  return json.encode(one)
end

local function held(more)
  local fields = { by = SESSION, at = 1 }
  for key, value in pairs(more or {}) do fields[key] = value end
  return text(fields)
end

describe("the register in Postgres", function()
  local server, store, name, events

  local function open(options, url)
    local given = { url = url or server.url, given = {} }
    for key, value in pairs(options or {}) do given[key] = value end
    local checked = assert(driver.check(given, driver.options))
    return assert(driver.open { url = checked.url, options = checked, timeout = 20,
      emit = function(event, fields) events[event] = fields end })
  end

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial, events = serial + 1, {}
    name, store = "election-" .. serial, open()
  end)
  after_each(function() store:close() end)

  local function look(of) return assert(store:look { of or name })[of or name] end

  local function swap(version, words, of)
    return assert(store:swap { { name = of or name, version = version, text = words, memory = look().memory } })[1]
  end

  local function row(of)
    return server:sql("SELECT *, extract(epoch FROM expires_at - clock_timestamp())::float8 AS left FROM crown_lease_v1 "
      .. "WHERE lock_name = $1", of or name)[1]
  end

  it("says that there is no record, and in which memory", function()
    local answer = look()
    assert.is_false(answer.text)
    assert.is_false(answer.version)
    assert.matches("^%d+:%d+:%d+:%d+:", answer.memory)
  end)

  it("writes only over the version that is named", function()
    local first = swap(false, held())
    assert.is_string(first)
    assert.equal(first, look().version)
    assert.is_false(swap(false, held()))
    local words = held()
    local second = swap(first, words)
    assert.is_true(second ~= first)
    assert.is_false(swap(first, held()))
    assert.same({ words, second }, { look().text, look().version })
  end)

  it("writes many at once, each by its own version", function()
    local memory = look().memory
    local writes = {}
    for i = 1, 600 do writes[i] = { name = ("%s/%d"):format(name, i), version = false, text = held(), memory = memory } end
    local first = assert(store:swap(writes))
    for i, write in ipairs(writes) do
      assert.is_string(first[i])
      write.version, write.text = i % 2 == 0 and first[i] or "another one @" .. SESSION, held()
    end
    for i, version in ipairs(assert(store:swap(writes))) do assert.equal(i % 2 == 0, version ~= false) end
  end)

  it("writes nothing in another memory than the one that is named", function()
    local results = assert(store:swap { { name = name, version = false, text = held(), memory = "another" } })
    assert.is_false(results[1])
    assert.is_false(look().text)
  end)

  it("is another memory after a restart, a table made anew and a table rewritten", function()
    local seen = { [look().memory] = true }
    local function is_new()
      local memory
      eventually(function()
        local answers = store:look { name }
        memory = answers and answers[name].memory
        return memory
      end, 20)
      assert.is_nil(seen[memory])
      seen[memory] = true
    end
    server:down "immediate"
    server:up()
    is_new()
    server:sql "VACUUM FULL crown_lease_v1"
    is_new()
    server:sql "DROP TABLE crown_lease_v1"
    is_new()
    server:sql "ALTER TABLE crown_lease_v1 DISABLE TRIGGER ALL"
    server:sql "TRUNCATE crown_lease_v1"
    server:sql "ALTER TABLE crown_lease_v1 ENABLE TRIGGER ALL"
    is_new()
  end)

  it("answers nothing as a standby, and in another memory when that is promoted", function()
    local before = look().memory
    local standby = server:replica()
    finally(function() standby:destroy() end)
    local there = open({}, standby.url .. "?target_session_attrs=any")
    finally(function() there:close() end)
    assert.is_nil((there:look { name }))
    standby:promote()
    eventually(function()
      local answers = there:look { name }
      return answers and answers[name].memory ~= before
    end, 20)
  end)

  it("marks the store's record where its table was there before, and where it lacked a column", function()
    local function is_marked(statement)
      local stands = look "@store"
      if not stands.text then swap(stands.version, text { longest = TTL, epoch = false }, "@store") end
      server:sql(statement)
      server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
      local answers
      eventually(function() answers = store:look { "@store" } return answers end, 20)
      assert.is_false(answers["@store"].text)
      assert.is_string(answers["@store"].version)
    end
    is_marked "DROP TABLE crown_lease_v1"
    is_marked "ALTER TABLE crown_lease_v1 DROP COLUMN record"
    server:sql "DELETE FROM crown_lease_v1 WHERE lock_name = '@store'"
    assert.is_string(look("@store").version)
  end)

  it("tells how long ago a session was renewed", function()
    local session = "@age-" .. TTL
    swap(false, text { ttl = TTL, at = 1 }, session)
    local age = look(session).age
    assert.is_true(age >= 0 and age < 5)
  end)

  it("tells of each change of an election's record, and of a session's end alone", function()
    local heard = {}
    store:hear(function(of) heard[#heard + 1] = of or "missed" end)
    look()
    Postgres.await_listener(function() return store.listener end)
    local session = swap(false, text { ttl = TTL, at = 1 }, SESSION .. "0")
    swap(session, text { ttl = TTL, at = 1 }, SESSION .. "0")
    local first = swap(false, held())
    local second = swap(first, held())
    swap(second, text {})
    eventually(function() return heard[#heard] == name end, 20)
    crown.sleep(0)
    for _, one in ipairs(heard) do assert.is_true(one == name or one == "missed") end
    swap(look(SESSION .. "0").version, text { ttl = TTL, at = 1, over = 1 }, SESSION .. "0")
    eventually(function() return heard[#heard] == SESSION .. "0" end, 20)
  end)

  -- What the session of a store keeps.
  local function plans(of)
    local rows = assert(of.client:query("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE strpos(statement, $1) > 0 "
      .. "AND strpos(statement, 'pg_prepared_statements') = 0", "json_to_recordset"))
    return { rows[1].generic_plans, rows[1].custom_plans }
  end

  it("has the server plan a statement once", function()
    swap(false, held())
    swap(look().version, held())
    assert.same({ 2, 0 }, plans(store))
  end)

  it("names all records", function()
    swap(false, held())
    swap(false, text { ttl = TTL, at = 1 }, name .. "@")
    local found = {}
    for _, one in ipairs(assert(store:names())) do found[one] = true end
    assert.is_true(found[name] and found[name .. "@"])
  end)

  it("works behind a pooler, and says that nobody hears there", function()
    local pooler = Pgbouncer.start(server)
    finally(function() pooler:destroy() end)
    local there = open({}, ("postgres://crown@127.0.0.1:%d/crown"):format(pooler.port))
    finally(function() there:close() end)
    there:hear(function() end)
    local memory = assert(there:look { name })[name].memory
    assert.equal(look().memory, memory)
    assert.is_string(assert(there:swap { { name = name, version = false, text = held(), memory = memory } })[1])
    assert.matches("pooler", events["monitor.failed"].error)
    assert.same({ true, false }, { there.deaf, store.deaf }) -- so that followers ask
  end)

  it("keeps a table of its own where the table is not shared", function()
    local alone = open { shared = false }
    finally(function() alone:close() end)
    local memory = assert(alone:look { name })[name].memory
    assert.is_true(memory ~= look().memory)
    assert.is_string(assert(alone:swap { { name = name, version = false, text = held(), memory = memory } })[1])
    assert.is_false(look().text)
  end)

  it("refuses to write what a crash may forget", function()
    local none, why = driver.check({ url = server.url, synchronous_commit = false, given = {} }, driver.options)
    assert.is_nil(none)
    assert.matches("synchronous_commit = false", why)
    server:sql "ALTER TABLE crown_lease_v1 SET UNLOGGED"
    local other = open()
    finally(function()
      other:close()
      server:sql "ALTER TABLE crown_lease_v1 SET LOGGED"
    end)
    local answers, problem = other:look { name }
    assert.is_nil(answers)
    assert.matches("UNLOGGED", problem)
  end)

  it("asks the leader of a row that somebody deletes to go, and keeps the row", function()
    local first = swap(false, held())
    server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name)
    local answer = look()
    assert.equal("evict", json.object(answer.text).directive)
    assert.is_false(swap(first, held()))
    local free = swap(answer.version, text {})
    server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name)
    assert.equal(free, look().version)
  end)

  it("has lost what nobody can read when somebody deletes it, and another may be written over that", function()
    for of, words in pairs { [name] = text {}, [name .. "/held"] = held(), ["@store"] = text { longest = 15, epoch = false } } do
      for _, odd in ipairs { "x", "{}", "[1]", "3", '{"v":1,"serial":3' } do
        assert.is_string(swap(look(of).version, words, of))
        server:sql("UPDATE crown_lease_v1 SET record = $2 WHERE lock_name = $1", of, odd)
        assert.equal(odd, look(of).text)
        server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", of)
        local answer = look(of)
        assert.is_false(answer.text)
        assert.is_string(answer.version)
        assert.is_nil(answer.peer)
      end
    end
    server:sql "UPDATE crown_lease_v1 SET version = NULL WHERE lock_name = '@store'"
  end)

  it("reads no more of a row than a record may have, for the sake of the others", function()
    local version = swap(false, text {})
    server:sql("UPDATE crown_lease_v1 SET record = repeat('x', 20000000) WHERE lock_name = $1", name)
    local answer = look()
    assert.same({ 131072, version }, { #answer.text, answer.version })
  end)

  it("keeps a row that somebody deletes as a replica or renames, and asks its leader to go", function()
    swap(false, held())
    server:sql "SET session_replication_role = replica"
    finally(function() server:sql "SET session_replication_role = origin" end)
    server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name)
    assert.equal("evict", json.object(look().text).directive)
    local done, problem = pcall(server.sql, server, "UPDATE crown_lease_v1 SET lock_name = $1 WHERE lock_name = $2", name .. "/2", name)
    assert.is_false(done)
    assert.matches("not renamed", problem)
    assert.is_string(look().text)
  end)

  it("answers nothing where a trigger is off, makes it anew, and is another memory", function()
    local version, before = swap(false, held()), look().memory
    server:sql "ALTER TABLE crown_lease_v1 DISABLE TRIGGER USER"
    assert.is_false(assert(store:swap { { name = name, version = version, text = held(), memory = before } })[1])
    assert.is_nil((store:look { name }))
    eventually(function() return store:look { name } end, 20)
    local made_anew = look().memory
    assert.is_true(made_anew ~= before)
    -- in a moment that nobody sees
    server:sql "DO $$ BEGIN ALTER TABLE crown_lease_v1 DISABLE TRIGGER USER; DELETE FROM crown_lease_v1; END $$"
    server:sql "ALTER TABLE crown_lease_v1 ENABLE ALWAYS TRIGGER crown_lease_v1_keep"
    server:sql "ALTER TABLE crown_lease_v1 ENABLE ALWAYS TRIGGER crown_lease_v1_name"
    server:sql "ALTER TABLE crown_lease_v1 ENABLE ALWAYS TRIGGER crown_lease_v1_stay"
    assert.is_false(look().text)
    assert.is_true(look().memory ~= made_anew)
  end)

  it("writes nothing where no key keeps names apart, and makes one; what stood twice is lost", function()
    local version, before = swap(false, held()), look().memory
    server:sql "CREATE UNIQUE INDEX partial_key ON crown_lease_v1 (lock_name) WHERE epoch > 1000000"
    server:sql "ALTER TABLE crown_lease_v1 DROP CONSTRAINT crown_lease_v1_pkey"
    server:sql("INSERT INTO crown_lease_v1 SELECT * FROM crown_lease_v1 WHERE lock_name = $1", name)
    assert.is_false(assert(store:swap { { name = name, version = version, text = held(), memory = before } })[1])
    local answers, problem = store:look { name }
    assert.is_nil(answers)
    assert.matches("key over lock_name", problem)
    eventually(function() return store:look { name } end, 20)
    assert.equal(1, tonumber(server:sql("SELECT count(*) AS n FROM crown_lease_v1 WHERE lock_name = $1", name)[1].n))
    local found = look()
    assert.is_false(found.text)
    assert.is_string(found.version)
    assert.is_true(found.memory ~= before)
    assert.is_false((pcall(server.sql, server, "INSERT INTO crown_lease_v1 SELECT * FROM crown_lease_v1 LIMIT 1")))
  end)

  it("deletes a session's row for its runtime, over the version that it names, and for nobody else", function()
    local version = swap(false, text { ttl = TTL, at = 1 }, "@gone-" .. TTL)
    local function delete(was)
      return assert(store:swap { { name = "@gone-" .. TTL, version = was, text = false, memory = look().memory } })[1]
    end
    server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", "@gone-" .. TTL)
    assert.equal(version, look("@gone-" .. TTL).version)
    assert.is_false(delete "another one @")
    assert.is_string(look("@gone-" .. TTL).text)
    assert.truthy(delete(version))
    assert.is_false(look("@gone-" .. TTL).version)
  end)

  it("goes on where its role may not delete", function()
    local version = swap(false, text { ttl = TTL, at = 1 }, "@stays-" .. TTL)
    server:sql "CREATE ROLE keeper LOGIN"
    server:sql "GRANT SELECT, INSERT, UPDATE ON crown_lease_v1 TO keeper"
    local keeper = open({}, ("postgres://keeper@127.0.0.1:%d/crown"):format(server.port))
    finally(function() keeper:close() end)
    local memory = look().memory
    local results = assert(keeper:swap {
      { name = name, version = false, text = held(), memory = memory },
      { name = "@stays-" .. TTL, version = version, text = false, memory = memory } })
    assert.is_string(results[1])
    assert.is_false(results[2])
    assert.equal(version, look("@stays-" .. TTL).version)
  end)

  it("asks the leader of version 0.1.0 to go whose row somebody deletes, and frees nothing", function()
    look()
    server:sql "ALTER TABLE crown_lease_v1 ADD COLUMN IF NOT EXISTS evicted BOOLEAN NOT NULL DEFAULT FALSE"
    server:sql("INSERT INTO crown_lease_v1 (lock_name, holder, expires_at) "
      .. "VALUES ($1, 'one#token', clock_timestamp() + interval '1 h')", name)
    server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name)
    assert.equal("one#token", row().holder)
    assert.is_true(row().left > 3000)
    assert.is_true(row().evicted)
  end)

  it("takes no row away with TRUNCATE", function()
    swap(false, held())
    assert.has_error(function() server:sql "TRUNCATE crown_lease_v1" end)
    assert.is_string(look().text)
  end)

  it("tells tools how the server is, and what a candidate lacks", function()
    look()
    local found = assert(store:health())
    assert.matches("^PostgreSQL %d.*, primary, 0 replicas$", found.facts[1][2])
    assert.same({}, found.warnings)
    assert.same({}, assert(store:rights()))
    server:sql "CREATE ROLE reader LOGIN"
    server:sql "ALTER ROLE reader SET default_transaction_read_only = on"
    local reader = open({}, ("postgres://reader@127.0.0.1:%d/crown"):format(server.port))
    finally(function() reader:close() end)
    local lacks = table.concat(assert(reader:rights()), "; ")
    assert.matches("read%-only", lacks)
    assert.matches("reader may not SELECT, INSERT and UPDATE crown_lease_v1", lacks)
  end)

  describe("beside Elixir's Crown", function()
    local function crowns(holder, seconds)
      return server:sql(CROWNS, name, holder, seconds)[1] ~= nil
    end

    it("is given no row of theirs before its time is over, and sees whose it is", function()
      assert.is_true(crowns("a@b", 1))
      local answer = look()
      assert.is_false(answer.text)
      assert.equal("a@b", answer.peer.node)
      assert.is_true(answer.peer.wait > 0 and answer.peer.wait <= 1)
      assert.is_false(swap(answer.version, held()))
      eventually(function() return look().peer.wait == 0 end, 20)
      assert.is_string(swap(answer.version, held()))
      assert.is_nil(look().peer)
    end)

    it("waits for a day at most for what is theirs for ever", function()
      server:sql("INSERT INTO crown_lease_v1 (lock_name, holder, expires_at) VALUES ($1, 'a@b', 'infinity')", name)
      local wait = look().peer.wait
      assert.is_true(wait > 1000 and wait <= 86400)
    end)

    it("keeps them away for as long as its session is renewed", function()
      local session = swap(look(SESSION).version, text { ttl = TTL, at = 1 }, SESSION)
      swap(false, held())
      assert.is_false(crowns("a@b", 1))
      server:sql("UPDATE crown_lease_v1 SET expires_at = clock_timestamp() + interval '1 s' WHERE lock_name = $1", name)
      assert.is_string(swap(session, text { ttl = TTL, at = 1 }, SESSION))
      assert.is_true(row().left > TTL - 5)
      assert.is_false(crowns("a@b", 1))
      assert.is_false(swap(session, text { ttl = TTL, at = 1 }, SESSION)) -- which keeps nobody away
    end)

    it("lets them in where its session is over", function()
      local session = swap(look(SESSION).version, text { ttl = TTL, at = 1 }, SESSION)
      swap(false, held())
      assert.is_false(crowns("a@b", 1))
      assert.is_string(swap(session, text { ttl = TTL, at = 1, over = 1 }, SESSION))
      assert.is_true(crowns("a@b", 1))
    end)

    it("keeps them away for the whole of a doubt", function()
      swap(false, text { doubt = 60 })
      assert.is_true(row().left > 55)
      assert.is_false(crowns("a@b", 1))
    end)

    it("lets them in at once when it has given up a lease", function()
      swap(swap(false, held()), text {})
      assert.is_true(crowns("a@b", 1))
    end)

    it("does not take a record that they have written over for what it was", function()
      local version = swap(false, held())
      server:sql("UPDATE crown_lease_v1 SET expires_at = clock_timestamp() WHERE lock_name = $1", name)
      assert.is_true(crowns("a@b", 0))
      assert.is_false(swap(version, held()))
      local answer = look()
      assert.is_table(answer.peer)
      assert.is_string(answer.text)
      server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name) -- as they abdicate
      assert.is_false(swap(answer.version, held()))
      assert.equal(0, look().peer.wait)
      assert.is_string(swap(look().version, held()))
    end)

    it("has one winner with them, however close they come", function()
      for round = 1, 50 do
        name = ("race-%d-%d"):format(serial, round)
        local answer, theirs = look(), nil
        crown.spawn(function() theirs = crowns("a@b", 60) end)
        if round % 2 == 0 then crown.sleep(0) end
        local ours = swap(answer.version, held())
        eventually(function() return theirs ~= nil end, 20)
        assert.is_true((ours ~= false) ~= theirs)
      end
    end)
  end)

  it("adds what it needs to a table that Crown has made", function()
    server:sql "DROP TABLE crown_lease_v1"
    server:sql "SET ROLE crown"
    server:sql "CREATE TABLE crown_lease_v1 (lock_name TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at TIMESTAMPTZ NOT NULL)"
    server:sql "RESET ROLE"
    local other = open()
    finally(function() other:close() end)
    eventually(function() return other:look { name } end, 20)
  end)

  it("makes its table also where the server takes what PL/pgSQL warns of for errors", function()
    server:sql "DROP TABLE crown_lease_v1"
    server:sql "ALTER ROLE crown SET plpgsql.extra_errors = 'all'"
    local other = open()
    finally(function()
      other:close()
      server:sql "ALTER ROLE crown RESET plpgsql.extra_errors"
    end)
    eventually(function() return other:look { name } end, 20)
  end)

  it("works with a table that another role has made by the page's SQL", function()
    local page = read_file "docs/oracle-postgres.md"
    local made = page:match "## Tables and rights.-```sql\n(.-)```"
    server:sql "DROP TABLE crown_lease_v1"
    local psql = assert(crown.exec { "psql", "-qv", "ON_ERROR_STOP=1", server:url_for "postgres", "-c", made })
    assert.equal(0, psql.code, psql.stderr)
    finally(function()
      server:sql "DROP TABLE crown_lease_v1"
      server:sql "DROP FUNCTION crown_lease_v1_keep"
      server:sql "DROP FUNCTION crown_lease_v1_stay"
      server:sql "DROP FUNCTION crown_lease_v1_name"
    end)
    server:sql "GRANT SELECT, INSERT, UPDATE ON crown_lease_v1 TO crown"
    local first = swap(false, held())
    assert.truthy(swap(first, held()))
    assert.same({}, assert(store:rights()))
  end)

  it("says that a view stands in the table's place", function()
    look() -- which makes the table
    server:sql "ALTER TABLE crown_lease_v1 RENAME TO aside"
    server:sql "CREATE VIEW crown_lease_v1 AS SELECT 'x' AS lock_name"
    local other = open()
    finally(function()
      other:close()
      server:sql "DROP VIEW crown_lease_v1"
      server:sql "ALTER TABLE aside RENAME TO crown_lease_v1"
    end)
    local answers, problem = other:look { name }
    assert.is_nil(answers)
    assert.matches("crown_lease_v1 is a view, and no table: rename it", problem)
    assert.matches("crown_lease_v1 is a view, and no table: rename it", table.concat(assert(other:rights()), "\n"))
  end)

  for what, words in pairs { ["TEXT PRIMARY KEY"] = "as the table's owner, or run the statements of docs/oracle-postgres.md",
    ["TEXT NOT NULL"] = "as the table's owner, or CREATE UNIQUE INDEX ON crown_lease_v1 (lock_name)" } do
    it("says what its owner has to run where it may not change a table: " .. what, function()
      server:sql "DROP TABLE IF EXISTS crown_lease_v1"
      server:sql(("CREATE TABLE crown_lease_v1 (lock_name %s, holder TEXT NOT NULL, expires_at TIMESTAMPTZ NOT NULL)"):format(what))
      local other = open()
      finally(function()
        other:close()
        server:sql "DROP TABLE crown_lease_v1"
      end)
      local answers, problem = other:look { name }
      assert.is_nil(answers)
      assert.matches(words, problem, 1, true)
      local lacks = table.concat(assert(other:rights()), "\n")
      assert.equal(what == "TEXT NOT NULL", lacks:find(words, 1, true) ~= nil)
    end)
  end
end)
