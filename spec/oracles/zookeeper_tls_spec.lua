-- ZooKeeper over TLS: whose certificate counts, and what a plain port says to it.
local authority = require "support.authority"
local crown = require "crown"
local Players = require "support.zookeeper_players"
local port = require "support.port"
local Server = require "support.zookeeper"

describe("an election in ZooKeeper over TLS", function()
  local server, dir, secure
  setup(function()
    dir, secure = authority(), port.free()
    assert(crown.exec({ "sh", "-c", ("cat %s/s.key %s/s.crt > %s/both.pem"):format(dir, dir, dir) }).code == 0)
    server = Server.start { "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory", "secureClientPort=" .. secure,
      "secureClientPortAddress=127.0.0.1", "ssl.keyStore.type=PEM", ("ssl.keyStore.location=%s/both.pem"):format(dir),
      "ssl.trustStore.type=PEM", ("ssl.trustStore.location=%s/ca.crt"):format(dir), "ssl.clientAuth=none" }
  end)
  teardown(function() server:destroy() end)

  local url = ""
  local _, add = Players.of_each_test(function() return url end)

  local function at(number, ca)
    url = ("zookeepers://127.0.0.1:%d/app%s"):format(number, ca and "?ca=" .. dir .. "/" .. ca or "")
    return add("one", { trust_empty = true, timeout = 2 })
  end

  it("is held where the certificate is of an authority that is named", function()
    assert.equal("granted", at(secure, "ca.crt"):win()[1])
  end)

  it("is not held where it is another one's", function()
    local verdict = at(secure, "other.crt"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("certificate", verdict[2])
  end)

  it("names a port that speaks no TLS", function()
    local verdict = at(server.port, "ca.crt"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("TLS", verdict[2])
  end)

  it("refuses a certificate where nothing is encrypted", function()
    local fine, problem = pcall(add, "one", { url = server.url .. "?ca=" .. dir .. "/ca.crt" })
    assert.is_false(fine)
    assert.matches("ca has no effect without TLS: zookeepers://", tostring(problem))
  end)
end)
