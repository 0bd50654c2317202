-- crown-lua file, and the check that a line of a crontab makes.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local program = require "support.program"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- CLOCK_BOOTTIME; crown.now() is ahead of it where a spec before this one has moved a fake clock.
local function boottime()
  return tonumber(read_file("/proc/uptime"):match "%S+")
end

describe("crown-lua file", function()
  local dir, path, oracle, started

  before_each(function()
    dir, started = tempdir(), {}
    path, oracle = dir .. "/cron.host", "file:" .. tempdir()
  end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function start(node, more)
    local one = Candidate.start { args = { "file", "--oracle", more or oracle, path, "CRON" }, node = node,
      log = tempdir() .. "/log" }
    started[#started + 1] = one
    return one
  end

  local function check(...)
    local result = run { "file", "--check", path, ... }
    assert.equal("", result.stdout .. result.stderr:gsub("^crown%-lua: file %-%-check: [^\n]*\n$", ""))
    return result.code
  end

  it("keeps the file while it leads, and takes it away in the end", function()
    local one = start "one"
    eventually(function() return read_file(path) end)
    local found = crown.json.decode(read_file(path))
    assert.same({ "CRON", "one", 1, 1 }, { found.election, found.node, found.epoch, found.count })
    assert.is_true(found.expires_at > found.timestamp)
    assert.equal(0, check())
    one:signal "TERM"
    assert.equal(0, one:wait(10))
    assert.is_nil(read_file(path))
    assert.equal(1, check())
  end)

  it("leaves a directory alone that somebody has made in the file's place", function()
    local one = start "one"
    eventually(function() return read_file(path) end)
    assert(os.remove(path) and os.execute("mkdir " .. path) == 0)
    one:signal "TERM"
    one:wait(10)
    assert.equal(0, os.execute("test -d " .. path))
  end)

  -- As on a full disk, which writes nothing either.
  it("steps down where it cannot write the file, so that another can", function()
    local one = start "one"
    eventually(function() return read_file(path) end, 20)
    local broken = path
    path = dir .. "/two"
    local two = start "two"
    two:follows()
    one:signal "TERM"
    assert.equal(0, one:wait(20))
    eventually(function() return read_file(path) end, 20)

    path = broken
    local three = start "three"
    three:follows()
    assert.equal(0, os.execute(("mkdir -p %s/in-the-way"):format(broken)))
    two:signal "TERM"
    eventually(function() return three:output():find "handler_failed" end, 20)
    assert.matches("file: [^\n]*cron.host", three:output())
    assert.is_nil(three:output():find("traceback", 1, true))
    path = dir .. "/four"
    start "four"
    eventually(function() return read_file(path) end, 20)
  end)

  it("has one host of two run the cron line", function()
    local one = start "one"
    eventually(function() return check() == 0 end)
    path = dir .. "/other"
    local two = start "two"
    two:follows()
    local line = ("%s file --check %s && echo hello world"):format(program, path)
    assert.equal("", crown.exec({ "sh", "-c", line }).stdout)
    one:signal "TERM"
    eventually(function() return crown.exec({ "sh", "-c", line }).stdout == "hello world\n" end)
  end)

  it("is fresh again at every refresh, and gone when the lease is", function()
    local Postgres = require "support.postgres"
    local server = Postgres.start()
    start("one", server.url .. "?ttl=1")
    eventually(function() return read_file(path) and crown.json.decode(read_file(path)).count >= 3 end)
    server:down "immediate"
    eventually(function() return not read_file(path) end)
    server:destroy()
  end)

  it("is not there when the runtime was killed, and is written anew by the next one", function()
    local one = start "one"
    eventually(function() return check() == 0 end)
    one:hurt("KILL", "runtime")
    eventually(function()
      local text = read_file(path)
      return text and crown.json.decode(text).epoch == 2
    end)
  end)

  it("has expired when all of crown-lua was killed", function()
    write_file(path, crown.json.encode { timestamp = os.time(), election = "CRON", expires_at = os.time() - 1 })
    assert.equal(1, check())
    write_file(path, crown.json.encode { timestamp = os.time(), election = "CRON", expires_at = os.time() + 100 })
    assert.equal(0, check())
  end)

  it("does not outlive its host, whatever the wall clock says", function()
    local found = { timestamp = os.time(), election = "CRON", expires_at = os.time() + 100,
      expires_at_boottime = boottime() + 100, boot_id = "00000000-0000-0000-0000-000000000000" }
    write_file(path, crown.json.encode(found))
    assert.equal(1, check())
    found.boot_id = read_file("/proc/sys/kernel/random/boot_id"):match "%S+"
    found.expires_at = os.time() - 100
    write_file(path, crown.json.encode(found))
    assert.equal(0, check())
    found.expires_at_boottime = boottime() - 1
    write_file(path, crown.json.encode(found))
    assert.equal(1, check())
  end)

  it("says nothing of who leads where it was written by somebody else", function()
    for _, text in ipairs { "x", "", "{}", crown.json.encode { count = 1 }, crown.json.encode { timestamp = os.time() } } do
      write_file(path, text)
      for _, words in ipairs { { "file", "--check", path }, { "--log-level", "error", "file", "--check", path } } do
        local result = run(words)
        assert.equal(1, result.code, text)
        assert.equal(("crown-lua: file --check: %s was not written by crown-lua file, nor by choria election file\n"):format(path),
          result.stderr)
      end
    end
  end)

  it("goes by the age of a file of Choria's, which names no expiry", function()
    write_file(path, crown.json.encode { timestamp = os.time(), count = 1 })
    assert.equal(0, check())
    assert.equal(0, run({ "--log-level", "error", "file", "--check", path }).code)
    crown.exec { "touch", "-d", "2 minutes ago", path }
    assert.equal(1, check())
    assert.equal(0, check("--max-age", "600"))
    assert.equal(0, check "--max-age=600")
    crown.exec { "touch", "-d", "2 minutes", path } -- from now on
    assert.equal(1, check("--max-age", "600"))
  end)

  it("is no directory, and no device", function()
    for _, odd in ipairs { dir, "/dev/zero" } do
      local result = run { "file", "--check", odd }
      assert.equal(1, result.code)
      assert.matches("was not written by crown%-lua file", result.stderr)
    end
  end)

  it("replaces a link in the file's place, and never writes through it", function()
    write_file(dir .. "/precious", "keep me")
    assert.equal(0, os.execute(("ln -s %s/precious %s"):format(dir, path)))
    start "one"
    eventually(function() return check() == 0 end)
    assert.equal("keep me", read_file(dir .. "/precious"))
    assert.equal(0, os.execute(("test ! -L %s"):format(path)))
  end)

  for title, case in pairs {
    ["a directory"] = { function() return dir end, "is a directory" },
    ["a file in a directory that is missing"] = { function() return dir .. "/no/file" end,
      "there is no directory %S+/no: make it first\n" },
    ["a file of somebody else's"] = { function() write_file(dir .. "/notes", "notes") return dir .. "/notes" end,
      "not written by crown%-lua" },
    ["an empty word"] = { function() return "" end, "FILE is an empty word %(is a variable not set%?%)" },
  } do
    it("refuses " .. title, function()
      local result = run { "file", "--oracle", oracle, case[1](), "CRON" }
      assert.equal(2, result.code)
      assert.matches(case[2], result.stderr)
      assert.equal(1, select(2, result.stderr:gsub("\n", "")))
    end)
  end

  for title, text in pairs {
    ["an election's name alone"] = '{"election":"CRON","node":"one"}',
    ["an expiry alone"] = '{"expires_at":1}',
    ["a list"] = '["election","expires_at"]',
    ["a string"] = '"election expires_at"',
    ["a package's description"] = '{"name":"x","version":"1.0"}',
    ["a count and a time, and more"] = '{"timestamp":"2022-06-27T09:05:00Z","count":3,"jobs":7}',
    ["what was cut off"] = '{"election":"CRON","expires_at":1',
  } do
    it("keeps JSON of somebody else's: " .. title, function()
      write_file(path, text)
      local result = run { "file", "--oracle", oracle, path, "CRON" }
      assert.equal(2, result.code)
      assert.matches("not written by crown%-lua", result.stderr)
      assert.equal(text, read_file(path))
    end)
  end

  it("takes away what one before it has left, or Choria, and an empty file", function()
    local chorias = '{"count":12,"timestamp":"2022-06-27T09:05:00.123456789Z"}'
    for _, text in ipairs { crown.json.encode { election = "OTHER", expires_at = 1 }, chorias, "" } do
      write_file(path, text)
      local one = start "one"
      eventually(function() return crown.json.decode(read_file(path)).node == "one" end)
      one:signal "TERM"
      assert.equal(0, one:wait(10))
    end
  end)

  it("is told how to be used", function()
    assert.equal(2, run({ "file" }).code)
    assert.equal(2, run({ "file", "--check" }).code)
    assert.equal(2, run({ "file", "--check", path, "--max-age", "soon" }).code)
    assert.matches("crown%-lua file %-%-check", run({ "file", "--help" }).stdout)
  end)
end)
