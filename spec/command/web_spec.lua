-- What the status endpoint keeps: one making for all who ask.
local core = require "crown.core"
local crown = require "crown"
local elections = require "crown.core.election"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local kept = require "crown.web.kept"
local metrics = require "crown.web.metrics"
local server = require "crown.core.http"
local web = require "crown.web"

describe("an answer that is kept", function()
  it("is made once for all who ask while it is being made, and while it lasts", function()
    local made, told = 0, {}
    local function make()
      made = made + 1
      crown.sleep(0.2)
      return 200, "text/plain", "answer " .. made
    end
    for _ = 1, 5 do
      crown.spawn(function()
        local answer = { kept.get("many", make) }
        told[#told + 1] = answer
      end)
    end
    eventually(function() return #told == 5 end)
    told[6] = { kept.get("many", make) }
    for _, one in ipairs(told) do assert.same({ 200, "text/plain", "answer 1" }, one) end
    assert.equal(1, made)
  end)

  it("is made anew when its time is up, and never older than it was worth", function()
    local made = 0
    local function make()
      made = made + 1
      return made
    end
    kept.get("short", make)
    eventually(function() return kept.get("short", make) > 1 end)
  end)

  it("tells each who asked what went wrong, and is tried again", function()
    local fails = true
    local function make()
      if fails then error("no luck", 0) end
      return "luck"
    end
    local fine, problem = pcall(kept.get, "failing", make)
    assert.same({ false, "no luck" }, { fine, problem })
    fails = false
    assert.equal("luck", kept.get("failing", make))
  end)
end)

describe("metrics", function()
  it("keep every digit of an epoch, and escape what would end a label", function()
    local one = { name = 'a"b', oracle = "memory", node = core.node(), phase = "following", epoch = 2 ^ 53 - 1, since = 1.25,
      terms = 0 }
    local text = metrics.render { elections = { one }, connections = {}, bounds = {}, latency = {}, counts = {}, by_election = {},
      restarts = 0 }
    assert.matches('\ncrown_epoch{election="a\\"b",oracle="memory"} 9007199254740991\n', text, 1, true)
    assert.matches('\ncrown_phase_seconds{election="a\\"b",oracle="memory"} 1.25\n', text, 1, true)
  end)

  it("say of a connection that it is up or down only where that is known: a first question may be held open for long", function()
    local connections = {}
    for i, state in ipairs { "proven", "broken", "asked", "not asked yet", "open" } do
      connections[i] = { connection = i, store = "s", server = "h", state = state, since = 1, reconnects = 0,
        connections = i == 2 and 3 or nil, limit = i == 2 and 4 or nil }
    end
    local text = metrics.render { elections = {}, connections = connections, bounds = {}, latency = {}, counts = {},
      by_election = {}, restarts = 0 }
    local up = {}
    for number, value in text:gmatch 'crown_store_up{connection="(%d)"[^}]*} (%d)' do up[tonumber(number)] = value end
    assert.same({ [1] = "1", [2] = "0", [5] = "0" }, up)
    for name, value in pairs { crown_store_connections = 3, crown_store_connections_limit = 4 } do
      assert.matches(('\n%s{connection="2",store="s",server="h"} %d\n'):format(name, value), text, 1, true)
      assert.is_nil(text:find(name .. '{connection="1"', 1, true)) -- not known
    end
  end)
end)

describe("the elections that have changed since a stamp", function()
  local function names(list)
    local found = {}
    for _, one in ipairs(list) do found[#found + 1] = one.name end
    table.sort(found)
    return found
  end

  local function elect(name)
    return crown.elect { name = name, oracle = { "memory", path = name, ttl = 1000 }, retry = 0.01 }
  end

  it("are those, and no others; they cannot be told once one has ended, or where they are too many", function()
    local before = elections.stamp()
    local one, two = elect "changed-1", elect "changed-2"
    eventually(function() return one:is_leader() and two:is_leader() end)
    assert.same({ "changed-1", "changed-2" }, names(elections.changed(before, 2)))
    assert.is_nil(elections.changed(before, 1))
    local stamp = elections.stamp()
    assert.same({}, elections.changed(stamp, 0))
    assert.is_nil(elections.changed(stamp + 1, 10))
    two:abdicate()
    eventually(function() return two:is_leader() and elections.stamp() > stamp end)
    assert.same({ "changed-2" }, names(elections.changed(stamp, 10)))
    stamp = elections.stamp()
    two:stop()
    eventually(function() return two.handle:finished() end)
    assert.is_nil(elections.changed(stamp, 10))
    assert.same({}, elections.changed(elections.stamp(), 10))
    one:stop()
    eventually(function() return one.handle:finished() end)
  end)

  it("are none for what is no stamp", function()
    for _, what in ipairs { -1, 2 ^ 60, 1 / 0, 0 / 0 } do assert.is_nil(elections.changed(what, 10)) end
  end)
end)

describe("an answer about many elections", function()
  local MANY, MOST = 1100, 500
  local all, at_a_glance, declared, port = elections.all, elections.glance, {}, nil

  setup(function()
    for i = 1, MANY do
      declared[i] = crown.elect { name = "many-" .. i, oracle = { "memory", path = "many", ttl = 1000 }, claim_delay = 1000 }
    end
    port = assert(server.serve("127.0.0.1", 0, web.answer))
  end)
  teardown(function()
    elections.all, elections.glance = all, at_a_glance
    for _, one in ipairs(declared) do one:stop() end
    eventually(function() return declared[MANY].handle:finished() end)
  end)

  -- What C hands out at once cannot be interrupted.
  for _, path in ipairs { "/", "/metrics", "/healthz?store=1", "/api/elections" } do
    it("is made in a task, and page by page: " .. path, function()
      local told, pages = 0, 0
      function elections.all(from, most)
        local some = all(from, most)
        assert(#some <= MOST, "a page of " .. #some)
        core.sleep(0) -- raises where no task may wait
        told, pages = told + #some, pages + 1
        return some
      end
      function elections.glance(from, most)
        local seen, led, troubled = at_a_glance(from, most)
        assert(seen <= MOST, "a page of " .. seen)
        core.sleep(0)
        told, pages = told + seen, pages + 1
        return seen, led, troubled
      end
      eventually(function() -- what was made for the test before is told for a moment longer
        told, pages = 0, 0
        assert.equal(200, http.ask(port, "GET " .. path).status)
        assert.is_true(told >= MANY and pages > MANY / MOST, ("%d in %d pages"):format(told, pages))
        return true
      end, 20)
    end)
  end
end)
