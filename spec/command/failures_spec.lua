-- A failure is told once, in one line: no traceback of ours, nothing that is said again in other words.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local dir

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

local function says(words)
  return run(words, { env = { CROWN_DIRECTORY = dir, LUA_PATH = dir .. "/?.lua;;" } })
end

local function one_line(result)
  assert.equal(1, #lines_of(result.stderr), result.stderr)
  assert.is_nil(result.stderr:find("traceback", 1, true) or result.stderr:find("\\x0a", 1, true), result.stderr)
  return result.stderr
end

before_each(function() dir = tempdir() end)

describe("the README's own oracle", function()
  before_each(function()
    local file = assert(io.open "README.md")
    local text = file:read "*a"
    file:close()
    write_file(dir .. "/my_oracle.lua", (assert(text:match "(local crown = require \"crown\"\n\n%-%- CREATE TABLE.-)```")))
  end)

  for _, words in ipairs { "evict --force --oracle my_oracle x", "run --once --oracle my_oracle x true",
    "check --oracle my_oracle run x true", "evict --force --oracle my_oracle://h x" } do
    it("says in one line that it needs a URL: " .. words, function()
      local list = {}
      for word in words:gmatch "%S+" do list[#list + 1] = word end
      local result = says(list)
      assert.is_true(result.code > 1, result.stderr)
      assert.matches("a Postgres URL is written postgres://user@host:port/database\n$", one_line(result))
    end)
  end
end)

describe("an oracle whose functions raise errors", function()
  before_each(function()
    write_file(dir .. "/broken.lua", [[
local function fails() error "no\nluck" end
return { init = function(opts) if opts.crown_name == "sick" then fails() end return {} end,
  claim = fails, refresh = fails, list = fails, evict = fails, health = fails }
]])
  end)

  for words, expected in pairs {
    ["evict --force --oracle broken x"] = "evict: the oracle 'broken' failed in evict: [^\n]*broken.lua:1: no\n",
    ["info --oracle broken"] = "info: the oracle 'broken' failed in list: [^\n]*broken.lua:1: no\n",
    ["history --oracle broken x"] = "history: the oracle 'broken' failed in list: [^\n]*broken.lua:1: no\n",
    ["run --once --oracle broken sick true"] = "elect 'sick': the oracle 'broken' failed in init: [^\n]*broken.lua:1: no\n",
    ["run --once --oracle broken x true"] = "run: [^\n]*broken.lua:1: no\n",
  } do
    it("is told in one line: " .. words, function()
      local list = {}
      for word in words:gmatch "%S+" do list[#list + 1] = word end
      local said = says(list).stderr
      assert.matches(expected, said)
      assert.is_nil(said:find("traceback", 1, true) or said:find("\\x0a", 1, true), said)
      assert.equal(words:find "history" and 2 or 1, #lines_of(said), said)
    end)
  end

  it("is named where it only says that the time is up", function()
    write_file(dir .. "/late.lua", [[
return { init = function() return {} end, claim = print, refresh = print, list = function() return nil, "timeout" end,
  evict = function() return nil end }
]])
    local url = "late://u:hunter2@h"
    for _, words in ipairs { { "info", "--oracle", url }, { "evict", "--force", "--oracle", url, "x" } } do
      local result = says(words)
      assert.equal(3, result.code, result.stderr)
      assert.matches("no answer in time from late://u:%*%*%*@h: is its store running%?\n$", one_line(result))
    end
  end)

  it("is told by check --store, too", function()
    local result = says { "check", "--store", "--oracle", "broken", "run", "x", "true" }
    assert.equal(3, result.code)
    assert.matches("PROBLEM +the oracle 'broken' failed in health: [^\n]*broken.lua:1: no\n", result.stdout)
  end)
end)

describe("a word with a line's end in it", function()
  for name, words in pairs { verb = { "a\nb" }, option = { "--a\nb" }, name = { "evict", "--force", "a\nb" },
    URL = { "info", "--oracle", "a\nb://h" }, value = { "run", "--restart", "a\nb", "x", "true" } } do
    it("is refused in one line: " .. name, function() assert.matches("a\\x0ab", (says(words).stderr:gsub("\n$", ""))) end)
    it("is refused without its end: " .. name, function() assert.equal(1, #lines_of(says(words).stderr)) end)
  end
end)

describe("crown-lua run tells once", function()
  for _, option in ipairs { "--once", "--wait=0.2" } do
    it("that a store gives no answer, and gives up: " .. option, function()
      local result = says { "run", option, "--oracle", "redis://127.0.0.1:1", "x", "true" }
      assert.equal(3, result.code)
      assert.matches("^crown%-lua: run: redis at 127.0.0.1:1: Connection refused; is the server running", one_line(result))
    end)
  end

  it("that it was evicted", function()
    local one = Candidate.start { args = { "run", "--oracle", "file:" .. dir, "x", "sleep", "100" }, node = "one", log = dir .. "/log",
      env = { CROWN_DIRECTORY = dir, CROWN_LOG_FILTER = "" } }
    finally(function() one:destroy() end)
    eventually(function() return one:output():find "leading 'x'" end, 20)
    says { "evict", "--force", "--oracle", "file:" .. dir, "x" }
    eventually(function() return select(2, one:output():gsub("leading 'x' %(epoch", "")) == 2 end, 20)
    local _, told = one:output():gsub("evicted", "")
    assert.equal(1, told, one:output())
  end)

  it("what the log tells, where somebody says what that is to tell", function()
    local said = says({ "--log-level", "warn", "run", "--once", "--oracle", "redis://127.0.0.1:1", "x", "true" }).stderr
    assert.matches("oracle.error", said)
  end)

  it("of an outage while it leads, also where it would have given up before", function()
    write_file(dir .. "/broken_later.lua", [[
return { init = function() return {} end, claim = function() return true, 0.1, { ttl = 60 } end,
  refresh = function() return nil, "no luck" end }
]])
    local one = Candidate.start { args = { "run", "--once", "--oracle", "broken_later", "x", "sleep", "100" }, node = "one",
      log = dir .. "/log", env = { CROWN_DIRECTORY = dir, CROWN_LOG_FILTER = "", LUA_PATH = dir .. "/?.lua;;" } }
    finally(function() one:destroy() end)
    eventually(function() return one:output():find "oracle.error [^\n]*no luck" end, 20)
  end)
end)

describe("crown-lua run --once", function()
  -- Wins at each claim; `refresh` says how the first term ends.
  local function run_once(refresh, ...)
    write_file(dir .. "/lends.lua", ([[
return { init = function() return {} end, claim = function() return true, 0.1, { ttl = 1 } end,
  refresh = function() %s end, release = function() return true end }
]]):format(refresh))
    local words = { "run", "--once", "--oracle", "lends" }
    for _, word in ipairs { ... } do words[#words + 1] = word end
    for _, word in ipairs { "x", "sh", "-c", "echo begun; trap 'exit 0' INT; sleep 2 & wait; sleep 60" } do words[#words + 1] = word end
    return run(words, { env = { CROWN_DIRECTORY = dir, LUA_PATH = dir .. "/?.lua;;" }, timeout = 15 })
  end

  for title, case in pairs {
    ["the store gave no answer"] = { 'return nil, "no luck"', 3, "expired %(no luck%)" },
    ["the lease was lost"] = { "return false", 1, "denied" },
    ["it was evicted"] = { 'return false, { evicted = true }', 1, "evicted" },
  } do
    for _, quiet in ipairs { false, true } do
      it("does not start its command again when " .. title .. (quiet and ", quietly" or ""), function()
        local result = run_once(case[1], quiet and "--quiet" or nil)
        assert.same({ case[2], "begun\n" }, { result.code, result.stdout }, result.stderr)
        assert.matches("run: the command was stopped, since the lease was lost: it was not run to its end; " .. case[3], result.stderr)
      end)
    end
  end
end)

describe("an app tells once", function()
  it("that it was evicted", function()
    write_file(dir .. "/app.lua", "require('crown').elect { name = 'x' }\n")
    local one = Candidate.start { args = { "--oracle", "file:" .. dir, dir .. "/app.lua" }, node = "one", log = dir .. "/log",
      env = { CROWN_DIRECTORY = dir } }
    finally(function() one:destroy() end)
    eventually(function() return one:output():find "leadership.claimed" end, 20)
    says { "evict", "--force", "--oracle", "file:" .. dir, "x" }
    eventually(function() return select(2, one:output():gsub("leadership.claimed", "")) == 2 end, 20)
    local _, told = one:output():gsub("evicted", "")
    assert.equal(1, told, one:output())
  end)
end)

describe("a server that is named by an IPv6 address", function()
  for store, url in pairs { nats = "nats://[::1]:1/E", mysql = "mysql://[::1]:1/x", redis = "redis://[::1]:1/0",
    zookeeper = "zookeeper://[::1]:1" } do
    it("is named once, in brackets: " .. store, function()
      local said = one_line(says { "run", "--once", "--oracle", url, "x", "true" })
      assert.matches(("^crown%%-lua: run: %s at %%[::1%%]:1: [^\n]*\n$"):format(store), said)
      assert.equal(1, select(2, said:gsub("::1", "")), said)
    end)
  end
end)
