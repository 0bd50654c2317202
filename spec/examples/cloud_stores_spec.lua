-- The examples on DynamoDB and on Azure's Blob storage, on strict stand-ins: as modules, by the laws of a store, and as a user runs them.
local base64 = require "crown.text.base64"
local Player = require "support.oracle_candidate"
local run = require "support.run"
local StandIn = require "support.stand_in"
local set = require("support.s3_server").set

package.path = "lua/examples/dynamodb/?.lua;lua/examples/azure/?.lua;" .. package.path

local KEY = base64.encode "the-key-of-the-account"

local STORES = {
  dynamodb = { url = "dynamodb://127.0.0.1:%d/elections?region=eu-central-1&plain=true",
    more = { region = "eu-central-1", plain = true }, wrong = "UnrecognizedClientException", method = "POST",
    login = { AWS_ACCESS_KEY_ID = "AKIAALL", AWS_SECRET_ACCESS_KEY = "all/+secret" },
    stranger = function(server) server:trick { logins = { AKIAALL = { secret = "another" } } } end,
    busy = { status = 400, code = "ProvisionedThroughputExceededException", count = 9 } },
  azure_blob = { folder = "azure", url = "azure_blob://127.0.0.1:%d/elections/here?account=spec&plain=true",
    more = { account = "spec", plain = true }, wrong = "AuthenticationFailed", method = "PUT",
    login = { AZURE_STORAGE_KEY = KEY },
    stranger = function() set("AZURE_STORAGE_KEY", base64.encode "another") end,
    busy = { status = 503, code = "ServerBusy", count = 9 } },
}

for word, case in pairs(STORES) do
  local folder = case.folder or word

  describe("the example on " .. word, function()
    local server, serial = nil, 0

    local function login(values)
      for name, value in pairs(values) do set(name, value) end
    end

    setup(function()
      server = StandIn.make(("spec/support/%s/stand_in.lua"):format(folder), StandIn)
      server:up()
    end)
    teardown(function()
      for name in pairs(case.login) do set(name) end
      server:destroy()
    end)
    before_each(function()
      login(case.login)
      server:trick {}
      serial = serial + 1
    end)

    local function options(name)
      local found = { url = case.url:format(server.port):match "^[^?]*", name = name or "x-" .. serial, ttl = 2, trust_empty = true }
      for key, value in pairs(case.more) do found[key] = value end
      return found
    end

    local function candidate(name) return Player.new(require(word), options(name)) end

    it("keeps the laws of a store", function()
      local result = run({ "check", "--laws", "--oracle", case.url:format(server.port) },
        { env = { LUA_PATH = ("lua/examples/%s/?.lua;;"):format(folder) } })
      assert.equal(0, result.code, result.stdout .. result.stderr)
      assert.matches("16 laws, none broken, 2 not tried", result.stdout) -- of memories and of changes
    end)

    it("lets one of two lead, and lists it", function()
      local one, two = candidate(), candidate()
      assert.equal("granted", one:claim()[1])
      assert.equal("denied", two:claim()[1])
      assert.equal("granted", one:refresh()[1])
      server:trick { page = 1 }
      local listed = {}
      for _, election in ipairs(assert(require(word).list(options()))) do listed[election.name] = true end
      assert.is_true(listed["x-" .. serial])
      one:abdicate()
      assert.equal("granted", two:claim()[1])
    end)

    it("keeps names as they are", function()
      for _, name in ipairs { "a/b c", "..", "é%2F+&<'\"" .. serial } do
        assert.equal("granted", candidate(name):claim()[1])
        assert.equal("denied", candidate(name):claim()[1])
      end
    end)

    it("does not know what became of what the store does not answer", function()
      local one = candidate()
      assert.equal("granted", one:claim()[1])
      for _, trick in ipairs { case.busy, { unsaid = true, count = 9 }, { status = 500, code = "InternalError", count = 9 } } do
        server:trick(trick)
        assert.equal("unknown", one:refresh()[1])
      end
      server:trick {}
      assert.equal("granted", one:refresh()[1])
      case.stranger(server)
      assert.matches(case.wrong, candidate():claim()[2])
    end)
  end)
end
