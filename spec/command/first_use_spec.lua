-- The first election in a new store: people are told what is waited for, how long and why, and what to set.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local json = require "crown.text.json"
local Nats = require "support.nats"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local MYSTORE = [[
local records, version = {}, 0
return require("crown.oracle.cas").oracle { word = "mystore",
  read = function(self)
    local one = records[self.name]
    if not one then return false end
    return one.text, one.version
  end,
  write = function(self, text, at)
    local one = records[self.name]
    if (one and one.version) ~= at then return false end
    version = version + 1
    records[self.name] = { text = text, version = version }
    return version
  end }]]

local STORES = {
  redis = { Redis, "redis at 127.0.0.1:%d+", wait = 25, words = "amnesia_wait=25, twice" },
  etcd = { Etcd, "etcd at 127.0.0.1:%d+" },
  nats = { Nats, "nats at 127.0.0.1:%d+/FIRST", "/FIRST" },
  ["a store that compares and swaps"] = { nil, "mystore at host", wait = 25, words = "amnesia_wait=25, twice" },
}

describe("the first use of", function()
  for name, store in pairs(STORES) do
    describe(name, function()
      local server, one, dir
      before_each(function()
        dir = tempdir()
        if store[1] then server = store[1].start() else write_file(dir .. "/mystore.lua", MYSTORE) end
      end)
      after_each(function()
        if one then one:destroy() end
        if server then server:destroy() end
        one, server = nil, nil
      end)

      local function start(options)
        local url = (server and server.url .. (store[3] or "") or "mystore://host") .. "?ttl=5&" .. options
        one = Candidate.start { args = { "run", "--oracle", url, "first", "sh", "-c", "echo it runs; exec sleep 1000" }, node = "one",
          log = dir .. "/log", env = { CROWN_DIRECTORY = dir, LUA_PATH = dir .. "/?.lua;;" } }
      end

      it("says once, plainly, why nobody leads yet, and status says for how long", function()
        start("amnesia_wait=" .. (store.wait or 50))
        local said = eventually(function() return one:output():match "crown%-lua: [^\n]* has no record[^\n]*" end, 20)
        assert.matches("^crown%-lua: " .. store[2] .. " has no record of this election%. Waiting [45]%d s, in case another "
          .. "candidate still leads by a record that was lost %(" .. (store.words or "amnesia_wait=50")
          .. "; trust_empty=true skips this in a new store%)%.$", said)
        local function status(...) return run({ "status", ... }, { env = { CROWN_DIRECTORY = dir } }).stdout end
        assert.matches("first%s+waiting [45]%d s", status())
        local found = json.object(status "--json").runtimes[1].elections[1]
        assert.is_true(found.amnesia)
        assert.is_true(found.next_claim_in > 30 and found.next_claim_in < 55, found.next_claim_in)
        if server then
          local url = server.url .. (store[3] or "") .. "?ttl=5&amnesia_wait=50"
          assert.matches("Doubt%s+nobody new leads for [45]%d s: a record of who leads may have been lost",
            run({ "info", "--oracle", url }).stdout)
        end
        assert.equal(1, select(2, one:output():gsub("crown%-lua: [^\n]*no record", "")))
        assert.is_nil(one:output():find("it runs", 1, true))
      end)

      it("leads at once with trust_empty", function()
        start "amnesia_wait=50&trust_empty=true"
        eventually(function() return one:output():find("it runs", 1, true) end, 20)
        assert.is_nil(one:output():find("no record", 1, true))
      end)
    end)
  end
end)
