-- Choria's ten workers: several candidates of one election in one process, at most one of which leads, on every store.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local APP = [[
local crown = require "crown"
local leading = 0
for i = 1, 10 do
  crown.elect { name = "my_app", node = "w" .. i, retry = 0.2, handlers = {
    won = function(term)
      leading = leading + 1
      io.stderr:write(("w%d leads, epoch %d, %d at once\n"):format(i, term.epoch, leading))
    end,
    lost = function(why)
      if why ~= "runtime_died" then leading = leading - 1 end
      io.stderr:write(("w%d lost: %s\n"):format(i, why))
    end,
  } }
end
]]

local function plain(url) return function() return nil, url end end

local STORES = {
  { "a file", function() return nil, "file:" .. tempdir() end },
  { "a lease in Postgres", function() local one = Postgres.start() return one, one.url .. "?ttl=2" end },
  { "an advisory lock in Postgres", function()
    local one = Postgres.start()
    return one, one.url:gsub("^postgres", "postgres+advisory") .. "?ttl=2"
  end },
  { "Redis", function() local one = Redis.start() return one, one.quick .. "&ttl=2" end },
  { "etcd", function() local one = Etcd.start() return one, one.quick .. "&ttl=2" end },
  { "NATS", function() local one = Nats.start() return one, one.quick .. "&ttl=4" end },
  { "this process", plain "memory:ten?ttl=2" },
}

describe("ten candidates of one election in one process", function()
  for _, store in ipairs(STORES) do
    it("have one leader, and the next one when that steps down: " .. store[1], function()
      local server, url = store[2]()
      local dir = tempdir()
      write_file(dir .. "/app.lua", APP)
      local app = Candidate.start { args = { "--oracle", url, dir .. "/app.lua" }, node = "host", log = dir .. "/log",
        env = { CROWN_DIRECTORY = dir .. "/user" } }
      local function terms()
        local found = {}
        for node, epoch, at_once in app:output():gmatch "(w%d+) leads, epoch (%d+), (%d+) at once" do
          assert.equal("1", at_once)
          found[#found + 1] = { node = node, epoch = tonumber(epoch) }
        end
        return found
      end
      eventually(function() return #terms() == 1 end, 10)
      local asked = run({ "abdicate", "my_app" }, { env = { CROWN_DIRECTORY = dir .. "/user" } })
      assert.equal(0, asked.code, asked.stderr)
      eventually(function() return #terms() >= 2 end, 10)
      assert.is_true(terms()[2].epoch > terms()[1].epoch)
      app:hurt("KILL", "runtime")
      eventually(function() return #terms() >= 3 end, 10)
      app:signal "TERM"
      assert.equal(0, app:wait(20))
      terms()
      if server then server:destroy() end
    end)
  end
end)
