-- What a person reads when a store is not reached: each message names the store, the server and a next step, and shows no part of
-- a password.
local authority = require "support.authority"
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local Nats = require "support.nats"
local Wire = require "support.nats_wire"
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local tls_stores = require "support.tls_stores"

local PLAIN = {
  redis = "redis://127.0.0.1:%d",
  nats = "nats://127.0.0.1:%d",
  etcd = "etcd://127.0.0.1:%d",
  postgres = "postgres://u@127.0.0.1:%d/d?sslmode=disable",
  http = "http://127.0.0.1:%d/locks?ttl=3",
}
local ENCRYPTED = {
  redis = "rediss://127.0.0.1:%d",
  nats = "tls://127.0.0.1:%d",
  etcd = "etcds://127.0.0.1:%d",
  postgres = "postgres://u@127.0.0.1:%d/d?sslmode=require",
  http = "https://127.0.0.1:%d/locks?ttl=3",
}

local TRICKS = {
  ["nobody listens"] = { step = "is the server running" },
  ["it accepts and closes"] = { script = "close", step = "is it the right port" },
  ["it closes with something unread"] = { script = "wait 0.02\nreset", step = "is it the right port" },
  ["it is silent"] = { script = "", step = "is it the right port" },
}

-- A lease service cannot be asked who leads.
local function asked(url)
  if not url:find "^https?:" then return run { "info", "--oracle", url } end
  return run { "run", "--once", "--oracle", url, "words", "true" }
end

describe("a store that is not reached is told by its name, its server, and a next step:", function()
  for name, url in pairs(PLAIN) do
    it(name, function()
      local wanted = 0
      for trick, about in pairs(TRICKS) do
        wanted = wanted + 1
        crown.spawn(function()
          local server = about.script and Hostile.start(about.script)
          local port = server and server.port or 1
          local result = asked(url:format(port))
          if server then server:destroy() end
          about.result, about.port, wanted = result, port, wanted - 1
          about.trick = trick
        end)
      end
      while wanted > 0 do crown.sleep(0.02) end
      for trick, about in pairs(TRICKS) do
        local words = ("%s: %s"):format(trick, about.result.stderr)
        assert.equal(3, about.result.code, words)
        assert.is_truthy(about.result.stderr:find(("%s at 127.0.0.1:%d: "):format(name, about.port), 1, true), words)
        assert.is_truthy(about.result.stderr:find(about.step, 1, true), words)
      end
    end)

    it(name .. ", whose URL asks for TLS, where the other side breaks off", function()
      local server = Hostile.start "wait 0.02\nreset"
      finally(function() server:destroy() end)
      local said = asked(ENCRYPTED[name]:format(server.port)).stderr
      assert.is_truthy(said:find(("%s at 127.0.0.1:%d: "):format(name, server.port), 1, true), said)
      assert.matches("[;:] ?i?s? .*[^\n]%?", said)
    end)
  end

  it("Sentinels, by their own names", function()
    local said = run({ "info", "--oracle", "redis+sentinel://127.0.0.1:1,127.0.0.1:2/m" }).stderr
    assert.matches("2 are needed: 127.0.0.1:1: Connection refused.*127.0.0.1:2: Connection refused; is the server running", said)
  end)
end)

describe("a client without TLS at a port with TLS says so:", function()
  local start, destroy = own_servers(function(kind, ...) return kind(...) end)
  after_each(destroy)

  for _, name in ipairs { "redis", "etcd" } do
    it(name, function()
      local server = start(tls_stores[name], authority())
      local said = run({ "info", "--oracle", PLAIN[name]:format(server.port) }).stderr
      assert.is_truthy(said:find(("%s at 127.0.0.1:%d: "):format(name, server.port), 1, true), said)
      assert.matches(name == "redis" and "expect TLS %(rediss://%)" or "expect TLS %(etcds://%)", said)
    end)
  end
end)

