-- What somebody does who writes an oracle for a store of their own: a few lines on crown.oracle.cas, conformance, and then each
-- command by the oracle's own URL.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local ORACLE = [[
local crown = require "crown"

local function ask(self, line)
  local connection, problem = crown.tcp.connect(self.host, self.port, { timeout = self.timeout })
  if not connection then return nil, problem end
  connection:write(line .. "\n")
  local answer
  answer, problem = connection:read "*l"
  connection:close()
  return answer, problem
end

return require("crown.oracle.cas").oracle {
  word = "my_store",
  init = function(self)
    self.host, self.port = (self.options.url or ""):match "^my_store://([^:/]+):(%d+)"
    return self.port ~= nil, "a URL as my_store://HOST:PORT is required"
  end,
  read = function(self)
    local answer, problem = ask(self, "get " .. self.name)
    if not answer then return nil, problem end
    if answer == "none" then return false end
    local version, text = answer:match "^(%d+) (.*)$"
    return text, version
  end,
  write = function(self, text, version)
    local answer, problem = ask(self, ("put %s %s %s"):format(self.name, version or 0, text))
    if not answer then return nil, problem end
    return answer:match "^(%d+)$" or false
  end,
}
]]

-- The store: `get NAME` says `VERSION TEXT` or `none`, `put NAME VERSION TEXT` the new version or `changed`.
local function start_store()
  local records, version, answer = {}, 0, {}
  function answer.get(name) return records[name] and ("%d %s"):format(records[name][1], records[name][2]) or "none" end
  function answer.put(rest)
    local name, replaced, text = rest:match "^(%S+) (%d+) (.*)$"
    if tonumber(replaced) ~= (records[name] or { 0 })[1] then return "changed" end
    version = version + 1
    records[name] = { version, text }
    return tostring(version)
  end
  return assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
    local verb, rest = (connection:read "*l" or ""):match "^(%l+) (.*)$"
    if verb then connection:write(answer[verb](rest) .. "\n") end
    connection:close()
  end))
end

