-- crown-lua status, abdicate and log-level: runtimes of this host; besides manual pages and the service manager.
local Candidate = require "support.candidate"
local conditions = require "crown.link.conditions"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local stores = require "crown.command.stores"
local tempdir = require "support.tempdir"
local Terminal = require "support.terminal"
local write_file = require "support.write_file"

describe("on this host", function()
  local dir, started

  before_each(function() dir, started = tempdir(), {} end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function start(name, node, env)
    env = env or {}
    env.CROWN_DIRECTORY = dir
    local one = Candidate.start { args = { "run", "--log-level", "warn", name, "sleep", "60" }, node = node or "one",
      log = tempdir() .. "/log", env = env }
    started[#started + 1] = one
    eventually(function() return #one:pids "child" == 1 end)
    return one
  end

  local function call(...)
    return run({ ... }, { env = { CROWN_DIRECTORY = dir } })
  end

  local function elections()
    local found = {}
    for _, runtime in ipairs(crown.json.decode(call("status", "--json").stdout).runtimes) do
      for _, one in ipairs(runtime.elections or {}) do found[one.name] = one end
    end
    return found
  end

  it("is asked for what waits for its first job, and says of what is stopped that it gives no answer", function()
    local path = write_file(dir .. "/jobs", "CRON_TZ=UTC\n0 12 29 2 * true\n")
    local one = Candidate.start { args = { "cron", "--oracle", "redis://127.0.0.1:1", path }, node = "one", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = dir } }
    started[1] = one
    eventually(function() return call("status").code == 0 end)
    assert.matches("^your runtimes here take part in no election now", call("status").stdout)
    assert.equal("1 runtime now logs from info\n", call("log-level", "info").stdout)
    one:hurt("STOP", "supervise", "runtime")
    local silent = call("log-level", "info")
    one:hurt("CONT", "supervise", "runtime")
    assert.same({ 1, "" }, { silent.code, silent.stdout })
    assert.matches("no answer from runtime %d+: is it stopped%?\n$", silent.stderr)
  end)

  it("status and info say that an expression finds none of the elections that are there", function()
    start "job1"
    for _, verb in ipairs { "status", "info" } do
      local result = call(verb, [[job\d+]])
      assert.equal(1, result.code)
      assert.equal(("crown-lua: %s: none of 1 election matches 'job\\d+'; a POSIX regular expression writes [0-9] for \\d\n")
        :format(verb), result.stderr)
      assert.matches("Election", result.stdout)
      assert.same({ 1, ("crown-lua: %s: none of 1 election matches 'nosuch'\n"):format(verb) },
        { call(verb, "nosuch").code, call(verb, "nosuch").stderr })
      assert.same({ 1, verb == "info" and "file" or nil }, { call(verb, "nosuch", "--json").code,
        crown.json.decode(call(verb, "nosuch", "--json").stdout).oracle })
      assert.same({ 0, "" }, { call(verb, "job[0-9]+").code, call(verb, "job[0-9]+").stderr })
      assert.equal(0, call(verb).code)
    end
  end)

  it("status shows every runtime's elections", function()
    assert.equal(1, call("status").code)
    local one = start "first"
    start("second", "two")
    local result = call "status"
    assert.equal(0, result.code)
    assert.matches("first%s+one%s+leading%s+one%s+1%s", result.stdout)
    assert.matches("second%s+two%s+leading%s+two%s+1%s", result.stdout)
    assert.equal(one:pids("child")[1], elections().first.child)
  end)

  it("status --stores shows every connection to a store, as long as it is there", function()
    local store = Redis.start()
    local one = Candidate.start { args = { "run", "--log-level", "warn", "--oracle", store.url .. "?ttl=5", "x", "sleep", "60" },
      node = "one", log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } }
    started[#started + 1] = one
    local place = "127%.0%.0%.1:" .. store.port
    for _, line in ipairs { "redis%s+" .. place .. "%s+proven%s+%d", "redis channels%s+" .. place .. "%s+proven%s+%d" } do
      eventually(function() return call("status", "--stores").stdout:find(line) end, 30)
    end
    store:destroy()
    eventually(function() return call("status", "--stores").stdout:find("Connection refused", 1, true) end, 30)
    local shown = crown.json.decode(call("status", "--stores", "--json").stdout).runtimes[1].stores
    assert.equal(2, #shown)
    assert.same({ "redis", "127.0.0.1:" .. store.port, 1 }, { shown[1].store, shown[1].server, shown[1].reconnects })
    assert.is_true(shown[1].answered > 0 and shown[1].since >= 0)
    assert.is_true(shown[1].limit == 1 and shown[1].connections <= 1)
  end)

  it("status has a column of nodes where candidates under several names run here", function()
    start "first"
    assert.is_nil(call("status").stdout:find "Node")
    start("second", "another")
    assert.matches("^Election%s+Node%s+Phase", call("status").stdout)
    assert.matches("\nsecond%s+another%s+leading", call("status").stdout)
  end)

  it("status --stores shows how many connections the server may see, and at most, where that is known", function()
    local source = { condition = function()
      return { store = "s", server = "h", state = "proven", since = 0, connections = 2, limit = 3 }
    end }
    conditions.add(source)
    local shown = conditions.all()
    conditions.remove(source)
    shown[2] = { store = "t", state = "proven", since = 1, reconnects = 0 }
    local text = stores.text { { pid = 7, stores = shown } }
    assert.matches("Reconnects%s+Connections%s+Runtime", text)
    assert.matches("s%s+h%s+proven%s.-%s0%s+2 of 3%s+7", text)
    assert.matches("t%s+%-%s+proven%s.-%s0%s+%-%s+7", text)
  end)

  it("status --stores says where there is no connection", function()
    start "first"
    assert.equal("no runtime of yours has a connection to a store\n", call("status", "--stores").stdout)
  end)

  it("status says which runtime does not answer, and forgets one that was killed", function()
    local one = start "stopped"
    one:hurt("STOP", "supervise", "runtime")
    assert.matches("no answer", call("status").stdout)
    one:hurt("KILL", "supervise", "runtime")
    one:wait(5)
    eventually(function() return call("status").code == 1 end)
  end)

  it("the socket is the owner's alone", function()
    start "first"
    local listing = crown.exec({ "find", dir, "-name", "runtime-*.sock" }).stdout
    assert.matches("runtime%-%d+%.sock\n$", listing)
    assert.equal("700\n", crown.exec({ "stat", "-c", "%a", dir }).stdout)
    local path = listing:match "[^\n]+"
    local as_nobody = crown.exec { "runuser", "-u", "nobody", "--", "sh", "-c",
      ("echo '{\"ask\":\"status\"}' | socat - UNIX:%s"):format(path) }
    if as_nobody then assert.are_not.equal(0, as_nobody.code) end
  end)

  it("the socket survives nonsense", function()
    start "first"
    local path = crown.exec({ "find", dir, "-name", "runtime-*.sock" }).stdout:match "[^\n]+"
    for _, text in ipairs { "", "x", "[]", "{}", '{"ask":"nothing"}', '{"ask":7}', ("["):rep(1000), ("x"):rep(100000) } do
      local connection = assert(crown.tcp.connect("unix:" .. path, 0))
      connection:write(text .. "\n")
      assert.is_nil((connection:read "*l"))
      connection:close()
    end
    assert.equal(0, call("status").code)
  end)

  it("abdicate makes the leader step down, and lets the other one lead", function()
    local one = start "first"
    assert.equal(1, elections().first.epoch)
    local result = call("abdicate", "first")
    assert.equal(0, result.code)
    assert.matches("asked runtime %d+ to step down", result.stdout)
    eventually(function() return elections().first.epoch == 2 end)
    local two = Candidate.start { args = { "run", "first", "sleep", "60" }, node = "two", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = dir } }
    started[2] = two
    two:follows()
    result = call("abdicate", "first")
    assert.matches("asked runtime %d+ to step down", result.stdout)
    assert.matches("runtime %d+ follows in 'first': it has nothing to step down from", result.stdout)
    assert.equal(1, call("abdicate", "unknown").code)
    assert.equal(2, call("abdicate").code)
    assert.is_nil(one.code)
  end)

  it("log-level changes what a runtime logs, while it runs", function()
    local one = start "first"
    assert.is_nil(one:output():find "leadership.claimed")
    assert.equal(0, call("log-level", "info").code)
    call("abdicate", "first")
    eventually(function() return one:output():find "leadership.claimed" end)
    assert.equal(2, call("log-level", "loud").code)
  end)

  it("systemd is told: ready, what is led, the watchdog, the end", function()
    local path = dir .. "/notify"
    local manager = Candidate.start { program = "/usr/bin/socat", args = { "-u", "UNIX-RECV:" .. path, "-" }, node = "manager",
      log = dir .. "/log" }
    started[#started + 1] = manager
    eventually(function() return os.execute("test -S " .. path) == 0 end)
    local one = start("first", "one", { NOTIFY_SOCKET = path, WATCHDOG_USEC = "400000" })
    for _, text in ipairs { "READY=1", "STATUS=leads 1 of 1 elections: first", "WATCHDOG=1" } do
      eventually(function() return manager:output():find(text, 1, true) end)
    end
    local environment = io.open(("/proc/%d/environ"):format(one:pids("child")[1])):read "*a"
    assert.is_nil(environment:find(path, 1, true)) -- it has one of ours: see notify_spec.lua
    one:signal "TERM"
    eventually(function() return manager:output():find "STOPPING=1" end)
  end)

  it("a program's title counts who leads, and of few says their names", function()
    local app, go = dir .. "/app.lua", dir .. "/go"
    write_file(app, [[
      local crown, made = require "crown", {}
      for i, name in ipairs { "a", "b", "c", "d" } do made[i] = crown.elect { name = name, oracle = "memory:" } end
      crown.spawn(function()
        repeat crown.sleep(0.01) until io.open(arg[1])
        made[4]:stop()
        repeat crown.sleep(0.01) until io.open(arg[1] .. "-on")
        made[3]:stop()
        made[2]:stop()
      end)]])
    local one = Candidate.start { args = { "--log-level", "warn", app, go }, node = "one", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = dir } }
    started[#started + 1] = one
    local function is_called(title)
      eventually(function() return read_file(("/proc/%d/cmdline"):format(one.pid)):find(title, 1, true) end)
    end
    is_called "4 elections [leads 4 of 4]"
    write_file(go, "")
    is_called "a, b, c [leads 3 of 3]"
    write_file(go .. "-on", "")
    is_called "a [leading, epoch 1]"
  end)

  it("status shows what is asked for, in the order that is asked for", function()
    for _, name in ipairs { "b-one", "a-two", "c-three" } do start(name) end
    assert.equal("a-two b-one c-three", table.concat({ call("status").stdout:match "\n(%S+)[^\n]+\n(%S+)[^\n]+\n(%S+)" }, " "))
    assert.equal("c-three a-two b-one",
      table.concat({ call("status", "--sort", "since").stdout:match "\n(%S+)[^\n]+\n(%S+)[^\n]+\n(%S+)" }, " "))
    local found = crown.json.decode(call("status", "^[ab]-", "--json").stdout)
    local names = {}
    for _, runtime in ipairs(found.runtimes) do
      for _, one in ipairs(runtime.elections) do names[#names + 1] = one.name end
    end
    table.sort(names)
    assert.same({ "a-two", "b-one" }, names)
    assert.matches("is no regular expression", call("status", "(").stderr)
    assert.matches("is not one of name, phase", call("status", "--sort", "size").stderr)
  end)

  it("status says that a store gives no answer, and that nobody is known to lead there", function()
    local one = Candidate.start { args = { "run", "--quiet", "--oracle", "redis://127.0.0.1:1", "x", "true" }, node = "one",
      log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } }
    started[#started + 1] = one
    eventually(function()
      assert.matches("x%s+following%s+%? no answer%s+%- .-redis: never reached, tried for [%d.]+ %w+", call("status").stdout)
      return true
    end, 20)
    assert.matches("refused", elections().x.failure)
    local terminal = Terminal.start { args = { "status" }, columns = 40, env = { CROWN_DIRECTORY = dir } }
    started[#started + 1] = terminal
    terminal:shows "1 election, 0 led here"
    terminal:shows "1 whose store gives no answer"
    terminal:shows "no answer"
  end)

  it("status says what a store answers that grants and denies nothing", function()
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      while (connection:read "*l" or "\r") ~= "\r" do end
      connection:write "HTTP/1.1 418 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      connection:close()
    end))
    finally(function() listener:close() end)
    local one = Candidate.start { args = { "run", "--quiet", "--oracle", ("http://127.0.0.1:%d/locks"):format(listener:port()), "x",
      "true" }, node = "one", log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } }
    started[#started + 1] = one
    eventually(function()
      local text = call("status").stdout
      return text:find("x%s+following%s+%?%s+%- .-: answers, but for [%d.]+ %w+: .-the lease server answered 418") or error(text)
    end, 20)
    assert.is_true(elections().x.answers)
    local terminal = Terminal.start { args = { "status" }, columns = 100, env = { CROWN_DIRECTORY = dir } }
    started[#started + 1] = terminal
    terminal:shows "1 whose store answers with a failure"
  end)

  it("status names no leader whose lease has run out since the store gave its last answer", function()
    local server = Postgres.start()
    finally(function() server:destroy() end)
    local function candidate(node)
      local one = Candidate.start { args = { "run", "--quiet", "--oracle", server.url .. "?ttl=3", "x", "sleep", "60" }, node = node,
        log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } }
      started[#started + 1] = one
      return one
    end
    local function row(leader, rest)
      local line = "x%s+%w+%s+following%s+" .. leader .. "%s+%d+%s+" .. rest
      eventually(function() return call("status", "--sort", "phase").stdout:find(line) end)
    end
    local leader = candidate "one"
    eventually(function() return #leader:pids "child" == 1 end)
    candidate "two"
    row("one", "%-")
    server:freeze()
    row("%? no answer", "%-")
    server:thaw()
    row("%w+", "%-")
  end)

  it("status names no leader for longer than a lease where the store does not say how long one lasts", function()
    local server = Etcd.start():trusted()
    finally(function() server:destroy() end)
    local function candidate(node)
      local one = Candidate.start { args = { "run", "--quiet", "--oracle", server.url .. "?ttl=3", "x", "sleep", "60" }, node = node,
        log = tempdir() .. "/log", env = { CROWN_DIRECTORY = dir } }
      started[#started + 1] = one
      return one
    end
    local leader = candidate "one"
    eventually(function() return #leader:pids "child" == 1 end)
    candidate "two"
    local function follower()
      for _, runtime in ipairs(crown.json.decode(call("status", "--json").stdout).runtimes) do
        if runtime.node == "two" then return runtime.elections and runtime.elections[1] or {} end
      end
      return {}
    end
    eventually(function() return follower().leader == "one" end, 20)
    server:freeze()
    eventually(function() return follower().away and not follower().leader end, 20)
    server:thaw()
    eventually(function() return follower().leader ~= nil end, 20)
  end)

  it("every command has a manual page of what --help says", function()
    for _, name in ipairs(require("crown.command").verbs) do
      local page = run { "help", "--man", name }
      assert.equal(0, page.code)
      assert.matches("^%.TH CROWN\\%-LUA", page.stdout)
    end
    assert.matches("crown.elect", run({ "help", "--man", "crown-lua.3" }).stdout)
    assert.equal(2, run({ "help", "--man", "nothing" }).code)
  end)

  it("the manual page of the API names every option, handler and module that an app may use", function()
    local page = run({ "help", "--man", "crown-lua.3" }).stdout:gsub("\\%-", "-")
    local options = require "crown.election.options"
    for _, list in ipairs { options.election, options.child, options.restart } do
      for name in pairs(list) do assert.is_truthy(page:find("%f[%w_]" .. name .. "%f[^%w_]"), name) end
    end
    for _, name in ipairs { "init(", "won(", "lost(", "leader(", "campaign(", "rights(", "warnings(", "crown.redis", "crown.postgres",
      "crown.http", "crown.tcp", "crown.registry", "crown.testing", "crown.oracle.cas" } do
      assert.is_truthy(page:find(name, 1, true), name)
    end
  end)

  it("manual pages are what the formatter takes without a word", function()
    for _, name in ipairs { "crown-lua.1", "crown-lua.3", "run", "log-level" } do
      local shown = assert(crown.exec { "sh", "-c", ("%s help --man %s | groff -ww -man -Tascii -P-c -P-b -P-u"):format(program, name) })
      assert.equal("", shown.stderr)
      assert.matches("SEE ALSO\n%s+.*crown%-lua%(%d%)", shown.stdout)
      assert.is_nil(shown.stdout:find("BR", 1, true))
    end
  end)
end)
