-- A candidate that may not lead by its own rules, on each store: it keeps nobody waiting, and hears of a release afterwards.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Mysql = require "support.mysql"
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local Wire = require "support.nats_wire"
local write_file = require "support.write_file"

local TTL = 60 -- seconds: whatever comes sooner was not a lease that ran out
local SOON = 20 -- seconds, on a busy machine
local BUCKET = "BARRED"
local NEW = "trust_empty=true&amnesia_wait=0"

local function on_nats()
  local server = Nats.start()
  Wire.open(server.port):make_bucket(BUCKET, TTL)
  return server
end

local STORES = {
  file = { start = function() return { url = "file:" .. tempdir(), destroy = function() end } end },
  redis = { start = Redis.start, more = ("?ttl=%d&%s"):format(TTL, NEW) },
  etcd = { start = function() return Etcd.start():trusted() end, more = ("?ttl=%d&%s"):format(TTL, NEW) },
  mysql = { start = Mysql.start, more = ("?ttl=%d&%s"):format(TTL, NEW) },
  nats = { start = on_nats, more = ("/%s?%s"):format(BUCKET, NEW) },
  postgres_lease = { start = Postgres.start, more = ("?duration=%d"):format(TTL) },
  postgres_advisory = { start = Postgres.start, more = ("?ttl=%d"):format(TTL), scheme = "postgres+advisory" },
}

for store, way in pairs(STORES) do
  describe("a candidate that may not lead, on " .. store, function()
    local server, started

    setup(function()
      server = way.start()
      started = {}
    end)
    teardown(function()
      for _, one in ipairs(started) do one:destroy() end
      server:destroy()
    end)

    local function start(node)
      local dir = tempdir()
      local one = { healthy = dir .. "/healthy" }
      write_file(one.healthy, "")
      local url = (way.scheme and server.url:gsub("^%w+", way.scheme) or server.url) .. (way.more or "")
      local app = write_file(dir .. "/app.lua", ([[
        require("crown").elect { name = "x", oracle = %q, child = { "sleep", "600" },
          healthy = { check = function() return io.open(%q) ~= nil end, every = 0.1, fail = 1, pass = 1 } }]])
        :format(url, one.healthy))
      one.process = Candidate.start { args = { "--log-level", "info", app }, node = node, log = dir .. "/log" }
      started[#started + 1] = one.process
      return one
    end

    local function leads(one)
      local fine = pcall(eventually, function() return #one.process:pids "child" == 1 end, SOON)
      assert(fine, one.process:output())
    end

    local function end_in_order(one)
      one.process:signal "TERM"
      assert.equal(0, one.process:wait(SOON))
    end

    it("keeps nobody waiting whose turn comes after its own, and leads when it may again", function()
      local first = start "first"
      leads(first)
      local barred = start "barred"
      barred.process:follows(SOON)
      local last = start "last"
      last.process:follows(SOON)
      assert(os.remove(barred.healthy))
      eventually(function() return barred.process:output():find "leadership.barred [^\n]*phase=following" end, SOON)
      end_in_order(first)
      leads(last)
      write_file(barred.healthy, "")
      eventually(function() return select(2, barred.process:output():gsub("leadership%.allowed", "")) == 2 end, SOON)
      assert.equal(0, #barred.process:pids "child")
      end_in_order(last)
      leads(barred)
    end)
  end)
end
