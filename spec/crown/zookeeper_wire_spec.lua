-- ZooKeeper's packets, without a server.
local wire = require "crown.zookeeper.wire"
local zookeeper_url = require "crown.zookeeper.url"

local function bytes(text) return (text:gsub("%s", ""):gsub("%x%x", function(one) return string.char(tonumber(one, 16)) end)) end

local STAT = ("\0"):rep(4) .. "\0\0\0\7" .. ("\0"):rep(24) .. "\0\0\0\3" .. ("\0"):rep(8) .. ("\1"):rep(8) .. ("\0"):rep(4)
  .. "\0\0\0\2" .. ("\0"):rep(8)

-- What a server may say, each by the function that reads it.
local SAYINGS = {
  { wire.read_welcome, bytes "00000000 00000fa0 0123456789abcdef 00000010" .. ("p"):rep(16) .. "\0" },
  { wire.read_head, bytes "fffffff e 0000000000000001 ffffff9b" },
  { function(text) return wire.answer.get(text, 1) end, wire.text "data" .. STAT },
  { function(text) return wire.answer.create(text, 1) end, wire.text "/a" .. STAT },
  { function(text) return wire.answer.children(text, 1) end, wire.int(2) .. wire.text "a" .. wire.text "b" .. STAT },
  { function(text) return wire.answer.get_acl(text, 1) end, wire.int(1) .. wire.int(31) .. wire.text "world" .. wire.text "anyone" },
  { function(text) return wire.read_event(text, 1) end, wire.int(2) .. wire.int(3) .. wire.text "/a" },
}

describe("ZooKeeper's packets", function()
  it("are written as its server reads them", function()
    assert.equal(bytes "0000000461626364", wire.text "abcd")
    assert.equal(bytes "fffffffe", wire.int(-2))
    assert.equal(bytes "00000000 0000000000000000 00001388 0000000000000000 00000010" .. ("\0"):rep(16) .. "\0",
      wire.hello { ttl = 5 })
    assert.equal(bytes "000000022f61 ffffffff", wire.body.delete "/a")
  end)

  it("are read", function()
    assert.equal(4, SAYINGS[1][1](SAYINGS[1][2]).ttl)
    assert.equal(-101, wire.read_head(SAYINGS[2][2]).code)
    local got = wire.answer.get(SAYINGS[3][2], 1)
    assert.same({ "data", 3, 2, ("\1"):rep(8) }, { got.data, got.stat.version, got.stat.children, got.stat.owner })
    assert.equal(7, wire.number(got.stat.czxid))
    assert.same({ "a", "b" }, wire.answer.children(SAYINGS[5][2], 1))
    assert.same({ { rights = 31, scheme = "world", id = "anyone" } }, wire.answer.get_acl(SAYINGS[6][2], 1))
  end)

  it("have numbers of 64 bits in order", function()
    assert.equal(0x500000007, wire.number(bytes "0000000500000007"))
    assert.equal(2 ^ 32 - 1, wire.number(bytes "00000000ffffffff"))
    assert.is_true(bytes "0000000500000000" > bytes "00000004ffffffff")
  end)

  it("are no packets where they are cut off, and raise no error", function()
    for i, saying in ipairs(SAYINGS) do
      for length = 0, #saying[2] - 1 do
        local fine, found = pcall(saying[1], saying[2]:sub(1, length))
        assert.is_true(fine, ("saying %d, cut off at %d: %s"):format(i, length, tostring(found)))
      end
      assert.is_truthy(saying[1](saying[2]))
      assert.is_nil((saying[1](saying[2]:sub(1, 4))))
    end
  end)

  it("raise no error where bytes are others", function()
    for i, saying in ipairs(SAYINGS) do
      for at = 1, #saying[2] do
        for _, byte in ipairs { 0, 127, 128, 255 } do
          local text = saying[2]:sub(1, at - 1) .. string.char(byte) .. saying[2]:sub(at + 1)
          local fine, found = pcall(saying[1], text)
          assert.is_true(fine, ("saying %d, byte %d as %d: %s"):format(i, at, byte, tostring(found)))
        end
      end
    end
  end)
end)

describe("a ZooKeeper URL", function()
  it("names servers, a path and a login", function()
    local parsed = assert(zookeeper_url.parse "zookeeper://app:w%40rd@a,b:2182/x/y")
    assert.same({ { host = "a", port = 2181 }, { host = "b", port = 2182 } }, parsed.hosts)
    assert.same({ "/x/y", "app", "w@rd" }, { parsed.path, parsed.user, parsed.password })
    assert.equal(2281, zookeeper_url.parse("zookeepers://a").hosts[1].port)
    assert.equal("", zookeeper_url.parse("zookeeper://a").path)
  end)

  it("is refused where it cannot be meant", function()
    for text, problem in pairs {
      ["zookeeper://app@h"] = "needs both user and password", ["zookeeper://h/zookeeper/x"] = "the server's own",
      ["zookeeper://h/a/../b"] = "a part '..'", ["zookeeper://h/%40crown"] = "a part '@crown'",
      ["zookeeper://h/a//b"] = "is not valid", ["zookeeper://h:0/a"] = "no valid host or port",
    } do
      local parsed, why = zookeeper_url.parse(text)
      assert.is_nil(parsed)
      assert.is_truthy(why:find(problem, 1, true), why)
    end
  end)
end)
