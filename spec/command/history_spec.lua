-- crown-lua history, as operators use it.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("crown-lua history", function()
  local place, started

  before_each(function() place, started = tempdir(), {} end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function start(node)
    local one = Candidate.start { args = { "run", "--oracle", "file:" .. place .. "/locks", "reports", "sleep", "60" }, node = node,
      log = tempdir() .. "/log", env = { CROWN_DIRECTORY = place } }
    started[#started + 1] = one
    return one
  end

  local function history(...)
    return run({ "history", "--oracle", "file:" .. place .. "/locks", ... }, { env = { CROWN_DIRECTORY = place } })
  end

  local function terms()
    return crown.json.decode(history("reports", "--json").stdout).terms
  end

  -- Terms that were seen to begin, and so are in the file.
  local function noted()
    local count = 0
    for _, term in ipairs(terms()) do count = count + (term.began and 1 or 0) end
    return count
  end

  it("shows each term once, whoever saw it, with its reason and how long it lasted", function()
    assert.equal(1, history("reports").code)
    local one = start "one"
    eventually(function() return noted() == 1 end, 20)
    local two = start "two"
    two:follows()
    one:signal "TERM"
    eventually(function() return noted() == 2 end, 20)
    local found = terms()
    assert.same({ "one", 1, "shutdown" }, { found[1].leader, found[1].epoch, found[1].reason })
    assert.is_true(found[1].ended >= found[1].began)
    assert.same({ "two", 2 }, { found[2].leader, found[2].epoch })
    assert.is_nil(found[2].ended)
    local text = history("reports").stdout
    assert.matches("^Began%s+Leader%s+Epoch%s+Lasted%s+Ended\n%d+%-%d+%-%d+ %d+:%d+:%d+%s+one%s+1%s+[%d.]+ %w+.-shutdown\n", text)
    assert.matches("two%s+2%s+%-%s+leads now\n$", text)
    assert.is_true(found[2].leads)
  end)

  it("shows when and why a term ended that somebody impatient ended at once", function()
    local one = Candidate.start { args = { "run", "--oracle", "file:" .. place .. "/locks", "--stop-timeout", "60", "reports", "bash",
      "-c", "trap '' INT TERM; while :; do sleep 0.1; done" }, node = "one", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = place } }
    started[#started + 1] = one
    eventually(function() return noted() == 1 end, 20)
    one:signal "INT"
    crown.sleep(0.6) -- sooner it would be the same request
    one:signal "INT"
    assert.equal(130, one:wait(20))
    local term = terms()[1]
    assert.equal("shutdown", term.reason)
    assert.is_true(term.ended >= term.began)
  end)

  it("tells the elections of one name in several stores apart, and asks each its own", function()
    local function lead(store, node)
      started[#started + 1] = Candidate.start { args = { "run", "--oracle", "file:" .. place .. "/" .. store, "reports", "sleep", "60" },
        node = node, log = tempdir() .. "/log", env = { CROWN_DIRECTORY = place } }
    end
    lead("locks", "one")
    eventually(function() return noted() == 1 end, 20)
    lead("others", "two")
    eventually(function() return noted() == 2 end, 20)
    local found = terms()
    assert.same({ "one", true, nil }, { found[1].leader, found[1].leads, found[1].ended })
    assert.same({ "two", true, nil }, { found[2].leader, found[2].leads, found[2].ended })
    assert.equal("file:" .. place .. "/others", found[2].store)
    local text = history("reports").stdout
    assert.matches("Ended%s+Store\n", text)
    assert.is_truthy(text:find("leads now  file:" .. place .. "/locks\n", 1, true), text)
    assert.equal(2, #found)
  end)

  it("says where it has looked when it knows of no term", function()
    local result = history "reports"
    assert.equal(1, result.code)
    assert.matches("lead 'reports' (it looks in " .. place, result.stderr, 1, true)
  end)

  it("shows who leads also where nobody here has seen it begin", function()
    local place_of_runtimes = place
    local one = start "one"
    eventually(function() return one:pids("child")[1] end, 20)
    place = tempdir()
    local locks = "file:" .. place_of_runtimes .. "/locks"
    local function asked(...) return run({ "history", ... }, { env = { CROWN_DIRECTORY = place, CROWN_ORACLE = locks } }) end
    local led = asked "reports"
    assert.equal(0, led.code, led.stderr)
    assert.matches("\n%-%s+one%s+1%s+%-%s+leads now\n$", led.stdout)
    assert.equal(1, asked("other").code)
  end)

  it("does not take a term for one that goes on where the store knows better, or gives no answer", function()
    local one = start "one"
    eventually(function() return noted() == 1 end, 20)
    one:signal "KILL"
    one:wait(20)
    eventually(function() return history("reports").stdout:find "ended, not seen here\n$" end, 20)
    local away = run({ "history", "--oracle", "redis://127.0.0.1:1", "reports" }, { env = { CROWN_DIRECTORY = place } })
    assert.equal(0, away.code)
    assert.matches("not seen to end\n$", away.stdout)
    assert.matches("crown%-lua: history: .*127.0.0.1:1", away.stderr)
  end)

  it("shows a term whose Lua blocked as it was won, until its runtime was killed", function()
    write_file(place .. "/app.lua", ([[
      local crown = require "crown"
      crown.elect { name = "reports", oracle = "file:%s/locks", handlers = {
        won = function(term)
          if term.epoch == 1 then ("x"):rep(1e5):find(("x*"):rep(30) .. "y") end
        end } }]]):format(place))
    local one = Candidate.start { args = { "--heartbeat", "0.5", place .. "/app.lua" }, node = "one", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = place } }
    started[#started + 1] = one
    eventually(function()
      local found = terms()
      return found[#found] and found[#found].epoch >= 2 -- on a busy machine that one dies, too
    end, 60)
    local found = terms()[1]
    assert.same({ "one", 1, "runtime_died" }, { found.leader, found.epoch, found.reason })
  end)

  it("shows why a term ended whose leader heard of it from the store, where another one leads by then", function()
    write_file(place .. "/app.lua", [[
      local crown = require "crown"
      local taken = { node = "two", epoch = 8, expires_in = 30 }
      local led = false
      crown.elect { name = "reports", oracle = {
        init = function() return {} end,
        claim = function()
          if led then return false, taken end
          led = true
          return true, 0.1, { epoch = 7, ttl = 30 }
        end,
        refresh = function() return false, taken end,
        abdicate = function() return true end } }]])
    local one = Candidate.start { args = { place .. "/app.lua" }, node = "one", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = place } }
    started[#started + 1] = one
    eventually(function() return noted() == 2 end, 20)
    local found = terms()
    assert.same({ "one", 7, "denied" }, { found[1].leader, found[1].epoch, found[1].reason })
    assert.same({ "two", 8 }, { found[2].leader, found[2].epoch })
  end)

  it("shows the last ones, of every election where none is named, and lives with nonsense in the file", function()
    local lines = { "nonsense", "{}" , '{"event":"leadership.changed"}' }
    for i = 1, 30 do
      lines[#lines + 1] = crown.json.encode { event = "leadership.changed", time = i, name = i % 2 == 0 and "even" or "odd",
        node = "n", leader = "leader\27[2J" .. i, epoch = i }
    end
    write_file(place .. "/history", table.concat(lines, "\n") .. "\n")
    assert.equal(20, #crown.json.decode(history("--json").stdout).terms)
    assert.equal(3, #crown.json.decode(history("even", "--last", "3", "--json").stdout).terms)
    local text = history("--last", "2").stdout
    assert.matches("odd", text)
    assert.is_nil(text:find "\27")
    assert.equal(1, history("neither").code)
    assert.matches("nobody lead 'neither'", history("neither").stderr:gsub("anybody", "nobody"))
  end)

  it("says of a term of another host that it lasted no longer than until the next one was seen", function()
    local lines = {}
    for i, leader in ipairs { "far", "farther" } do
      lines[i] = crown.json.encode { event = "leadership.changed", name = "reports", node = "here", leader = leader, epoch = i,
        time = 1790000000 + 300 * i }
    end
    write_file(place .. "/history", table.concat(lines, "\n") .. "\n")
    local text = history("reports").stdout
    assert.matches("far +1 +< 5 min 0 s +%-\n", text)
    assert.is_true(terms()[1].at_most)
    assert.is_nil(terms()[2].at_most)
  end)

  it("says what it may not read", function()
    assert(os.execute("mkdir " .. place .. "/history") == 0)
    assert.equal(1, history().code)
    write_file(place .. "/file", "")
    local result = run({ "history" }, { env = { CROWN_DIRECTORY = place .. "/file" } })
    assert.equal(2, result.code)
    assert.matches("that is not a directory", result.stderr)
  end)

  it("says that what stands in the file's place is no file, and waits for nobody", function()
    for _, command in ipairs { "mkdir", "mkfifo" } do
      assert.equal(0, crown.exec({ command, place .. "/history" }).code)
      local before = crown.now()
      local result = history()
      assert.matches("/history is no plain file\n", result.stderr)
      assert.is_nil(result.stderr:find("traceback", 1, true))
      assert.is_true(crown.now() - before < 5)
      assert.equal(0, run({ "completion", "names" }, { env = { CROWN_DIRECTORY = place } }).code)
      assert.equal(0, crown.exec({ "rm", "-r", place .. "/history" }).code)
    end
  end)

  it("holds nobody when the disk hangs", function()
    assert(os.execute("mkfifo " .. place .. "/history") == 0) -- whoever opens it waits for a reader
    local one = start "one"
    eventually(function() return one:output():find "leading 'reports'" end, 20)
    local gone = run({ "abdicate", "reports" }, { env = { CROWN_DIRECTORY = place } })
    assert.equal(0, gone.code, gone.stderr)
    eventually(function() return select(2, one:output():gsub("leading 'reports'", "")) == 2 end, 20)
    one:signal "TERM"
    assert.equal(0, one:wait(20))
    assert.is_nil(one:output():find "runtime.restarted")
  end)

  it("keeps two megabytes at most", function()
    write_file(place .. "/history", ("x"):rep(1000000))
    start "one"
    eventually(function() return noted() == 1 end, 20)
    assert.equal("1000000\n", crown.exec({ "stat", "-c", "%s", place .. "/history.1" }).stdout)
  end)
end)