describe("an oracle of one's own", function()
  local dir, env, store, url

  before_each(function()
    dir, store = tempdir(), start_store()
    write_file(dir .. "/my_store.lua", ORACLE)
    env = { LUA_PATH = dir .. "/?.lua;;", CROWN_DIRECTORY = dir }
    url = ("my_store://127.0.0.1:%d?ttl=1&amnesia_wait=0"):format(store:port())
  end)

  after_each(function() store:close() end)

  local function call(...) return run({ ... }, { env = env, timeout = 30 }) end

  local function lead()
    local leader = Candidate.start { node = "ann", log = dir .. "/log", env = env,
      args = { "run", "--oracle", url, "job", "sleep", "1000" } }
    eventually(function() return leader:pids("child")[1] end, 20)
    return leader
  end

  it("is run by a URL whose scheme is the module's name, and whose query has its options", function()
    local first = call("run", "--once", "--wait", "10", "--oracle", url, "job", "--", "echo", "done")
    assert.equal(0, first.code, first.stderr)
    assert.matches("done", first.stdout)
    assert.matches("TTL +1 s at the store.*failover +at most 2%.3 s", call("check", "--oracle", url, "run", "job", "true").stdout)
  end)

  it("is run by that URL also where it lies beside the app", function()
    local app = write_file(dir .. "/app.lua", [[
      local crown = require "crown"
      crown.elect { name = "job", handlers = { won = function() print "won" os.exit(0) end } }
    ]])
    env.LUA_PATH = nil
    local led = call("--oracle", url, app)
    assert.equal("won\n", led.stdout, led.stderr)
  end)

  it("is not found by a scheme that names nothing", function()
    local refused = call("run", "--oracle", "my_stroe://127.0.0.1:1", "job", "true")
    assert.equal(2, refused.code)
    assert.matches("no oracle has the scheme 'my_stroe', and require finds no module of that name", refused.stderr)
  end)

  it("is told to wait no more than once by conformance where it sits out an empty store", function()
    write_file(dir .. "/my_spec.lua", ([[
      require("crown.testing").conformance("mine", function()
        return { module = require "my_store", options = { url = %q, ttl = 1 }, expires = true }
      end)
    ]]):format((url:gsub("%?.*", ""))))
    env.CROWN_LUA = require "support.program"
    local told = crown.exec({ "sh", "-c", 'exec busted --lua="$CROWN_LUA" --run=default my_spec.lua' },
      { cwd = dir, env = env, timeout = 60 })
    assert.matches("may have forgotten who leads, and grants nothing for [%d.]+ s: give it amnesia_wait = 0", told.stdout)
    assert.is_nil(told.stdout:find "was not granted within")
  end)

  it("is told by conformance which of its options is wrong, and not where busted is", function()
    write_file(dir .. "/my_spec.lua", ([[
      require("crown.testing").conformance("mine", function()
        return { module = require "my_store", options = { url = %q, ttl = 0.1 } }
      end)
    ]]):format((url:gsub("%?.*", ""))))
    env.CROWN_LUA = require "support.program"
    local told = crown.exec({ "sh", "-c", 'exec busted --lua="$CROWN_LUA" --run=default my_spec.lua' },
      { cwd = dir, env = env, timeout = 60 })
    assert.matches("init refuses the options that the factory returns: oracle 'my_store': ttl must be at least 0.5\n", told.stdout)
    assert.is_nil(told.stdout:find "busted/core")
  end)

  it("is asked by check --store without a claim, and led by whom its record says", function()
    local empty = call("check", "--store", "--oracle", url, "run", "job", "true")
    assert.equal(0, empty.code, empty.stderr)
    assert.matches("record +none yet", empty.stdout)
    assert.matches("answer +the store answers\n", empty.stdout)
    local leader = lead()
    assert.matches("record +ann, epoch %d+", call("check", "--store", "--oracle", url, "run", "job", "true").stdout)
    leader:destroy()
    store:close()
    assert.equal(3, call("check", "--store", "--oracle", url, "run", "job", "true").code)
  end)

  it("lets run --once end where the leader lives, and take the place of one that has died", function()
    local leader = lead()
    env.CROWN_DIRECTORY = tempdir() -- another host
    local ended = call("run", "--once", "--oracle", url, "job", "echo", "done")
    assert.equal(1, ended.code, ended.stderr)
    assert.matches("'job' is led by ann", ended.stderr)
    leader:destroy()
    local ran = call("run", "--once", "--oracle", url, "job", "echo", "done")
    assert.equal("done\n", ran.stdout, ran.stderr)
  end)

  it("is evicted from where it cannot list elections, and says what it cannot do", function()
    local leader = lead()
    local evicted = call("evict", "--force", "--oracle", url, "job")
    assert.equal(0, evicted.code, evicted.stderr)
    assert.matches("^evicted ann from 'job' %(epoch %d+%)\n", evicted.stdout)
    eventually(function() return leader:output():find "evicted" end, 20)
    leader:destroy()
    local refused = call("info", "--oracle", url)
    assert.equal(2, refused.code)
    assert.matches("the oracle 'my_store' cannot list elections: its module gives crown.oracle.cas no function 'names'", refused.stderr)
  end)

  it("is not said to answer where it cannot be asked", function()
    write_file(dir .. "/my_bare.lua", [[
      return { init = function() return {} end, claim = function() return nil, "no" end, refresh = function() return nil, "no" end }
    ]])
    local told = call("check", "--store", "--oracle", "my_bare", "run", "job", "true")
    assert.equal(0, told.code, told.stderr)
    assert.matches("not checked +whether the store answers: this oracle cannot be asked without claiming", told.stdout)
    assert.is_nil(told.stdout:find("the store answers\n", 1, true))
  end)
end)
