-- A server whose answers come, but for one of them that is lost on its way: whatever a verb asked by it, it ends in time, and says
-- how it went.
local Candidate = require "support.candidate"
local clients = require "matrix.clients"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"

local ANSWERS = 8 -- the most that are lost, one in each run
local AT_ONCE = 8 -- runs
local ENDS = 30   -- seconds within which a verb ends, on a busy machine too
local LONG = 3600

local VERBS = {
  evict = function(url) return { "evict", "--oracle", url, "--force", "--wait", "2", "verbs" } end,
  info = function(url) return { "info", "--oracle", url } end,
  check = function(url) return { "check", "--store", "--oracle", url, "run", "verbs", "true" } end,
}

-- A way to a server on which one thing that it says is lost: the first, the second…, over all connections.
local function way_without(target, lost)
  local said = 0
  local function pump_back(far, near)
    for bytes in function() return far:read "*s" end do
      said = said + 1
      if said ~= lost and not near:write(bytes) then break end
    end
    near:close()
  end
  local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(near)
    local far = crown.tcp.connect("127.0.0.1", target)
    if not far then return near:close() end
    for _, one in ipairs { near, far } do one:set_timeout(LONG) end
    crown.spawn(pump_back, far, near)
    for bytes in function() return near:read "*s" end do
      if not far:write(bytes) then break end
    end
    far:close()
  end))
  return { port = listener:port(), lost = function() return said >= lost end, close = function() listener:close() end }
end

local function play(store, verb, lost)
  local ways, ports = {}, {}
  for i, target in ipairs(store.ports) do
    ways[i] = way_without(target, lost)
    ports[i] = ways[i].port
  end
  local at = crown.now()
  local result = run(VERBS[verb](store.url(ports)), { timeout = ENDS })
  result.took = crown.now() - at
  for _, way in ipairs(ways) do
    result.lost = result.lost or way.lost()
    way.close()
  end
  return result
end

-- Plays all, some at a time. @return the results, each with what was played
local function play_all(store)
  local waiting, results, ended = {}, {}, 0
  for verb in pairs(VERBS) do
    for lost = 1, ANSWERS do waiting[#waiting + 1] = { verb = verb, lost = lost } end
  end
  local all = #waiting
  for _ = 1, AT_ONCE do
    crown.spawn(function()
      for one in function() return table.remove(waiting) end do
        one.result = play(store, one.verb, one.lost)
        results[#results + 1], ended = one, ended + 1
      end
    end)
  end
  eventually(function() return ended == all end, 10 * ENDS)
  return results
end

describe("a verb that asks a store ends in time and says how it went, whichever answer is lost:", function()
  for _, name in ipairs { "redis", "sentinel", "cluster", "majority", "nats", "etcd", "http", "postgres", "advisory" } do
    it(name, function()
      local store = clients[name].start()
      local leader = Candidate.start { args = { "--oracle", store.url(store.ports), "run", "verbs", "sleep", "1000" }, node = "leader",
        log = tempdir() .. "/log" }
      finally(function()
        leader:destroy()
        store.destroy()
      end)
      eventually(function() return leader:output():find "leading 'verbs'" end, 40)
      local lost = 0
      for _, one in ipairs(play_all(store)) do
        local result = one.result
        local words = ("%s without answer %d: %s after %.1f s: %s%s"):format(one.verb, one.lost, tostring(result.code), result.took,
          result.stdout, result.stderr)
        assert.is_true(result.took < ENDS, words)
        assert.is_true(result.code ~= nil and result.code < 4, words)
        assert.is_true(#result.stdout + #result.stderr > 0, words)
        assert.is_nil(result.stderr:find "^crown%-lua: %a+: timeout", words)
        assert.is_nil(result.stdout:find "PROBLEM +timeout", words)
        lost = lost + (result.lost and 1 or 0)
      end
      assert.is_true(lost >= (name == "http" and 1 or 6), ("only %d answers were lost"):format(lost))
    end)
  end
end)