-- How a store comes to be full, and what a candidate's log then says of it behind the store's name.
local FULL = {
  redis = { step = "OOM command not allowed .*; raise the server's maxmemory", start = function(start)
    return start(Redis.start, { config = "maxmemory 1\n" }).url
  end },
  etcd = { step = "database space exceeded; .*etcdctl alarm disarm", start = function(start)
    return start(Etcd.start, nil, { "--quota-backend-bytes", "1" }).quick
  end },
  nats = { step = "maximum bytes exceeded; raise the limit", start = function(start)
    local server = start(Nats.start)
    Wire.open(server.port):make_bucket("B", 1, { max_bytes = 20, storage = "memory" })
    return server.url .. "/B?amnesia_wait=0"
  end },
  ["nats, of which the account is full,"] = { step = "insufficient resources; raise the limit", start = function(start)
    local server = start(Nats.start, { storage = "max_file: 1K" })
    local wire = Wire.open(server.port)
    wire:make_bucket("B", 1)
    wire:make_bucket("FULL", 3600) -- whose values stay
    wire:ask("$KV.FULL.filler", nil, ("x"):rep(900))
    return server.url .. "/B?amnesia_wait=0"
  end },
  http = { step = "answered 507: it is full; make room there", start = function(start)
    local server = start(Hostile.start, "say HTTP/1.1 507 Insufficient Storage\\r\\nContent-Length: 0\\r\\n\\r\\n\nclose")
    return ("http://127.0.0.1:%d/locks?ttl=3"):format(server.port)
  end },
}

describe("a store that is full is told by its name and a next step:", function()
  local start, destroy = own_servers(function(kind, ...) return kind(...) end)
  after_each(destroy)

  for name, about in pairs(FULL) do
    it(name, function()
      local url, dir = about.start(start), tempdir()
      local one = Candidate.start { args = { "run", "--oracle", url, "words", "true" }, node = "one", log = dir .. "/log",
        env = { CROWN_DIRECTORY = dir } }
      finally(function() one:destroy() end)
      local said = eventually(function() return one:output():match "oracle%.error[^\n]*" end, 30)
      assert.matches(name:match "^%a+" .. " at 127%.0%.0%.1:%d+[^ ]*: .*" .. about.step, said)
    end)
  end
end)

describe("a login that is refused", function()
  local start, destroy = own_servers(function(...) return Redis.start(...) end)
  after_each(destroy)

  it("is told with the server, and what to look at", function()
    local server = start { config = "requirepass secret\n" }
    local at = ("127.0.0.1:%d"):format(server.port)
    for _, login in ipairs { "u:hunter2@", "hunter2@", "" } do
      local said = run({ "info", "--oracle", "redis://" .. login .. at }).stderr
      assert.is_truthy(said:find(("redis at %s: "):format(at), 1, true), said)
      assert.matches("check the user and the password in the URL", said)
      assert.is_nil(said:find("hunter2", 1, true), said)
    end
  end)
end)

describe("a password with characters that stand for something in a URL", function()
  local SECRET = { "hun", "ter" } -- around the character
  local URLS = {
    "redis://u:%s@127.0.0.1:1/0", "redis://%s@127.0.0.1:1", "redis+sentinel://u:%s@127.0.0.1:1/m", "nats://%s@127.0.0.1:1/B",
    "redis+majority://u:%s@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "nats://u:%s@127.0.0.1:1/B", "etcd://u:%s@127.0.0.1:1",
    "postgres://u:%s@127.0.0.1:1/d", "postgres+advisory://u:%s@127.0.0.1:1/d", "oban+postgres://u:%s@127.0.0.1:1/d",
    "registry+postgres://u:%s@127.0.0.1:1/d?listen=127.0.0.1:1&secret=one-that-is-long-enough", "http://u:%s@127.0.0.1:1/d?ttl=4",
  }

  for _, character in ipairs { "@", "/", "?", "#", "/1", "?x=", "?a&b", "@x?" } do
    it("shows no part of it: " .. character, function()
      local left, said = #URLS, {}
      for _, url in ipairs(URLS) do
        crown.spawn(function()
          local login = SECRET[1] .. character .. SECRET[2]
          local words = { "run", "--once", "--oracle", url:format(login), "words", "true" }
          local result = run(words, { env = { CROWN_DIRECTORY = tempdir() } })
          said[url], left = result, left - 1
        end)
      end
      while left > 0 do crown.sleep(0.02) end
      for url, result in pairs(said) do
        local words = url .. ": " .. result.stdout .. result.stderr
        assert.is_true(result.code > 0, words)
        for _, part in ipairs(SECRET) do assert.is_nil((result.stdout .. result.stderr):find(part, 1, true), words) end
        if result.code == 2 then assert.matches("percent%-encode it %(%%40, %%2F, %%3F, %%25%)", result.stderr) end
      end
    end)
  end
end)
