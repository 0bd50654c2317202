-- What a job has written, as stores keep it beside the election's record for who asks from another host.
local Consul = require "support.consul_server"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Mysql = require "support.mysql"
local outputs = require "crown.register.outputs"
local own_servers = require "support.own_servers"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local S3 = require "support.s3_server"

local ALL_BYTES = {}
for byte = 0, 255 do ALL_BYTES[byte + 1] = string.char(byte) end
ALL_BYTES = table.concat(ALL_BYTES)

local started, destroy = own_servers(function(kind) return kind.start() end)
teardown(destroy)

local STORES = {
  redis = function() return { url = started(Redis).url .. "?trust_empty=true" } end,
  ["redis with a majority"] = function()
    local urls = {}
    for i = 1, 3 do urls[i] = started(Redis).url end
    return { urls = urls, trust_empty = true }, "redis"
  end,
  postgres_lease = function() return { url = started(Postgres).url } end,
  mysql = function() return { url = started(Mysql).url .. "?trust_empty=true" } end,
  consul = function() return started(Consul):options { recipe = "register", trust_empty = true } end,
  s3 = function() return started(S3):options { trust_empty = true } end,
}

for name, start in pairs(STORES) do
  describe("what a job has written, in " .. name, function()
    local options, module

    setup(function()
      local word
      options, word = start()
      module = require("crown.oracles." .. (word or name))
      module = module.chosen and module.chosen(options) or module
      -- What makes the table, where there is one.
      local given = { word or name }
      for option, value in pairs(options) do given[option] = value end
      local one = crown.elect { name = "job", oracle = given }
      eventually(function() return one:is_leader() end, 20)
      one:stop()
      eventually(function() return one:status().phase == "finishing" end, 20)
    end)

    local function ask(keep, job)
      local opts = { keep = keep }
      for option, value in pairs(options) do opts[option] = value end
      return module.output(opts, job or "job")
    end

    it("is read as it was written, with where and when, the end of it alone, and the later run's", function()
      assert.is_false(ask())
      local fields = { bytes = ALL_BYTES, written = 256, node = "ann", began = 1000, slot = 960 }
      assert.is_true(ask(fields))
      assert.same(fields, ask())
      local long = ("0123456789"):rep(7000)
      assert.is_true(ask { bytes = long, written = 1e6, node = "bob", began = 1060 })
      local found = assert(ask())
      assert.is_true(found.bytes == long:sub(-outputs.MOST))
      assert.same({ 1e6, "bob", 1060 }, { found.written, found.node, found.began })
      assert.is_true(ask(fields)) -- which comes late
      assert.equal("bob", ask().node)
      assert.is_false(ask(nil, "other"))
      local listed = {}
      for i, one in ipairs(assert(module.list(options))) do listed[i] = one.name end
      assert.same({ "job" }, listed)
      assert.is_truthy(module.nodes(options) ~= nil)
    end)
  end)
end
