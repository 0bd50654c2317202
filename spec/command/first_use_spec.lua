-- The first election in a new store: people are told what is waited for, how long and why, and what to set.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local json = require "crown.text.json"
local Nats = require "support.nats"
local Redis = require "support.redis"
local run = require "support.run"
local S3 = require "support.s3_server"
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
  redis = { Redis, "redis at 127.0.0.1:%d+", wait = 25, words = "amnesia_wait=25, twice", hears = true },
  s3 = { S3, "s3 at spec/elections", wait = 25, words = "amnesia_wait=25, twice", hears = true },
  etcd = { Etcd, "etcd at 127.0.0.1:%d+" },
  nats = { Nats, "nats at 127.0.0.1:%d+/FIRST", "/FIRST" },
  ["a store that compares and swaps"] = { nil, "mystore at host", wait = 25, words = "amnesia_wait=25, twice" },
}

describe("the first use of", function()
  for name, store in pairs(STORES) do
    describe(name, function()
      local server, one, two, dir
      before_each(function()
        dir = tempdir()
        if store[1] then server = store[1].start() else write_file(dir .. "/mystore.lua", MYSTORE) end
      end)
      after_each(function()
        for _, candidate in pairs { one, two } do candidate:destroy() end
        if server then server:destroy() end
        one, two, server = nil, nil, nil
      end)

      local function url_with(options)
        if name == "s3" then return server:url("ttl=5&" .. options) end
        return (server and server.url .. (store[3] or "") or "mystore://host") .. "?ttl=5&" .. options
      end
      local function candidate(node, options)
        return Candidate.start { args = { "run", "--oracle", url_with(options), "first", "sh", "-c", "echo it runs; exec sleep 1000" },
          node = node, log = dir .. "/log-" .. node, env = { CROWN_DIRECTORY = dir, LUA_PATH = dir .. "/?.lua;;" } }
      end
      local function start(options) one = candidate("one", options) end
      local function status(...) return run({ "status", ... }, { env = { CROWN_DIRECTORY = dir } }).stdout end

      it("says once, plainly, why nobody leads yet, and status says for how long", function()
        start("amnesia_wait=" .. (store.wait or 50))
        local said = eventually(function() return one:output():match "crown%-lua: [^\n]* has no record[^\n]*" end, 20)
        assert.matches("^crown%-lua: " .. store[2] .. " has no record of this election%. Waiting [45]%d s, in case another "
          .. "candidate still leads by a record that was lost %(" .. (store.words or "amnesia_wait=50")
          .. "; trust_empty=true skips this in a new store%)%.$", said)
        assert.matches("first%s+waiting [45]%d s", status())
        local found = json.object(status "--json").runtimes[1].elections[1]
        assert.is_true(found.amnesia)
        assert.is_true(found.next_claim_in > 30 and found.next_claim_in < 55, found.next_claim_in)
        if server and name ~= "s3" then -- each of its records has a wait of its own
          assert.matches("Doubt%s+nobody new leads for [45]%d s: a record of who leads may have been lost",
            run({ "info", "--oracle", url_with "amnesia_wait=50" }).stdout)
        end
        assert.equal(1, select(2, one:output():gsub("crown%-lua: [^\n]*no record", "")))
        assert.is_nil(one:output():find("it runs", 1, true))
      end)

      it("leads at once with trust_empty", function()
        start "amnesia_wait=50&trust_empty=true"
        eventually(function() return one:output():find("it runs", 1, true) end, 20)
        assert.is_nil(one:output():find("no record", 1, true))
      end)

      if store.hears then -- in the others' formats a wait is the whole store's
        it("is told of a leader that trusts it, and leads next, while its own wait goes on", function()
          start "amnesia_wait=50"
          eventually(function() return one:output():find("has no record", 1, true) end, 20)
          two = candidate("two", "amnesia_wait=50&trust_empty=true")
          eventually(function() return two:output():find("it runs", 1, true) end, 20)
          eventually(function() return one:output():find("following 'first'; two leads", 1, true) end, 10)
          assert.matches("first%s+one%s+following%s+two", status())
          two:signal "TERM"
          eventually(function() return one:output():find("it runs", 1, true) end, 10)
          assert.equal(1, select(2, one:output():gsub("oracle%.amnesia", "")))
        end)
      end
    end)
  end
end)
