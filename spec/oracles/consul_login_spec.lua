-- How a candidate logs in to Consul, and what it is told of its rights, on the stand-in.
local authority = require "support.authority"
local consul = require("crown.oracles.consul").chosen { recipe = "register" }
local Player = require "support.oracle_candidate"
local run = require "support.run"
local Server = require "support.consul_server"
local set = require("support.s3_server").set
local write_file = require "support.write_file"

local serial = 0

describe("a login to Consul", function()
  local server

  local function candidate(more)
    serial = serial + 1
    local options = server:options(more)
    options.url = options.url .. "/login-" .. serial -- a store of its own
    options.name, options.trust_empty, options.ttl = "x", true, 15
    return Player.new(consul, options)
  end

  local function file(token) return write_file(("%s/token-%d"):format(server.dir, serial), token) end

  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)
  before_each(function() server:trick { anonymous = {} } end)
  after_each(function()
    set "CONSUL_HTTP_TOKEN"
    set "CONSUL_HTTP_TOKEN_FILE"
  end)

  it("is the token of a file that the user names, or of the environment", function()
    assert.matches("403: Permission denied: .*'key:read'.*; the token needs a policy with key_prefix", candidate():claim()[2])
    assert.equal("granted", candidate({ token_file = file "all-token\n" }):claim()[1])
    set("CONSUL_HTTP_TOKEN", "wrong")
    assert.matches("403: ACL not found; it does not know this token", candidate():claim()[2])
    set("CONSUL_HTTP_TOKEN", "all-token")
    assert.equal("granted", candidate():claim()[1])
    set("CONSUL_HTTP_TOKEN_FILE", file "")
    assert.matches("^consul: the token's file is empty", candidate():claim()[2])
    set("CONSUL_HTTP_TOKEN_FILE", server.dir .. "/none")
    assert.matches("^consul: the token cannot be read: .*none", candidate():claim()[2])
  end)

  it("is read again when Consul does not take it any more", function()
    local path = file "all-token"
    local one = candidate { token_file = path }
    assert.equal("granted", one:claim()[1])
    server:trick { tokens = { ["all-token"] = {} } }
    assert.equal("unknown", one:refresh()[1])
    write_file(path, "next-token")
    assert.equal("granted", one:refresh()[1])
    server:trick { tokens = { ["all-token"] = Server.RIGHTS } }
  end)

  it("is told by check --store what it lacks", function()
    local function check(token)
      return run { "check", "--store", "--oracle", server:url("token_file=" .. file(token)), "run", "x", "true" }
    end
    local result = check "read-token"
    assert.equal(2, result.code)
    assert.matches('no policy of the token allows key:write: key_prefix "spec/" { policy = "write" }', result.stdout, 1, true)
    assert.not_matches("key:read", result.stdout)
    result = check "write-token"
    assert.matches("allows key:read", result.stdout)
    assert.matches("allows key:list", result.stdout)
    result = check "all-token"
    assert.equal(0, result.code, result.stdout)
    assert.matches("Consul 1%.22%.0", result.stdout)
    assert.matches("leader%s+127%.0%.0%.1:8300", result.stdout)
    server:trick { leader = false }
    result = check "all-token"
    assert.not_equal(0, result.code)
    assert.matches("No cluster leader", result.stdout)
  end)

  it("goes over TLS, by the authority that is named", function()
    local folder = authority()
    local secure = Server.start(folder)
    local function claim(ca)
      local options = secure:options { ca = ca, trust_empty = true, name = "x", ttl = 15 }
      local one = Player.new(consul, options)
      return one:claim()
    end
    assert.equal("granted", claim(folder .. "/ca.crt")[1])
    assert.matches("certificate", Player.new(consul, { url = ("consuls://127.0.0.1:%d/other"):format(secure.port),
      recipe = "register", name = "x", ttl = 15 }):claim()[2])
    secure:destroy()
  end)

  for _, case in ipairs {
    { "consul://127.0.0.1?recipe=register", "names no prefix" },
    { "consul://127.0.0.1/a//b?recipe=register", "has a part that is no key" },
    { "consul://127.0.0.1/a@b?recipe=register", "" },
    { "consul://token@127.0.0.1/x?recipe=register", "a token is no part of the URL" },
    { "consul://127.0.0.1/x?recipe=register&ca=/etc/hosts", "ca has no effect without TLS: consuls://" },
    { "consul://127.0.0.1:99999/x?recipe=register", "no valid host or port" },
    { "consul://127.0.0.1/x?recipe=semaphore", "recipe" },
    { "consul://127.0.0.1/x?lock_delay=61", "lock_delay" },
    { "consul://127.0.0.1/x?ttl=8&lock_delay=7", "lock_delay=7 is shorter than a lease" },
    { "consul://127.0.0.1/x?recipe=register&lock_delay=3", "lock_delay" },
  } do
    it("is refused before it is asked: " .. case[1], function()
      local result = run { "check", "--oracle", case[1], "run", "x", "true" }
      assert.equal(2, result.code)
      assert.matches(case[2], result.stderr .. result.stdout, 1, true)
    end)
  end
end)
