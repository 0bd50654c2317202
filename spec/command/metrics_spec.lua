-- The figures of /metrics over time: a term, the next one, and a store that falls silent.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "support.http"
local Postgres = require "support.postgres"
local run = require "support.run"
local tempdir = require "support.tempdir"

local TTL = 4

describe("the metrics of an election", function()
  local server, one, two, port

  before_each(function() server = Postgres.start() end)
  after_each(function()
    one:destroy()
    if two then two:destroy() end
    two = nil
    server:destroy()
  end)

  local function start(node)
    return Candidate.start { args = { "--log-level", "info", "run", "--oracle", ("%s?ttl=%d"):format(server.url, TTL),
      "--http", "127.0.0.1:0", "web", "sleep", "60" }, node = node, log = tempdir() .. "/log" }
  end

  local function served(candidate)
    return eventually(function() return tonumber(candidate:output():match "http.listening.- port=(%d+)") end, 20)
  end

  -- All of them at one moment; what is not told is nil.
  local function ask(at)
    local body, found = http.ask(at or port, "GET /metrics").body, {}
    for name, value in body:gmatch '\ncrown_([%w_]+){election="web",oracle="postgres_lease"} ([%d.e+-]+)' do
      found[name] = tonumber(value)
    end
    return found
  end

  it("tell how long the lease still runs, for how long a phase has lasted, and how many terms were won", function()
    one = start "one"
    port = served(one)
    eventually(function() return ask().leader == 1 end, 20)
    local first, before = ask(), crown.now()
    assert.equal(1, first.terms_total)
    assert.is_true(first.lease_remaining_seconds > 0 and first.lease_remaining_seconds < TTL)
    -- It falls as time passes, and a refresh raises it again.
    local last, falls, rises = first.lease_remaining_seconds, false, false
    eventually(function()
      local now = ask().lease_remaining_seconds
      falls, rises = falls or now < last, rises or now > last
      last = now
      return falls and rises
    end, 20)
    local later = ask()
    local passed = crown.now() - before
    assert.is_true(later.phase_seconds > first.phase_seconds and later.phase_seconds <= first.phase_seconds + passed + 0.01)
    assert.equal(1, later.terms_total)

    two = start "two"
    two:follows()
    local other = served(two)
    local following = ask(other)
    assert.same({ 0, 0 }, { following.leader, following.terms_total })
    assert.is_nil(following.lease_remaining_seconds) -- a register knows no end of another one's term
    run { "evict", "--oracle", server.url, "--force", "web" }
    eventually(function() return ask(other).leader == 1 end, 20)
    local taken = ask(other)
    assert.equal(1, taken.terms_total)
    assert.is_true(taken.phase_seconds < following.phase_seconds + passed, "a phase begins anew")
    assert.same({ 0, 1 }, { ask().leader, ask().terms_total })
    run { "evict", "--oracle", server.url, "--force", "web" }
    eventually(function() return ask().leader == 1 end, 20)
    assert.equal(2, ask().terms_total)
  end)

  it("tell for how long its store has been silent", function()
    one = start "one"
    port = served(one)
    eventually(function() return ask().leader == 1 end, 20)
    eventually(function() -- between two refreshes, too
      local well = ask()
      return well.election_store_reachable == 1 and well.election_store_answer_seconds > 0.2
        and well.election_store_answer_seconds < TTL / 2
    end, 20)
    server:freeze()
    local since = crown.now()
    eventually(function() return ask().election_store_answer_seconds > TTL end, 40)
    local silent = ask()
    assert.is_true(silent.election_store_answer_seconds < crown.now() - since + TTL)
    assert.same({ 0, 0, nil }, { silent.election_store_reachable, silent.leader, silent.lease_remaining_seconds })
    server:thaw()
    eventually(function() return ask().election_store_answer_seconds < 1 end, 40)
    assert.equal(1, ask().election_store_reachable)
  end)
end)
