-- The links between members: who may talk, and what becomes of those who talk nonsense.
local authority = require "support.authority"
local conditions = require "crown.link.conditions"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local Links = require "support.registry_links"

describe("a link between members", function()
  local opened = Links.new()
  local who, connect, is_cut, told = Links.who, Links.connect, Links.is_cut, Links.told

  local function side(node, options) return opened:side(node, options) end

  after_each(function() opened:close() end)

  it("is dialled with pauses that grow, where it dies as soon as it is up", function()
    local count = 0
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(stream)
      count = count + 1
      stream:set_timeout(5)
      handshake.accept(stream, who "b", 5, function() end)
      stream:close()
    end))
    local a = side "a"
    a.links:set_peers { ["r@b"] = "127.0.0.1:" .. listener:port() }
    eventually(function() return count > 2 end, 20)
    crown.sleep(2)
    listener:close()
    assert.is_true(count < 15, count .. " connections") -- without growing pauses there are a hundred
  end)

  it("is dialled anew whatever a stranger answers", function()
    local answers = { {}, { error = {} }, { id = 5, proof = 5 }, { nonce = {}, proof = {}, id = {} }, { ok = true }, { 1, 2, 3 } }
    local count = 0
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(stream)
      count = count + 1
      stream:write(frames.encode(answers[(count - 1) % #answers + 1]))
      stream:read("*s", 5)
      stream:close()
    end))
    local a = side "a"
    a.links:set_peers { ["r@b"] = "127.0.0.1:" .. listener:port() }
    eventually(function() return count > #answers end, 30)
    listener:close()
  end)

  it("shows its condition, for as long as it is wanted", function()
    local a, b = side "a", side "b"
    local function shown()
      for _, one in ipairs(conditions.all()) do
        if one.server == "r@b " .. b.address then return one end
      end
    end
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return shown().state == "proven" and shown().answered < 1 end, 20)
    b.links:close()
    eventually(function() return shown().error and shown().state ~= "proven" end, 20)
    a.links:set_peers {}
    eventually(function() return not shown() end, 20)
  end)

  -- A machine that stands still is no silence of theirs.
  local PATIENT = { every = 20, linger = 5 }

  it("carries messages in order, and answers back", function()
    local a, b = side("a", PATIENT), side("b", PATIENT)
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] end)
    for i = 1, 100 do a.links:send("r@b", { kind = "ask", of = i }) end
    eventually(function() return #a.answers == 100 end)
    for i = 1, 100 do
      assert.equal(i, b.heard[i].message.of)
      assert.equal("r@a", b.heard[i].from)
    end
  end)

  local function proved(b)
    local stream = connect(b)
    assert.is_true(handshake.dial(stream, who "x", "r@b", 5))
    return stream
  end

  it("cuts a member that sends a frame above the bounds, with one line", function()
    local b = side("b", PATIENT)
    local stream = proved(b)
    stream:write "\1\0\0\0"
    assert.is_true(is_cut(stream))
    assert.equal(1, told(b, "more than 1048576 bytes"))
  end)

  it("cuts a member that sends what is no message", function()
    local b = side("b", PATIENT)
    for _, bytes in ipairs { frames.encode { kind = "nonsense" }, "\0\0\0\4junk" } do
      local stream = proved(b)
      stream:write(bytes)
      assert.is_true(is_cut(stream))
    end
    assert.equal(1, told(b, "an unknown kind"))
    assert.equal(1, told(b, "not JSON"))
  end)

  it("cuts a member that falls silent", function()
    local b = side "b"
    local stream = proved(b)
    assert.is_true(is_cut(stream))
  end)

  it("gives an older connection of the same member up for a newer one", function()
    local b = side("b", PATIENT)
    local older = proved(b)
    local newer = proved(b)
    assert.is_true(is_cut(older))
    newer:write(frames.encode { kind = "ask", of = 1 })
    assert.same({ kind = "told", of = 1 }, frames.read(newer, 1000, 5, 5))
  end)

  it("does not wait for an older connection to fall silent before it gives it up", function()
    local b = side("b", { every = 600 })
    local older = proved(b)
    local newer = proved(b)
    local bytes, _, code = older:read("*s", 20)
    assert.is_nil(bytes)
    assert.not_equal("timeout", code)
    newer:close()
  end)

  it("is not to be had by a second runtime under a member's name, which does no harm to the first", function()
    local b = side("b", PATIENT)
    local first = proved(b)
    local second = connect(b)
    local fine, problem, code = handshake.dial(second, who("x", { runtime = "another" }), "r@b", 5)
    assert.is_nil(fine)
    assert.equal("denied", code)
    assert.matches("another runtime", problem)
    assert.is_true(is_cut(second))
    first:write(frames.encode { kind = "ask", of = 1 })
    assert.same({ kind = "told", of = 1 }, frames.read(first, 1000, 5, 5))
    first:close()
    -- Where the first one has gone, whoever is the member now is believed.
    eventually(function()
      local third = connect(b)
      local admitted = handshake.dial(third, who("x", { runtime = "another" }), "r@b", 5)
      third:close()
      return admitted
    end)
  end)

  -- Takes what is sent to it at some pace, from a link to it.
  local function slow_taker(a, piece, pause)
    local taken = { bytes = 0 }
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(stream)
      handshake.accept(stream, who "slow", 5, function() end)
      while not taken.over do
        local bytes = stream:read(piece, 5)
        if not bytes then break end
        taken.bytes = taken.bytes + #bytes
        crown.sleep(pause)
      end
      taken.over = true
      stream:close()
    end, { background = true }))
    a.links:set_peers { ["r@slow"] = "127.0.0.1:" .. listener:port() }
    eventually(function() return a.ups["r@slow"] end)
    return taken, listener
  end

  it("waits for somebody slow as long as he takes anything, and for nobody who takes nothing", function()
    local a = side("a", { patience = 2, every = 20 })
    local taken, listener = slow_taker(a, 1000000, 0.1)
    local size, count = 100000, 300
    for i = 1, count do a.links:send("r@slow", { kind = "ask", of = i, text = ("x"):rep(size) }) end
    eventually(function() return taken.bytes >= size * count end, 40)
    assert.is_true(a.ups["r@slow"])
    taken.over = true
    listener:close()

    local b = side("b", { patience = 2, every = 20 })
    taken, listener = slow_taker(b, 10, 3600)
    for i = 1, count do b.links:send("r@slow", { kind = "ask", of = i, text = ("x"):rep(size) }) end
    eventually(function() return told(b, "nothing of what is sent to it was taken") == 1 end, 20)
    eventually(function() return not b.ups["r@slow"] end)
    taken.over = true
    listener:close()
  end)

  it("is not taken for dead while the other works on what it was sent, however much that is", function()
    local downs, COUNT = 0, 100
    local a = side("a", { every = 0.2, down = function() downs = downs + 1 end })
    local b
    b = side("b", { every = 0.2, receive = function(_, message)
      crown.sleep(0.02)
      b.heard[#b.heard + 1] = message
      return true
    end })
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] end)
    for i = 1, COUNT do a.links:send("r@b", { kind = "ask", of = i }) end
    eventually(function() return #b.heard == COUNT or downs > 0 end)
    assert.equal(0, downs)
  end)

  it("cuts somebody for whom 256 MiB wait, says so, and survives it", function()
    local MIB = 1024 * 1024
    local a, b = side("a", { every = 20, patience = 120 }), side("b", { every = 20 })
    local taken, listener = slow_taker(a, 10, 3600)
    a.links:set_peers { ["r@slow"] = a.links.peers["r@slow"].address, ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] and a.ups["r@slow"] end)
    local sent = 0
    while told(a, "too slowly") == 0 and sent < 300 do
      sent = sent + 1
      a.links:send("r@slow", { kind = "ask", of = sent, text = ("x"):rep(MIB - 100) })
      crown.sleep(0)
    end
    assert.is_true(sent > 255 and sent < 270, sent .. " MiB were sent")
    eventually(function() return not a.ups["r@slow"] end)
    assert.equal(1, told(a, "too slowly"))
    a.links:send("r@b", { kind = "ask", of = 1 })
    eventually(function() return #a.answers == 1 end)
    eventually(function()
      collectgarbage()
      return collectgarbage "count" < 100 * 1024
    end)
    eventually(function() return a.ups["r@slow"] end)
    taken.over = true
    listener:close()
  end)

  it("ends with what is done with its messages, and is made anew", function()
    local broken = true
    local function break_down()
      if broken then error "something is broken" end
      return true
    end
    for _, part in ipairs { "receive", "answered" } do
      broken = true
      local a, b = side("a", { answered = part == "answered" and break_down or nil }),
        side("b", { receive = part == "receive" and break_down or nil })
      a.links:set_peers { ["r@b"] = b.address }
      eventually(function() return a.ups["r@b"] end)
      a.links:send("r@b", { kind = "ask", of = 1 })
      local one = part == "receive" and b or a
      eventually(function() return told(one, "something is broken") == 1 end)
      broken = false
      eventually(function() return a.ups["r@b"] end)
      local before = #b.heard
      if part == "answered" then
        a.links:send("r@b", { kind = "ask", of = 2 })
        eventually(function() return #b.heard > before end)
      end
      a.links:close()
      b.links:close()
    end
  end)

  it("stays up for a while when the other is a member no more, and then goes", function()
    local a, b = side("a", PATIENT), side("b", PATIENT)
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] end)
    a.links:set_peers {}
    a.links:send("r@b", { kind = "ask", of = 3 })
    eventually(function() return #a.answers == 1 end)
    eventually(function() return not a.ups["r@b"] end)
  end)

  it("comes back when the other does", function()
    local a, b = side "a", side "b"
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] end)
    b.links:close()
    eventually(function() return not a.ups["r@b"] end)
    local again = side("b", { port = b.links.port })
    eventually(function() return a.ups["r@b"] end)
    a.links:send("r@b", { kind = "ask", of = 2 })
    eventually(function() return #again.heard > 0 end)
  end)

  it("can have TLS, and then refuses whom it does not", function()
    local dir = authority()
    local tls = { ca = dir .. "/ca.crt", cert = dir .. "/s.crt", key = dir .. "/s.key" }
    local a, b = side("a", { tls = tls }), side("b", { tls = tls })
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] end)
    local stream, problem = crown.tcp.connect("127.0.0.1", b.links.port, { tls = { ca = dir .. "/other.crt" } })
    assert.is_nil(stream)
    assert.matches("certificate", problem)
    local plain = connect(b)
    assert.is_nil((Links.greet(plain, "r@d")))
  end)
end)
