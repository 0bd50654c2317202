-- What the command line refuses, and what it never does to a terminal.
local crown = require "crown"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"


-- One clear line on stderr and exit code 2.
local function refused(args, pattern, env)
  local result = run(args, { env = env })
  assert.equal(2, result.code, table.concat(args, " ") .. ": " .. result.stderr)
  assert.matches(pattern, result.stderr)
  assert.equal(1, select(2, result.stderr:gsub("\n", "")))
end

describe("the command line", function()
  for label, case in pairs {
    ["a heartbeat of nothing"] = { { "--heartbeat", "0", "status" }, "%-%-heartbeat must be at least 0%.5" },
    ["a heartbeat too short for any host"] = { { "--heartbeat", "0.001", "status" }, "%-%-heartbeat must be at least 0%.5" },
    ["a number that is none"] = { { "--heartbeat", "nan", "status" }, "%-%-heartbeat is not a number" },
    ["a time without an end"] = { { "run", "--once", "--wait", "inf", "x", "true" }, "%-%-wait must be at most" },
    ["a wait that is no number"] = { { "run", "--once", "--wait", "nan", "x", "true" }, "%-%-wait is not a number" },
    ["a wait before now"] = { { "evict", "--force", "--wait", "-1", "x" }, "%-%-wait must be at least 0" },
    ["a TTL of nothing"] = { { "--ttl", "0", "info" }, "%-%-ttl must be more than 0" },
    ["a negative age"] = { { "file", "--max-age", "-3", "/tmp/x" }, "%-%-max%-age must be at least 0" },
    ["words that nobody asked for"] = { { "status", "every", "thing" }, "status: 'thing' is one word too many" },
    ["two expressions"] = { { "info", "a", "b" }, "info: 'b' is one word too many" },
    ["two elections to evict"] = { { "evict", "--force", "a", "b" }, "evict: 'b' is one word too many" },
    ["two levels"] = { { "log-level", "info", "debug" }, "log%-level: 'debug' is one word too many" },
    ["a node name of two lines"] = { { "--node", "a\nb", "run", "x", "true" }, "node: a name has no control characters" },
    ["a node name too long to show"] = { { "--node", ("n"):rep(300), "run", "x", "true" }, "node: a name has 1 to 255 bytes" },
    ["a node name that is not UTF-8"] = { { "--node", "Caf\233", "run", "x", "true" }, "node: a name is UTF%-8" },
    ["a node name with an overlong form"] = { { "--node", "a\192\128", "run", "x", "true" }, "node: a name is UTF%-8" },
    ["a node name with half a character"] = { { "--node", "a\226\130", "run", "x", "true" }, "node: a name is UTF%-8" },
    ["an empty node name"] = { { "--node", "", "run", "x", "true" }, "%-%-node: the value is empty.*is a variable not set%?" },
    ["an empty oracle"] = { { "run", "--oracle=", "x", "true" }, "%-%-oracle: the value is empty: %-%-oracle URL" },
    ["an empty time"] = { { "run", "--ttl", "", "x", "true" }, "%-%-ttl: the value is empty: %-%-ttl SECONDS" },
    ["an empty follower"] = { { "run", "--follower", "", "x", "true" }, "%-%-follower: the value is empty" },
    ["an empty command"] = { { "run", "x", "" }, "run: the command for 'x' is an empty word" },
    ["an eviction without a terminal to ask on"] = { { "evict", "x" }, "no terminal to ask you on: use %-%-force" },
    ["a level that is none"] = { { "log-level", "inf" }, "'inf' is not one of .-did you mean 'info'" },
    ["an option of the URL with two values"] = { { "run", "--oracle", "redis://127.0.0.1:1?ttl=5&ttl=6", "x", "true" },
      "oracle URL: ttl is there twice, as 5 and as 6: give it once" },
    ["an option of check behind run"] = { { "check", "run", "--store", "x", "true" },
      "%-%-store stands before run: crown%-lua check %[OPTIONS%] APP.lua" },
    ["a prefix with an empty part in etcd"] = { { "run", "--oracle", "etcd://127.0.0.1:1//p", "x", "true" },
      "prefix in the etcd URL has a part that is empty" },
    ["a path with an empty part of a lease server"] = { { "run", "--oracle", "http://127.0.0.1:1/p//q", "x", "true" },
      "the path in the URL has a part that is empty" },
    ["an empty socket of MySQL"] = { { "check", "--oracle", "mysql://u@/d?socket=", "run", "x", "true" },
      "socket in the MySQL URL is empty" },
    ["a database of Redis that is no number"] = { { "check", "--oracle", "redis+unix:///x?db=x", "run", "x", "true" },
      "database in the Redis URL is no number" },
    ["an age of a file that is written"] = { { "file", "--max-age", "3", "/tmp/x", "x" }, "%-%-max%-age has no effect here.*%-%-check" },
    ["an election for a file that is looked at"] = { { "file", "/tmp/x", "x", "--check" }, "name a file, and no election" },
    ["an order of connections"] = { { "status", "--stores", "--sort", "name" }, "have no effect here" },
    ["connections by the names of elections"] = { { "status", "--stores", "reports" }, "have no effect here" },
    ["an oracle for what asks no store"] = { { "--oracle", "file:/x", "status" },
      "status: %-%-oracle has no effect.*handover, redo and history" },
  } do
    it("refuses " .. label, function() refused(case[1], case[2]) end)
  end

  it("refuses a directory whose sockets nobody could reach", function()
    local directory = "/tmp/" .. ("d"):rep(82)
    for _, words in ipairs { { "run", "x", "true" }, { "status" }, { "history" } } do
      refused(words, "^crown%-lua: CROWN_DIRECTORY has 87 bytes: .* has room for 86\n$", { CROWN_DIRECTORY = directory })
    end
  end)

  it("names the variable where what it says is wrong", function()
    for variable, value in pairs { CROWN_HTTP = "nonsense", CROWN_NODE = "a\nb", CROWN_HEARTBEAT = "x", CROWN_LOG_LEVEL = "x" } do
      refused({ "run", "x", "true" }, "^crown%-lua: " .. variable .. ": ", { [variable] = value })
    end
    refused({ "--http", "nonsense", "run", "x", "true" }, "^crown%-lua: %-%-http: ")
  end)

  for _, words in ipairs { { "status" }, { "info" }, { "evict", "--force", "x" }, { "history" }, { "abdicate", "x" },
    { "log-level", "info" }, { "completion", "bash" }, { "help" } } do
    it("refuses what is for candidates at " .. words[1], function()
      for option, value in pairs { node = "ann", ttl = "5", heartbeat = "3", http = ":0" } do
        refused({ "--" .. option, value, unpack(words) },
          words[1]:gsub("%-", "%%-") .. ": %-%-" .. option .. " has no effect here: it is for candidates")
      end
    end)
  end

  it("takes the last of an option that stands there twice", function()
    local result = run({ "run", "--quiet", "--node", "ann", "--node=ben", "x", "sh", "-c", "echo $CROWN_NODE" },
      { env = { CROWN_DIRECTORY = tempdir() } })
    assert.same({ 0, "ben\n" }, { result.code, result.stdout })
  end)

  it("says that there is no runtime whose level it could change", function()
    local dir = tempdir()
    for _, words in ipairs { { "log-level", "info" }, { "status" }, { "status", "--stores" } } do
      local result = run(words, { env = { CROWN_DIRECTORY = dir } })
      assert.same({ 1, ("no runtime of yours runs here: none has a socket in %s\n"
        .. "Ask as the user who runs crown-lua, with the same CROWN_DIRECTORY, or as root for the units of the service manager.\n")
        :format(dir) }, { result.code, result.stdout })
    end
  end)

  it("lets the environment speak to all verbs", function()
    local result = run({ "status" }, { env = { CROWN_ORACLE = "file:/x", CROWN_NODE = "ann", CROWN_HEARTBEAT = "3", CROWN_HTTP = ":0",
      CROWN_DIRECTORY = tempdir() } })
    assert.equal(1, result.code)
    assert.equal("", result.stderr)
  end)

  it("explains itself when asked to, and shows how where nothing is asked", function()
    assert.equal(0, run({ "help" }).code)
    assert.equal(2, run({}).code)
  end)

  it("refuses --once with a command that never ends", function()
    for _, policy in ipairs { "permanent", "transient", "temporary" } do
      refused({ "run", "--once", "--restart", policy, "x", "true" }, "leave %-%-restart " .. policy .. " out")
    end
  end)

  it("shows the line of a syntax error in a module", function()
    local folder = tempdir()
    for _, name in ipairs { "broken", "app", "handled" } do
      local file = assert(io.open(("%s/%s.lua"):format(folder, name), "w"))
      file:write(name == "broken" and "local x = 1\nlocal y = = 2\n"
        or ("require('crown').elect { name = 'x', %s = 'broken' }\n"):format(name == "app" and "oracle" or "handlers"))
      file:close()
    end
    for _, app in ipairs { "app", "handled" } do
      refused({ ("%s/%s.lua"):format(folder, app) }, "broken%.lua:2: unexpected symbol near '='",
        { CROWN_ORACLE = "file:" .. folder })
    end
  end)

  it("lists no election of a directory that nobody has made yet, and evicts nobody", function()
    local oracle = "file:" .. tempdir() .. "/none"
    local result = run { "info", "--oracle", oracle, "--json" }
    assert.equal(0, result.code, result.stderr)
    assert.same({ {}, {} }, { crown.json.decode(result.stdout).elections, crown.json.decode(result.stdout).warnings })
    assert.equal(1, run({ "evict", "--oracle", oracle, "--force", "nosuch" }).code)
    assert.is_nil(io.open(oracle:sub(6)))
  end)

  it("refuses a port that is none", function()
    for _, oracle in ipairs { "postgres://u:p@h:99999/x", "postgres://h,i:0/x", "etcd://h:99999/x", "http://h:99999/x" } do
      refused({ "check", "--oracle", oracle, "run", "x", "true" }, "port")
    end
  end)

  for _, oracle in ipairs { "postgres://h:99999/x", "postgres://h/x?nosuch=1", "postgres+advisory://h:0/x", "redis://h:99999",
    "redis://h/x/y", "redis+sentinel://h", "etcd://h:99999", "nats://h:99999/x", "nats://h/a*b", "oban+postgres://h:99999",
    "registry+postgres://h:99999/x" } do
    it("tells a URL that is wrong from a store that is away: " .. oracle, function()
      refused({ "info", "--oracle", oracle }, "^crown%-lua: ")
      refused({ "evict", "--force", "--oracle", oracle, "x" }, "^crown%-lua: ")
    end)
  end

  it("says why an app cannot be read", function()
    refused({ "/proc/self/mem/app.lua" }, "cannot be read: .*Not a directory")
  end)

  it("shows no password of a URL that was mistyped", function()
    for _, oracle in ipairs { "postgres//app:s3cretPW@h/app", "postgres:/app:s3cretPW@h/app", "app:s3cretPW@h",
      "postgres//app:s3cretPW/@x@h/app", "postgres://app:x@s3cretPW/x@127.0.0.1:1/app",
      "http://app:s3cretPW/x@127.0.0.1:1/locks", "http://app:x@s3cretPW/x@127.0.0.1:1/locks" } do
      local result = run({ "run", "x", "--", "true" }, { env = { CROWN_ORACLE = oracle } })
      assert.equal(2, result.code, oracle .. ": " .. result.stderr)
      assert.matches("oracle", result.stderr)
      assert.not_matches("s3cret", result.stderr)
    end
  end)

  it("checks numbers of the environment too, and names the variable", function()
    refused({ "status" }, "CROWN_HEARTBEAT must be at least 0%.5", { CROWN_HEARTBEAT = "0" })
  end)

  it("says with dashes which option was meant", function()
    refused({ "run", "--fenec", "x", "true" }, "did you mean '%-%-fence'")
  end)

  it("shows names from a store without letting them steer the terminal", function()
    local dir = tempdir()
    local evil = assert(io.open(dir .. "/evil", "w"))
    evil:write(crown.json.encode { epoch = 3, node = "evil\27]0;title\7\194\155m\155K\195\164", leading = true })
    evil:close()
    -- The command leads, so that the name in the file is shown as the leader's.
    local shown = assert(crown.exec { "sh", "-c", ("%s run --oracle file:%s x sh -c 'cp %s/evil %s/x.json; %s info --oracle file:%s'")
      :format(program, dir, dir, dir, program, dir) }).stdout
    assert.matches("evil\\x1b%]0;title\\x07\\x9bm\\x9bKä", shown)
    assert.is_nil(shown:find "[\27\7]")
    assert.is_nil(shown:find "\194\155")
  end)

  for _, verb in ipairs { "status", "info" } do
    it(verb .. " --watch ends with its reader", function()
      local dir = tempdir()
      local result = assert(crown.exec({ "sh", "-c", ("{ CROWN_DIRECTORY=%s %s %s --watch; echo $? >&2; } | head -1")
        :format(dir, program, verb) }, { timeout = 20 }))
      assert.equal("0\n", result.stderr)
    end)
  end
end)
