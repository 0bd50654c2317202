-- The register in MariaDB asked by hand: what a write names has to stand, and what the server may do to it.
local Connection = require "crown.mysql.connection"
local core = require "crown.core"
local crown = require "crown"
local driver = require "crown.stores.mysql"
local eventually = require("crown.testing").eventually
local Mysql = require "support.mysql"
local read_file = require "crown.text.read_file"
local WrongClock = require "support.wrong_clock"

local TABLES = "crown.crown_register, crown.crown_register_mark"
local MANY = 600

local serial = 0

describe("the register in MySQL", function()
  local server, store, name, undone

  -- At the end of a case, what came last first.
  local function at_the_end(fn) table.insert(undone, 1, fn) end

  local function open(options, url, timeout)
    local given = { table = "crown_register" }
    for key, value in pairs(options or {}) do given[key] = value end
    return assert(driver.open { url = url or server.url, options = given, timeout = timeout or 20 })
  end

  local function opened(...)
    local one = open(...)
    at_the_end(function() one:close() end)
    return one
  end

  setup(function() server = Mysql.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial, undone = serial + 1, {}
    name, store = "election-" .. serial, open()
  end)
  after_each(function()
    for _, fn in ipairs(undone) do fn() end
    store:close()
  end)

  local function look(of)
    local answers
    eventually(function()
      answers = store:look { of or name }
      return answers
    end, 20)
    return answers[of or name]
  end

  local function swap(version, text, of)
    return assert(store:swap { { name = of or name, version = version, text = text, memory = look(of).memory } })[1]
  end

  it("says that there is no record, and in which memory", function()
    local answer = look()
    assert.is_false(answer.text)
    assert.is_false(answer.version)
    assert.matches("^%S+:%d+:%x+%-%d+:", answer.memory)
  end)

  it("writes only over the version that is named", function()
    local first = swap(false, "one")
    assert.is_string(first)
    assert.same({ "one", first }, { look().text, look().version })
    assert.is_false(swap(false, "two"))
    local second = swap(first, "it's \\ \0 \255")
    assert.is_true(second ~= first)
    assert.is_false(swap(first, "three"))
    assert.same({ "it's \\ \0 \255", second }, { look().text, look().version })
    assert.is_string(swap(second, look().text)) -- a text that stays as it is is written all the same
  end)

  it("reads no more of a row than a record may have, for the sake of the others", function()
    local version = swap(false, "one")
    server:sql(("UPDATE crown.crown_register SET record = REPEAT('x', 9000000) WHERE name = '%s'"):format(name))
    local answer = look()
    assert.same({ 131072, version }, { #answer.text, answer.version })
  end)

  it("tells names apart that a collation does not", function()
    swap(false, "one")
    assert.is_false(look(name:upper()).text)
    assert.is_false(look(name .. " ").text)
  end)

  it("writes many at once, each by its own version", function()
    local memory, writes = look().memory, {}
    for i = 1, MANY do writes[i] = { name = ("%s/%d"):format(name, i), version = false, text = "one", memory = memory } end
    for i, version in ipairs(assert(store:swap(writes))) do
      writes[i].version = i % 2 == 0 and version or "another"
    end
    for i, version in ipairs(assert(store:swap(writes))) do assert.equal(i % 2 == 0, version ~= false) end
    local named = 0
    for _, one in ipairs(assert(store:names())) do
      if one:find(name .. "/", 1, true) then named = named + 1 end
    end
    assert.equal(MANY, named)
  end)

  it("writes nothing in another memory than the one that is named", function()
    local function write(version, of)
      return assert(store:swap { { name = of or name, version = version, text = "one", memory = "another" } })[1]
    end
    assert.is_false(write(false))
    assert.is_false(write(false, "@session-" .. serial))
    local first = swap(false, "one")
    assert.is_false(write(first))
    server:sql(("DELETE FROM crown.crown_register WHERE name = '%s'"):format(name))
    assert.is_false(write(look().version))
  end)

  it("is another memory after a crash, and when all is lost", function()
    local seen = { [look().memory] = true }
    local function is_new(act)
      act()
      local memory = look().memory
      assert.is_nil(seen[memory])
      seen[memory] = true
    end
    local function uptime()
      return tonumber(server:sql("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME'")[1][1])
    end
    is_new(function()
      eventually(function() return uptime() > 0 end, 20) -- two starts are told apart by their seconds
      server:down()
      server:up()
    end)
    is_new(function() server:sql("DROP TABLE " .. TABLES) end)
    is_new(function() server:sql "TRUNCATE crown.crown_register; TRUNCATE crown.crown_register_mark" end)
    is_new(function() server:sql "DELETE FROM crown.crown_register; DELETE FROM crown.crown_register_mark" end)
  end)

  it("is another memory where a dump is put back, whatever stands in that", function()
    local before = look().memory
    server:sql "CREATE TABLE crown.dumped AS SELECT * FROM crown.crown_register_mark"
    eventually(function() -- the time at which a table was made is told in seconds
      server:sql [[DROP TABLE crown.crown_register_mark;
        CREATE TABLE crown.crown_register_mark (name VARBINARY(1000) NOT NULL PRIMARY KEY, mark VARBINARY(64) NOT NULL) ENGINE=InnoDB;
        INSERT INTO crown.crown_register_mark SELECT * FROM crown.dumped]]
      return look().memory ~= before
    end, 20)
    server:sql "DROP TABLE crown.dumped"
  end)

  it("is one memory on all connections, also on those that came after its clock was set to before its start", function()
    local clock = WrongClock.new(0)
    local other = Mysql.start { clock = clock }
    at_the_end(function() other:destroy() end)
    local memories = {}
    for _, ahead in ipairs { 0, -18000, -17000, 36000 } do
      clock:set(ahead)
      memories[assert(opened({}, other.url):look { name })[name].memory] = true
    end
    assert.is_nil(next(memories, (next(memories))))
  end)

  it("leaves a mark of a record that is deleted, and writes over that", function()
    for _, statement in ipairs { "DELETE FROM crown.crown_register", "TRUNCATE crown.crown_register" } do
      local first = look().version
      swap(first, "one")
      server:sql(statement)
      local marked = look()
      assert.is_false(marked.text)
      assert.matches("^deleted%-", marked.version)
      assert.is_true(marked.version ~= first)
      assert.is_false(swap(false, "two"))
    end
    local last = look().version
    assert.is_string(swap(last, "two"))
    assert.is_false(swap(last, "three"))
    assert.equal("two", look().text)
  end)

  it("leaves none of a session", function()
    swap(false, "one", "@token-" .. serial)
    server:sql "DELETE FROM crown.crown_register"
    assert.is_false(look("@token-" .. serial).version)
  end)

  it("deletes the record of a session over the version that a write names", function()
    local session = "@token-" .. serial
    local first = swap(false, "one", session)
    local second = swap(first, "two", session)
    assert.is_false(swap(first, false, session))
    assert.equal("two", look(session).text)
    assert.is_string(swap(second, false, session))
    assert.same({ false, false }, { look(session).text, look(session).version })
  end)

  it("tells how long ago a record was written, by the server's clock", function()
    swap(false, "one")
    local age = look().age
    assert.is_true(age >= 0 and age < 20)
  end)

  it("tells the server's time, and a negative age where its clock was set back since", function()
    swap(false, "one")
    server:sql "UPDATE crown.crown_register SET written = written + INTERVAL 1 HOUR"
    assert.is_true(look().age < -3500)
    local told, now = look().time, tonumber(server:sql("SELECT UNIX_TIMESTAMP()")[1][1])
    assert.is_true(told <= now * 1000 + 999 and told > (now - 60) * 1000, told)
    assert.equal("number", type(look("nobody").time))
  end)

  it("answers all who write the same records at once, in whatever order they name them", function()
    local memory, left = look().memory, 40
    for i = 1, 40 do
      local one = open()
      crown.spawn(function()
        local writes = {}
        for k = 1, 20 do
          writes[k] = { name = ("%s/%d"):format(name, i % 2 == 0 and k or 21 - k), version = false, text = "one", memory = memory }
        end
        local fine, problem = one:swap(writes)
        one:close()
        left = fine and left - 1 or problem
      end)
    end
    eventually(function() return left == 0 or type(left) == "string" end, 40)
    assert.equal(0, left)
  end)

  -- Somebody else has a lock; the store gives up in time, has written nothing, and goes on when the lock is gone.
  local function is_held_up_by(lock, free)
    local first = swap(false, "one")
    local memory = look().memory
    server:sql(lock)
    local hurried = opened({}, nil, 1)
    eventually(function() return hurried.client:ready() end, 20)
    local results, problem = hurried:swap { { name = name, version = first, text = "two", memory = memory } }
    assert.is_nil(results)
    assert.is_string(problem)
    eventually(function() -- the server gives it up at about the same time
      return #server:sql "SELECT 1 FROM information_schema.PROCESSLIST WHERE USER = 'crown' AND COMMAND = 'Query'" == 0
    end, 20)
    server:sql(free)
    eventually(function() return hurried:look { name } end, 20)
    assert.same({ "one", first }, { look().text, look().version })
    eventually(function() return #server:sql "SELECT * FROM information_schema.INNODB_TRX" == 0 end, 20)
    assert.is_string(swap(first, "three"))
  end

  it("is not held up for longer than its time-out by a lock on the row", function()
    is_held_up_by("START TRANSACTION; SELECT * FROM crown.crown_register FOR UPDATE", "COMMIT")
  end)

  it("is not held up for longer than its time-out by a lock on the table", function()
    is_held_up_by("LOCK TABLES crown.crown_register WRITE", "UNLOCK TABLES")
  end)

  it("answers nothing on a server that is read-only, and takes another one that is not", function()
    swap(false, "one")
    local other = Mysql.start { args = { "--read-only" } }
    at_the_end(function() other:destroy() end)
    local there = opened({}, other.url, 1)
    local answers, problem = there:look { name }
    assert.is_nil(answers)
    assert.matches("read%-only", problem)
    local both = opened({}, ("mysql://crown@127.0.0.1:%d,127.0.0.1:%d/crown"):format(other.port, server.port))
    assert.equal("one", assert(both:look { name })[name].text)
    server:sql "SET GLOBAL read_only = 1"
    at_the_end(function() server:sql "SET GLOBAL read_only = 0" end)
    assert.is_nil((store:look { name }))
    assert.matches("read%-only", table.concat(assert(both:rights()), "; "))
  end)

  it("refuses a table that may forget", function()
    look()
    server:sql "ALTER TABLE crown.crown_register ENGINE = Aria"
    at_the_end(function() server:sql "ALTER TABLE crown.crown_register ENGINE = InnoDB" end)
    local there = opened()
    local answers, problem, code = there:look { name }
    assert.is_nil(answers)
    assert.matches("ALTER TABLE crown_register ENGINE = InnoDB", problem, 1, true)
    assert.equal("usage", code)
    assert.matches("Aria", table.concat(assert(store:rights()), "; "))
  end)

  it("writes nothing where no key keeps names apart, and says so", function()
    for _, named in ipairs { "crown_register", "crown_register_mark" } do
      local memory, before = look().memory, look().version
      local version = assert(store:swap { { name = name, version = before, text = "one", memory = memory } })[1]
      server:sql(("ALTER TABLE crown.%s DROP PRIMARY KEY, ADD PRIMARY KEY (name(500))"):format(named))
      assert.is_nil((opened():look { name }))
      server:sql(("ALTER TABLE crown.%s DROP PRIMARY KEY"):format(named))
      local results = store:swap { { name = name, version = version, text = "two", memory = memory } }
      assert.is_falsy(results and results[1])
      local answers, problem, code = opened():look { name }
      assert.same({ nil, "usage" }, { answers, code })
      assert.matches(("ALTER TABLE %s ADD PRIMARY KEY (name)"):format(named), problem, 1, true)
      assert.matches(("ALTER TABLE %s ADD PRIMARY KEY (name)"):format(named), table.concat(assert(store:rights()), "; "), 1, true)
      server:sql(("ALTER TABLE crown.%s ADD PRIMARY KEY (name)"):format(named))
      eventually(function() return store:look { name } end, 10)
    end
  end)

  local function user(named, rights)
    server:sql(("CREATE USER %s@'%%' IDENTIFIED BY 'open sesame'"):format(named))
    if rights then server:sql(("GRANT %s ON crown.* TO %s@'%%'"):format(rights, named)) end
    return server:url_for(named .. ":open%20sesame")
  end

  it("needs SELECT, INSERT, UPDATE and DELETE, and says what is lacking, in the server's words", function()
    local enough = opened({}, user("enough", "SELECT, INSERT, UPDATE, DELETE"))
    assert.is_string(assert(enough:swap { { name = name, version = false, text = "one", memory = look().memory } })[1])
    assert.same({}, assert(enough:rights()))
    local reader = opened({}, user("reader", "SELECT"))
    local lacks = table.concat(assert(reader:rights()), "; ")
    assert.matches("INSERT command denied to user 'reader'@'%S+' for table `crown`.`crown_register`", lacks)
    assert.matches("UPDATE command denied to user 'reader'", lacks)
    assert.is_nil((reader:look { name }))
    assert.same({}, assert(store:rights()))
  end)

  it("says to whoever may not make the tables where the statements for that are", function()
    look()
    server:sql("DROP TABLE IF EXISTS " .. TABLES)
    local url = user("poor", "SELECT, INSERT, UPDATE, DELETE")
    local poor = opened({}, url)
    local answers, problem, code = poor:look { name }
    assert.is_nil(answers)
    assert.matches("docs/oracle%-mysql%.md", problem)
    assert.equal("usage", code)
    assert.matches("CREATE command denied", table.concat(assert(poor:rights()), "; "))
    for _, sql in ipairs(require("crown.mysql.statements").make "crown_register") do server:sql("USE crown; " .. sql) end
    assert.is_table(opened({}, url):look { name })
  end)

  it("says that a login is refused, and no password", function()
    user "known"
    for _, login in ipairs { "known:wrong%20one", "nobody:wrong%20one" } do
      local there = opened({}, server:url_for(login), 2)
      local answers, problem = there:look { name }
      assert.is_nil(answers)
      assert.matches("Access denied for user", problem)
      assert.is_nil(problem:find "wrong")
    end
    local there = opened({}, server:url_for "known:open%20sesame", 2)
    assert.matches("Access denied for user 'known'@'%S+' to database 'crown'", select(2, there:look { name }))
  end)

  it("goes by a UNIX socket too", function()
    local there = opened({}, ("mysql://crown@/crown?socket=%s"):format(server.socket))
    assert.equal(look().memory, assert(there:look { name })[name].memory)
  end)

  it("keeps a table by another name apart", function()
    swap(false, "one")
    assert.is_false(assert(opened({ table = "other_register" }):look { name })[name].text)
  end)

  it("tells tools how the server is, and warns of one that a crash makes forget", function()
    local found = assert(store:health())
    assert.matches("^MariaDB %d+%.%d+%.%d+, takes writes$", found.facts[1][2])
    assert.same({}, found.warnings)
    server:sql "SET GLOBAL innodb_flush_log_at_trx_commit = 2"
    at_the_end(function() server:sql "SET GLOBAL innodb_flush_log_at_trx_commit = 1" end)
    assert.matches("innodb_flush_log_at_trx_commit is 2", assert(store:health()).warnings[1])
  end)

  it("warns of a log that is not on the disk, or that cannot have what is written", function()
    local other = Mysql.start { args = { "--log-bin", "--sync-binlog=0", "--binlog-format=STATEMENT", "--server-id=1" } }
    at_the_end(function() other:destroy() end)
    local there = opened({}, other.url)
    local warnings = table.concat(assert(there:health()).warnings, "; ")
    assert.matches("sync_binlog is 0", warnings)
    assert.matches("binlog_format is STATEMENT", warnings)
    local answers, problem = there:look { name }
    assert.is_nil(answers)
    assert.matches("statement", problem:lower())
  end)

  it("writes a row-based and a mixed log", function()
    for _, format in ipairs { "ROW", "MIXED" } do
      local other = Mysql.start { args = { "--log-bin", "--sync-binlog=1", "--binlog-format=" .. format, "--server-id=1" } }
      at_the_end(function() other:destroy() end)
      local there = opened({}, other.url)
      local memory = assert(there:look { name })[name].memory
      assert.is_string(assert(there:swap { { name = name, version = false, text = "one", memory = memory } })[1])
    end
  end)

  it("gives up an answer that does not come, and takes it for no other's", function()
    local hurried = opened({}, nil, 1)
    eventually(function() return hurried:look { name } end, 20)
    local connection = assert(hurried.client:ready())
    local results, _, code = connection:query(0.2, "SELECT SLEEP(20)")
    assert.same({ nil, "timeout" }, { results, code })
    assert.is_string(connection.closed)
    eventually(function() return hurried:look { name } end, 20)
  end)

  it("leaves no more than one connection on a server that hangs", function()
    local hurried = opened({}, server:url_for "crown", 0.5)
    eventually(function() return hurried:look { name } end, 20)
    local here = (":%04X 0100007F:"):format(server.port)
    server:freeze()
    local most = 0
    local until_then = crown.now() + 6
    while crown.now() < until_then do
      hurried:look { name }
      local count = 0
      for line in read_file("/proc/net/tcp"):gmatch "[^\n]+" do
        local at, _, state, inode = line:match "^%s*%d+: (%S+) (%S+) (%x%x) %S+ %S+ %S+%s+%S+%s+%S+%s+(%d+)"
        if at and (at .. " 0100007F:"):find(here, 1, true) and state ~= "0A" and inode then count = count + 1 end
      end
      most = math.max(most, count)
      crown.sleep(0.1)
    end
    server:thaw()
    assert.is_true(most <= 4, most .. " connections") -- the store's, the one of before each case, the spec's own, one that ends
    eventually(function() return hurried:look { name } end, 20)
  end)

  describe("checks that", function()
    local function refuses(opts, words)
      local oracle = require "crown.oracles.mysql"
      opts.crown_name, opts.node, opts.token, opts.given = "e", "one", "t", {}
      local fine, state, problem = pcall(oracle.init, opts)
      assert.is_true(not fine or state == nil)
      assert.matches(words, tostring(fine and problem or state))
    end

    it("a URL names a database, a host and nothing else", function()
      refuses({ url = "mysql://root@127.0.0.1" }, "name the database")
      refuses({ url = "mysql://root@127.0.0.1/a'b" }, "letters, digits")
      refuses({ url = "mysql://root@127.0.0.1:99999/db" }, "no valid host or port")
      refuses({ url = "mysql://root@127.0.0.1/db?socket=/x" }, "a host and a socket")
      refuses({ url = "mysql://root@127.0.0.1/db", lock = ("x"):rep(1001) }, "at most 1000 bytes")
      refuses({ url = "mysql://root@127.0.0.1/db", table = "a b" }, "table")
      refuses({ url = "mysql://root@127.0.0.1/db?ca=/x" }, "mysqls://")
    end)
  end)

  describe("behind a proxy", function()
    -- Servers' greetings pass through `fn`.
    local function proxy(fn)
      local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(near)
        local far = assert(crown.tcp.connect("127.0.0.1", server.port))
        near:write(fn(far:read "*s"))
        core.detach(function()
          for bytes in function() return near:read("*s", 60) end do far:write(bytes) end
          far:close()
        end)
        for bytes in function() return far:read("*s", 60) end do near:write(bytes) end
        near:close()
      end))
      at_the_end(function() listener:close() end)
      return ("mysql://crown@127.0.0.1:%d/crown"):format(listener:port())
    end

    it("works where that hands a connection on as it is", function()
      assert.is_table(assert(opened({}, proxy(function(bytes) return bytes end)):look { name }))
    end)

    it("is refused where that has connections of its own", function()
      local there = opened({}, proxy(function(bytes)
        local at = bytes:find("\0", 6, true)
        return bytes:sub(1, at) .. "\1\2\3\0" .. bytes:sub(at + 5)
      end), 5)
      local answers, problem, code = there:look { name }
      assert.is_nil(answers)
      assert.matches("a proxy in between", problem)
      assert.equal("usage", code)
    end)
  end)

  it("is asked by statements that all end with what was asked", function()
    local connection = assert(Connection.open({ user = "crown", password = "", database = "crown" },
      { host = "127.0.0.1", port = server.port }, 5))
    at_the_end(function() connection:close() end)
    local results = assert(connection:query(5, "SELECT 1, NULL, 'x'; SELECT 2 FROM DUAL WHERE FALSE; SET @a = 1"))
    assert.same({ { rows = { { "1", false, "x" } } }, { rows = {} }, { changed = 0 } }, results)
    local _, problem, code = connection:query(5, "SELECT 1; SELECT nonsense; SELECT 2")
    assert.equal(1054, code)
    assert.matches("nonsense", problem)
    assert.same({ { rows = { { "3" } } } }, assert(connection:query(5, "SELECT 3")))
    assert.matches("too long", select(2, connection:query(20, "SELECT REPEAT('x', 2000000)")))
  end)

  it("rolls back what a statement that fails leaves open, before anything else is asked", function()
    local connection = assert(Connection.open({ user = "crown", password = "", database = "crown" },
      { host = "127.0.0.1", port = server.port }, 5))
    at_the_end(function() connection:close() end)
    swap(false, "one")
    local changed = ("UPDATE crown_register SET record = 'two' WHERE name = '%s'"):format(name)
    assert.is_nil((connection:query(5, "START TRANSACTION; " .. changed .. "; SELECT nonsense", "ROLLBACK")))
    local results = assert(connection:query(5, ("SELECT record FROM crown_register WHERE name = '%s'"):format(name)))
    assert.equal("one", results[1].rows[1][1])
  end)
end)
