-- A server that runs with fsync = off, as those of developers and of CI do, is warned of, and used.
local Postgres = require "support.postgres"
local run = require "support.run"

describe("a Postgres server with fsync = off", function()
  local server

  setup(function() server = Postgres.start { config = "fsync = off" } end)
  teardown(function() server:destroy() end)

  for title, words in pairs { lease = "postgres", ["advisory lock"] = "postgres+advisory" } do
    it("is warned of, and `run --once` runs its command by the " .. title, function()
      local url = server.url:gsub("^postgres", words)
      local result = run { "run", "--once", "--oracle", url .. "?ttl=10", "x", "echo", "ran" }
      assert.same({ 0, "ran\n" }, { result.code, result.stdout }, result.stderr)
      local _, warnings = result.stderr:gsub("warn  oracle%.postgres%.not_durable[^\n]*fsync", "")
      assert.equal(1, warnings, result.stderr)
    end)
  end
end)
