-- Real servers without TLS, asked over TLS: what is said names TLS, and what to look at.
local crown = require "crown"
local Etcd = require "support.etcd"
local Nats = require "support.nats"
local own_servers = require "support.own_servers"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local run = require "support.run"

describe("a server without TLS whose URL asks for TLS", function()
  local start, destroy = own_servers(function(kind) return kind.start() end)
  after_each(destroy)

  local function said(url)
    local result = run { "info", "--oracle", url }
    assert.equal(3, result.code, result.stderr)
    return result.stderr
  end

  it("is named as that by NATS, with what to do", function()
    assert.matches("the server does not offer TLS; .*nats://", said(("tls://127.0.0.1:%d"):format(start(Nats).port)))
  end)

  it("is named as that by Redis, which waits for more", function()
    assert.matches("is TLS turned on at the other end%?", said(("rediss://127.0.0.1:%d"):format(start(Redis).port)))
  end)

  it("is named as that by etcd", function()
    assert.matches("is TLS turned on at the other end%?", said(("etcds://127.0.0.1:%d"):format(start(Etcd).port)))
  end)

  it("is named as that by Postgres", function()
    assert.matches("server does not support SSL", said(("postgres://crown@127.0.0.1:%d/crown?sslmode=require")
      :format(start(Postgres).port)))
  end)

  it("is asked about where it says something else", function()
    local chatterbox = assert(crown.tcp.listen("127.0.0.1", 0, function(peer)
      peer:write "220 here is a server of some other kind\r\n"
      peer:read("*l", 20)
    end))
    finally(function() chatterbox:close() end)
    assert.matches("is TLS turned on at the other end%?", said(("rediss://127.0.0.1:%d"):format(chatterbox:port())))
    local _, problem = crown.http.request { url = ("https://127.0.0.1:%d/"):format(chatterbox:port()) }
    assert.matches("is TLS turned on at the other end%?", problem)
  end)
end)
