-- Operators' orders from outside: pause, resume and handover, with real processes on a Redis server.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Election = require "support.ordered_election"
local http = require "support.http"
local Mysql = require "support.mysql"
local Redis = require "support.redis"
local run = require "support.run"
local signals = require "support.signals"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local SOON = Election.SOON

describe("an operator's order", function()
  local server, dir, election, name

  setup(function() server, dir = Redis.start(), tempdir() end)
  teardown(function() server:destroy() end)

  before_each(function()
    election = Election.new(server.url .. "?ttl=6&trust_empty=true&amnesia_wait=0", dir)
    name = election.name
  end)
  after_each(function() election:destroy() end)

  local function start(node)
    return election:start(node, "--http", "127.0.0.1:0", write_file(tempdir() .. "/app.lua", ([[
      require("crown").elect { name = %q, oracle = %q, child = { "sleep", "600" } }]]):format(name, election.url)))
  end

  local function leads(one) election:leads(one) end
  local function says(one, pattern) election:says(one, pattern) end
  local function command(code, ...) return election:command(code, ...) end

  it("has nobody lead until resume, and says everywhere since when, by whom and why", function()
    local one = start "one"
    leads(one)
    local two = start "two"
    two:follows(SOON)
    assert.matches("^'[%w-]+' is paused until crown%-lua resume\none has stepped down\n$", command(0, "pause", name, "--why", "a new disk"))
    local said = "paused since %d+%-%d+%-%d+ %d+:%d+:%d+ [+-]%d%d%d%d by ann@[%w.-]+: a new disk"
    says(one, "leadership.lost [^\n]*reason=paused error=\"" .. said)
    says(two, "leadership.barred [^\n]*reason=paused error=\"" .. said)
    assert.same({ 0, 0 }, { #one:pids "child", #two:pids "child" })
    assert.matches(said, command(0, "info", name))
    local listed = crown.json.decode(command(0, "info", name, "--json")).elections[1]
    assert.same({ true, "a new disk", "number", nil }, { listed.orders.pause, listed.orders.why, type(listed.orders.since), listed.node })
    assert.matches(said, listed.ordered)
    assert.matches("May not lead.*paused for [%d.]+ s: " .. said, command(0, "status", name))
    -- A follower asks nothing meanwhile, so it says how old its leader is.
    eventually(function() return command(0, "status", name):find "  one, %S+ s ago  " end, SOON)
    local port = tonumber(two:output():match "http.listening.- port=(%d+)")
    assert.matches(">one, %S+ s ago<", http.ask(port, "GET /").body)
    assert.matches("paused for [%d.]+ s: " .. said, http.ask(port, "GET /").body)
    assert.matches('\ncrown_eligible{[^}]*} 0\n', http.ask(port, "GET /metrics").body)
    local once = command(1, "run", "--once", name, "true")
    assert.matches("^crown%-lua: run: '[%w-]+' is " .. said .. "\n$", once)
    assert.equal(once, command(1, "run", "--once", "--quiet", name, "true")) -- which leaves out only that another one leads
    local waiting = command(1, "run", "--wait", "1.5", name, "true")
    assert.matches("following '[%w-]+'; paused since", waiting)
    assert.is_nil(waiting:find("does not say who leads", 1, true))
    local three = start "three"
    says(three, "leadership.barred")
    assert.equal(("'%s' may be led again\n"):format(name), command(0, "resume", name))
    eventually(function() return #one:pids "child" + #two:pids "child" + #three:pids "child" == 1 end, SOON)
    assert.matches("is not paused", command(1, "resume", name))
  end)


  it("does not blame the store for a leader that stands still", function()
    local one = election:leader "one"
    one:hurt("STOP", "supervise", "runtime")
    finally(function() one:hurt("CONT", "supervise", "runtime") end)
    local said = command(1, "evict", name, "--force", "--wait", 0.5)
    assert.matches("the leader of '[^']+' did not step down in time; the request stays until its term ends: is its runtime stopped", said)
    assert.is_nil(said:find("the network", 1, true))
  end)
  it("waits for no leader whose host has died, once its lease is over, and info says so", function()
    local url = server.url .. "?ttl=2&trust_empty=true&amnesia_wait=0"
    local one = Candidate.start { args = { "run", "--oracle", url, "dead", "sleep", "600" }, node = "one", log = dir .. "/dead",
      env = { CROWN_DIRECTORY = tempdir() } }
    finally(function() one:destroy() end)
    eventually(function() return one:pids("child")[1] end, SOON)
    for _, pid in ipairs(Candidate.tree(one.pid)) do signals.send(pid, "KILL") end
    local paused = run { "pause", "--oracle", url, "dead", "--wait", "60" }
    assert.same({ 0, "" }, { paused.code, paused.stderr })
    assert.matches("\none's lease is over\n$", paused.stdout)
    local shown = run { "info", "--oracle", url, "dead" }
    assert.matches("dead%s+one%s.*the lease is over", shown.stdout)
    assert.is_true(crown.json.decode(run({ "info", "--oracle", url, "--json", "^dead$" }).stdout).elections[1].over)
  end)

  it("says that a pause was over before a leader that is told nothing has seen it", function()
    server:call("ACL", "SETUSER", "deaf", "reset", "on", "nopass", "~*", "&*", "+@all", "-subscribe")
    local url = ("redis://deaf:x@127.0.0.1:%d?ttl=30&trust_empty=true&amnesia_wait=0"):format(server.port)
    local one = Candidate.start { args = { "run", "--oracle", url, "brief", "sleep", "600" }, node = "one", log = dir .. "/brief",
      env = { CROWN_DIRECTORY = tempdir() } }
    finally(function() one:destroy() end)
    eventually(function() return one:pids("child")[1] end, SOON)
    local child = one:pids("child")[1]
    local paused = run { "pause", "--oracle", url, "brief", "--for", "1s", "--wait", "60" }
    assert.equal(1, paused.code)
    assert.matches("the pause is over, and one has not stepped down: it leads on; give %-%-for several times", paused.stderr)
    assert.equal(child, one:pids("child")[1])
  end)

  it("lets who leads go on through a pause, and ends with its time", function()
    local one = start "one"
    leads(one)
    local two = start "two"
    two:follows(SOON)
    assert.matches("is paused until %d+%-.*; one leads on\n$", command(0, "pause", name, "--keep", "--for", "8s"))
    says(two, "leadership.barred [^\n]*; a leader may go on")
    leads(one)
    one:signal "TERM"
    assert.equal(0, one:wait(SOON))
    assert.equal(0, #two:pids "child")
    leads(two)
  end)

  it("has a node lead next, and refuses one that is not there", function()
    local one = start "one"
    leads(one)
    local two, three = start "two", start "three"
    two:follows(SOON)
    three:follows(SOON)
    eventually(function()
      local result = command(1, "handover", name, "--to", "nobody")
      return result:find("no runtime of the node 'nobody' is known in redis://[^;]*; there are one, three, two")
    end, SOON)
    assert.matches("one leads '[%w-]+' already", command(1, "handover", name, "--to", "one"))
    assert.matches("^'[%w-]+' is led by three now %(epoch %d+%)\n$", command(0, "handover", name, "--to", "three", "--wait", "20"))
    leads(three)
    assert.matches("is led by one now", command(0, "handover", name, "--to", "one", "--wait", "20"))
    assert.matches("is led by three now", command(0, "handover", name, "--to", "three", "--wait", "20"))
    leads(three)
    assert.same({ 0, 0 }, { #one:pids "child", #two:pids "child" })
    says(one, "leadership.lost [^\n]*reason=handover error=\"handed over to three since")
    says(one, "leadership.allowed")
    command(0, "pause", name, "--keep")
    assert.matches("is paused since .*: resume it first", command(1, "handover", name, "--to", "one"))
  end)

  it("is of the election that the URL's lock names, as a candidate's is", function()
    election.url = election.url .. "&lock=" .. name .. "-lock"
    local one = start "one"
    leads(one)
    assert.matches("one has stepped down", command(0, "pause", name))
    assert.matches("may be led again", command(0, "resume", name))
    leads(one)
    assert.matches("^evicted one from", command(0, "evict", "--force", name))
  end)

  it("hands over to a node that has never led, where no follower has a record", function()
    local mysql = Mysql.start()
    local other = Election.new(mysql.url .. "?ttl=3&amnesia_wait=0&trust_empty=true", dir)
    local one, two = other:leader "one", other:follower "two"
    other:command(0, "handover", other.name, "--to", "two", "--wait", SOON)
    other:leads(two)
    assert.equal(0, other:count(one))
    other:destroy()
    mysql:destroy()
  end)

  it("is refused where it means nothing, in one sentence", function()
    assert.matches("there is no election 'nowhere' in redis://", command(1, "pause", "nowhere"))
    assert.matches("nobody leads 'nowhere' in redis://", command(1, "handover", "nowhere", "--to", "one"))
    assert.matches("handover: say to which node: ", command(2, "handover", "nowhere"))
    for _, time in ipairs { "soon", "99999999999h" } do
      assert.matches(("%%-%%-for: '%s' is no time of up to 3660 days, such as 2h, 30m or 1h30m"):format(time),
        command(2, "pause", "x", "--for", time))
    end
    for _, verb in ipairs { "pause", "resume", "handover" } do
      local result = run { verb, "--oracle", "http://127.0.0.1:1/locks", "x" }
      if verb ~= "handover" then
        assert.equal(2, result.code)
        assert.matches(verb .. ": elections of the oracle 'http_lease' take no orders: a lease server has no call for that: ",
          result.stderr)
      end
    end
  end)
end)
