-- Many leases on one Postgres change hands in a few statements: those that are released together, and those that are claimed
-- when their followers hear of it.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"

local MANY, FEW = 600, 20
local TTL = 3600 -- seconds: who hears nothing looks after a tenth of it, which is longer than any wait here
local KINDS = { "'synchronous_commit', 'off'", "'synchronous_commit', 'on'" } -- of statements: what only a release has, and a claim

describe("many leases on one Postgres", function()
  local server

  setup(function() server = Postgres.start { config = "log_min_duration_statement = 0" } end)
  teardown(function() server:destroy() end)

  local function candidates(node)
    local all = {}
    for i = 1, MANY do
      all[i] = crown.elect { name = "crowd-" .. i, node = node, oracle = { "postgres_lease", url = server.url, ttl = TTL } }
    end
    return all
  end

  local function led(all)
    for _, one in ipairs(all) do
      if not one:is_leader() then return false end
    end
    return true
  end

  -- As the server's log tells it: one line for each statement that was run, with its text behind it.
  local function statements(from)
    local count = {}
    for text in server.process:output():sub(from):gmatch "duration: [%d.]+ ms  execute (.-)UTC %d+ LOG:" do
      for _, kind in ipairs(KINDS) do
        if text:find(kind, 1, true) then count[kind] = (count[kind] or 0) + 1 end
      end
    end
    return count
  end

  it("are released and claimed in a few statements when their leader ends", function()
    local leaders = candidates "one"
    eventually(function() return led(leaders) end, 30)
    local followers = candidates "two"
    eventually(function()
      for _, one in ipairs(followers) do
        if one:status().leader ~= "one" then return false end
      end
      return true
    end, 30)
    local from = #server.process:output()
    for _, one in ipairs(leaders) do one:stop() end
    eventually(function() return led(followers) end, 30)
    for _, one in ipairs(followers) do one:stop() end
    eventually(function() return followers[MANY].handle:finished() end, 30)
    local count = statements(from)
    for _, kind in ipairs(KINDS) do
      local found = count[kind] or 0
      assert.is_true(found > 0 and found <= FEW, ("%s: %d statements"):format(kind, found))
    end
  end)

  it("are not compared one by one with each other, also where the server does not know how many come", function()
    local explaining = Postgres.start { config = [[
shared_preload_libraries = 'auto_explain'
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
auto_explain.log_timing = off
plan_cache_mode = force_generic_plan]] }
    local first = crown.elect { name = "compared", oracle = { "postgres_lease", url = explaining.url, ttl = 6 } }
    eventually(function() return first:is_leader() end, 30)
    assert(explaining:sql([[INSERT INTO crown_lease_v1 (lock_name, holder, expires_at)
      SELECT 'other-' || n, '', now() FROM generate_series(1, 5000) AS n]])) -- a table that is no trifle
    assert(explaining:sql "ANALYZE crown_lease_v1")
    local all = { [MANY + 1] = first }
    for i = 1, MANY do
      all[i] = crown.elect { name = "compared-" .. i, oracle = { "postgres_lease", url = explaining.url, ttl = 6 } }
    end
    eventually(function() return led(all) end, 30)
    local plans
    eventually(function() -- some of them refreshed
      plans = explaining.process:output()
      return plans:find("CTE found", 1, true)
    end, 30)
    for _, one in ipairs(all) do one:stop() end
    eventually(function() return all[MANY].handle:finished() end, 30)
    explaining:destroy()
    local compared = 0
    for removed in plans:gmatch "Rows Removed by Join Filter: (%d+)" do compared = math.max(compared, tonumber(removed)) end
    assert.is_true(plans:find "CTE made" and compared <= MANY, compared .. " pairs in one statement")
  end)
end)
