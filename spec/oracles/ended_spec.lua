-- Elections that come and go under ever new names leave nothing behind in the runtime that held them.
local Elections = require "support.elections"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local Redis = require "support.redis"

local AT_ONCE, WARM, ROUNDS = 200, 2, 5
local LEFT_MOST = 300 -- bytes for each that has ended: what one leaves that is kept is more

describe("elections that have ended", function()
  local mine, servers = Elections.new(), {}

  local function led_and_ended(url)
    local all = {}
    for i = 1, AT_ONCE do all[i] = mine:elect { name = Elections.unique(), oracle = { url.word, url = url.url, ttl = 30 } } end
    for _, one in ipairs(all) do
      eventually(function() return one:is_leader() end, 30)
    end
    mine:stop()
  end

  local function bytes()
    for _ = 1, 3 do collectgarbage() end
    return collectgarbage "count" * 1024
  end

  teardown(function()
    mine:stop()
    for _, server in ipairs(servers) do server:destroy() end
  end)

  local function started(server)
    servers[#servers + 1] = server
    return server
  end

  local STORES = {
    memory = function() return { word = "memory", url = "memory:ended" } end,
    redis = function() return { word = "redis", url = started(Redis.start()).url .. "?trust_empty=true" } end,
    nats = function() return { word = "nats_kv", url = started(Nats.start()).url .. "/ENDED?trust_empty=true" } end,
    postgres = function() return { word = "postgres_lease", url = started(Postgres.start()).url } end,
    etcd = function() return { word = "etcd", url = started(Etcd.start()).url .. "?trust_empty=true" } end,
  }

  it("leave their name to the next one, and their lock to an election of another name", function()
    local name = Elections.unique()
    for _, options in ipairs { { name = name }, { name = name }, { name = name .. "-other" } } do
      options.oracle = { "memory", url = "memory:again", lock = name }
      local election = mine:elect(options)
      eventually(function() return election:is_leader() end, 30)
      mine:stop()
    end
  end)

  for name, start in pairs(STORES) do
    it("leave nothing in the memory of their runtime: " .. name, function()
      local url = start()
      for _ = 1, WARM do led_and_ended(url) end
      local before = bytes()
      for _ = 1, ROUNDS do led_and_ended(url) end
      local left = (bytes() - before) / (ROUNDS * AT_ONCE)
      assert.is_true(left < LEFT_MOST, ("%.0f bytes for each"):format(left))
    end)
  end
end)
