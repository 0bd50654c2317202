-- Promise 1 on a real Postgres, for the lease and for the advisory lock: whatever happens to the leader, to its connection
-- or to the server, its child's tree is dead before another one leads.
local Postgres = require "support.postgres"
local takeover = require "support.takeover"
local WrongClock = require "support.wrong_clock"

local clock = WrongClock.new(0)
local server = Postgres.start { clock = clock }

local function store(scheme)
  return {
    url = server.url:gsub("^postgres", scheme), port = server.port, clock = clock, often = "?refresh=0.2",
    reset = function() server:empty() end,
    drop = function() server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'" end,
    down = function() server:down "immediate" end,
    up = function() server:up() end,
  }
end

takeover("a leader by a lease in Postgres", store "postgres")
takeover("a leader by an advisory lock in Postgres", store "postgres+advisory")

teardown(function()
  server:destroy()
  assert.is_not_nil(server.process.code)
end)
