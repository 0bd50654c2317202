-- The examples on Postgres, run as a user runs them.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local tempdir = require "support.tempdir"

describe("the example", function()
  local server
  local started = {}

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
    started = {}
  end)

  local function start(example, node, env)
    env = env or {}
    env.DATABASE_URL = server.url
    local one = Candidate.start { args = { "lua/examples/" .. example }, node = node, env = env, log = tempdir() .. "/log" }
    started[#started + 1] = one
    return one
  end

  local function says(one, pattern)
    eventually(function() return one:output():find(pattern) end, 10)
  end

  for example, words in pairs { ["postgres_lease.lua"] = { "working", "%d+" }, ["postgres_advisory.lua"] = { "migrating", "[12]" } } do
    it(example .. " leads once, and hands over", function()
      local word, epoch = unpack(words)
      local one = start(example, "one")
      says(one, ("%s as one in epoch %s"):format(word, epoch))
      local two = start(example, "two")
      says(two, "connected")
      one:signal "TERM"
      says(two, ("%s as two in epoch %s"):format(word, epoch))
      assert.equal(0, one:wait(10))
    end)
  end

  it("registry.lua gives a name to one of two members, and leads once", function()
    local env = { SECRET = "a secret of the specs" }
    local one = start("registry.lua", "one", env)
    says(one, "this node is the mailer")
    says(one, "leading, epoch 1")
    local two = start("registry.lua", "two", env)
    says(two, "one is the mailer")
    one:signal "TERM"
    says(two, "leading, epoch 2")
    assert.equal(0, one:wait(10))
  end)

  it("oban_peer.lua follows Oban's leader", function()
    server:sql [[CREATE TABLE oban_peers (name TEXT PRIMARY KEY, node TEXT NOT NULL,
      started_at TIMESTAMP NOT NULL, expires_at TIMESTAMP NOT NULL)]]
    server:sql "GRANT SELECT ON oban_peers TO crown"
    server:sql [[INSERT INTO oban_peers VALUES ('Oban', 'app@two', timezone('UTC', now()),
      timezone('UTC', now()) + interval '60 s')]]
    local one = start("oban_peer.lua", "one", { ELIXIR_NODE = "app@one" })
    local two = start("oban_peer.lua", "two", { ELIXIR_NODE = "app@two" })
    says(two, "working beside Oban on two")
    assert.is_nil(one:output():find "working beside")
    server:sql "UPDATE oban_peers SET node = 'app@one', started_at = timezone('UTC', now())"
    server:sql "SELECT pg_notify('public.oban_leader', '{}')"
    says(one, "working beside Oban on one")
    says(two, "lost")
  end)
end)
