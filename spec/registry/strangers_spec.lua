-- Who is let in to a member, and what strangers can do: nothing without the secret, and no harm.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local Links = require "support.registry_links"
local Strangers = require "crown.registry.strangers"

describe("a link between members", function()
  local opened = Links.new()
  local who, connect, is_cut, told, greet = Links.who, Links.connect, Links.is_cut, Links.told,
    Links.greet

  local function side(node, options) return opened:side(node, options) end

  after_each(function() opened:close() end)

  it("is not to be had without the secret, for either side, and both say so once", function()
    local a, b = side "a", side("b", { who = who("b", { secret = "another secret altogether" }) })
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return told(a, "does not know the secret") == 1 end)
    crown.sleep(0.3) -- several more dials: they must not be told of
    assert.equal(1, told(a, "secret"))
    assert.is_nil(a.ups["r@b"])
    assert.equal(0, #b.heard)
  end)

  it("refuses a proof that was recorded at another time", function()
    local a, b = side "a", side "b"
    local sent = {}
    local fake = { write = function(_, bytes)
      sent[#sent + 1] = bytes
      return true
    end }
    local real = connect(b)
    fake.read = function(_, ...) return real:read(...) end
    local forward = fake.write
    fake.write = function(self, bytes)
      forward(self, bytes)
      return real:write(bytes)
    end
    assert.is_true(handshake.dial(fake, a.links.who, "r@b", 5))
    local replay = connect(b)
    replay:write(sent[1])
    assert(frames.read(replay, 1024, 5, 5))
    replay:write(sent[2])
    local answer = frames.read(replay, 1024, 5, 5)
    assert.matches("secret is another", answer.error)
    assert.is_true(is_cut(replay))
  end)

  it("refuses its own proof turned back at it", function()
    local b = side "b"
    local stream = connect(b)
    local answer = greet(stream, "r@b")
    stream:write(frames.encode { proof = answer.proof })
    assert.matches("secret is another", frames.read(stream, 1024, 5, 5).error)
  end)

  it("is not to be had for another registry, another version, or somebody else than was dialled", function()
    local b = side "b"
    local other = side("a", { who = who("a", { registry = "other", id = "other@a" }) })
    other.links:set_peers { ["other@b"] = b.address }
    eventually(function() return told(other, "another registry") == 1 end)
    local a = side "a"
    a.links:set_peers { ["r@c"] = b.address }
    eventually(function() return told(a, "there is r@b, not r@c") == 1 end)
    local stream = connect(b)
    stream:write(frames.encode { version = handshake.VERSION + 1, registry = "r", id = "r@a", nonce = "x" })
    assert.equal("another version of the links", frames.read(stream, 1024, 5, 5).error)
  end)

  it("reads no large frame of a stranger, and nothing that is no frame", function()
    local b = side "b"
    for _, bytes in ipairs { "\0\0\4\1" .. ("x"):rep(1025), "GET / HTTP/1.1\r\n\r\n", "\0\0\0\5hello", "\0\0\0\2[]" } do
      local stream = connect(b)
      stream:write(bytes)
      assert.is_nil((frames.read(stream, 10, 5, 5)))
    end
    assert.is_true(told(b, "more than 1024 bytes") >= 1)
    assert.equal(0, #b.heard)
  end)

  -- A relay that passes everything on to somebody else than was dialled, and says what was expected.
  it("is not to be had with somebody else, whatever a relay calls him", function()
    local a, c = side "a", side "c"
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(stream)
      local onward = connect(c)
      local function pass(from, to)
        local frame = frames.read(from, 1024, 5, 5)
        if not frame then return nil end
        if frame.id == "r@c" then frame.id = "r@b" end
        return to:write(frames.encode(frame))
      end
      while pass(stream, onward) and pass(onward, stream) do end
      stream:close()
      onward:close()
    end, { background = true }))
    a.links:set_peers { ["r@b"] = "127.0.0.1:" .. listener:port() }
    eventually(function() return told(a, "does not know the secret") == 1 end)
    assert.is_nil(a.ups["r@b"])
    listener:close()
  end)

  -- All at once: on a busy machine each that waits for the one before would be a moment late.
  local function idlers(b, count)
    local streams, there = {}, 0
    for i = 1, count do
      crown.spawn(function()
        streams[i] = connect(b)
        there = there + 1
      end)
    end
    eventually(function() return there == count end, 20)
    return streams
  end

  -- For how long whoever had to make way was there; the least that any of them was.
  local function least_stay(strangers)
    local least, enter = {}, strangers.enter
    function strangers.enter(self, ...)
      local first, count = self.line[1], self.count
      local one, pause = enter(self, ...)
      if self.count == count then least.seconds = math.min(least.seconds or math.huge, one.since - first.since) end
      return one, pause
    end
    return least
  end

  it("has room for so many strangers of one address, and says once that there are more", function()
    local b = side "b"
    local least = least_stay(b.links.strangers)
    local streams = idlers(b, 40)
    eventually(function() return told(b, "too many connections") == 1 end, 20)
    assert.is_true(least.seconds >= 0.05, least.seconds) -- the first one has had a moment
    eventually(function() return b.links.strangers.count == 32 end, 20)
    assert.is_true(is_cut(streams[1]))
    assert.equal(1, told(b, "too many connections"))
    for _, stream in ipairs(streams) do stream:close() end
    eventually(function() return b.links.strangers.count == 0 end, 20)
  end)

  it("lets members in, however many strangers of their own address are connected and say nothing", function()
    local b, stop = side "b", false
    local idle = {}
    crown.spawn(function()
      while not stop do
        for i = 1, 40 do
          if idle[i] then idle[i]:close() end
          idle[i] = crown.tcp.connect("127.0.0.1", b.links.port)
        end
        crown.sleep(1)
      end
    end)
    eventually(function() return b.links.strangers.count == 32 end, 20)
    local a = side "a"
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] end, 20)
    a.links:send("r@b", { kind = "ask", of = 1 })
    eventually(function() return #a.answers == 1 end, 20)
    stop = true
    for i = 1, 40 do if idle[i] then idle[i]:close() end end
    assert.equal(1, told(b, "too many connections"))
  end)

  -- Forty strangers who come anew as soon as they are sent away, once it was noticed that they are too many; `came`: how many so far.
  local function crowd_at(listener, greeting)
    local crowd, stop, left = { came = 0 }, false, 40
    for _ = 1, left do
      crown.spawn(function()
        while not stop do
          local stream = crown.tcp.connect("127.0.0.1", listener.links.port)
          if stream then
            crowd.came = crowd.came + 1
            stream:write(greeting)
            stream:read("*a", 30) -- until it is sent away
            stream:close()
          end
        end
        left = left - 1
      end)
    end
    function crowd.leave()
      stop = true
      eventually(function() return left == 0 end, 20)
    end
    eventually(function() return told(listener, "too many connections") == 1 end, 20)
    return crowd
  end

  for what, greeting in pairs { ["say nothing"] = "", ["greet as a member does"] = frames.encode { version = handshake.VERSION,
    registry = "r", id = "r@a", runtime = "runtime of a", nonce = ("n"):rep(44),
    ticket = ("t"):rep(44) } } do
    it("lets members in, however quickly strangers of their own address come anew who " .. what, function()
      local b = side "b"
      local crowd = crowd_at(b, greeting)
      for round = 1, 2 do
        local a, before = side "a", crowd.came
        a.links:set_peers { ["r@b"] = b.address }
        eventually(function() return a.ups["r@b"] end, 20)
        a.links:send("r@b", { kind = "ask", of = round })
        eventually(function() return #a.answers == 1 and crowd.came > before end, 20)
        a.links:close()
      end
      crowd:leave()
    end)
  end

  it("lets members in at their first dial, however quickly strangers of their own address come anew", function()
    local b = side "b"
    local crowd = crowd_at(b, "")
    local let_in = 0
    for _ = 1, 10 do
      local stream = connect(b)
      if handshake.dial(stream, who "a", "r@b", 20) then let_in = let_in + 1 end
      stream:close()
    end
    assert.equal(10, let_in)
    crowd:leave()
  end)

  -- The first words of a member.
  local function recorded()
    local words
    handshake.dial({ write = function(_, bytes)
      words = bytes
      return nil, "nobody is there"
    end }, who "a", "r@b", 1)
    return words
  end

  it("keeps the place of somebody who began as a member does, however many strangers of his address come after him", function()
    local b = side "b"
    local stream = connect(b)
    stream:write(recorded())
    assert.is_string(frames.read(stream, 1024, 20, 20).proof)
    local forger = connect(b)
    forger:write(frames.encode { version = handshake.VERSION, registry = "r", id = "r@a", runtime = "runtime of a",
      nonce = ("n"):rep(44), ticket = ("t"):rep(44) })
    assert.is_string(frames.read(forger, 1024, 20, 20).proof)
    assert.same({ 1, 1 }, { b.links.knowing.count, b.links.strangers.count })
    local streams = idlers(b, 40)
    eventually(function() return told(b, "too many connections") == 1 end, 20)
    assert.is_true(is_cut(streams[1]))
    stream:write(frames.encode { proof = "none" })
    assert.matches("secret is another", frames.read(stream, 1024, 20, 20).error)
    for _, one in ipairs(streams) do one:close() end
    forger:close()
  end)

  it("has room for so many who repeat what a member was heard to begin with, and for that member", function()
    local b = side "b"
    local streams, words = {}, recorded()
    for i = 1, 40 do
      streams[i] = connect(b)
      streams[i]:write(words)
    end
    eventually(function() return told(b, "too many connections") == 1 end, 20)
    local member = connect(b)
    assert.is_true(handshake.dial(member, who "a", "r@b", 20))
    assert.is_true(b.links.knowing.count <= 32)
    for _, one in ipairs(streams) do one:close() end
    member:close()
  end)

  it("repeats nothing that a stranger says", function()
    local FOUL = "\27[2Jfoul words"
    local a, b = side "a", side "b"
    local greeting = { version = handshake.VERSION, registry = "r", id = "r@a", runtime = "one", nonce = "x" }
    for field, value in pairs { version = FOUL, registry = FOUL, id = { FOUL }, runtime = { FOUL } } do
      local said = {}
      for key, one in pairs(greeting) do said[key] = one end
      said[field] = value
      local stream = connect(b)
      stream:write(frames.encode(said))
      local answer = frames.read(stream, 1024, 20, 20)
      assert.is_string(answer.error)
      assert.is_nil(answer.error:find("foul", 1, true))
      stream:close()
    end
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(stream)
      frames.read(stream, 1024, 5, 5)
      stream:write(frames.encode { error = FOUL })
      stream:close()
    end, { background = true }))
    local other = assert(crown.tcp.listen("127.0.0.1", 0, function(stream)
      frames.read(stream, 1024, 5, 5)
      stream:write(frames.encode { id = FOUL, nonce = FOUL, proof = FOUL })
      stream:close()
    end, { background = true }))
    a.links:set_peers { ["r@c"] = "127.0.0.1:" .. listener:port(), ["r@d"] = "127.0.0.1:" .. other:port() }
    eventually(function() return told(a, "does not know the secret") == 2 end, 20)
    assert.is_true(#b.events >= 3)
    for _, one in ipairs { a, b } do assert.equal(0, told(one, "foul")) end
    listener:close()
    other:close()
  end)

  it("says once that a stranger's frames are too long, whatever lengths he makes up", function()
    local b = side "b"
    for i = 1, 20 do
      local stream = connect(b)
      stream:write("\255\255\255" .. string.char(i))
      assert.is_true(is_cut(stream))
      stream:close()
    end
    assert.equal(1, #b.events)
  end)

  it("tells of the same address and trouble once in a while only", function()
    local b = side "b"
    for _ = 1, 5 do
      for _, bytes in ipairs { "\0\0\0\5hello", frames.encode { version = handshake.VERSION, registry = "another" } } do
        local stream = connect(b)
        stream:write(bytes)
        frames.read(stream, 1024, 20, 20)
        stream:close()
      end
    end
    eventually(function() return told(b, "not JSON") == 1 and told(b, "another registry") == 1 end, 20)
    assert.equal(2, #b.events)
  end)
end)

describe("strangers of one address", function()
  it("make way for the next one when they have had a moment to prove who they are", function()
    local strangers, closed = Strangers.new(function() end), 0
    local stream = { peer = function() return "10.0.0.1:1" end, close = function() closed = closed + 1 end }
    local pause
    for i = 1, 32 do
      assert.equal(0, pause or 0, i)
      pause = select(2, strangers:enter(stream))
    end
    assert.is_true(pause <= 0.05)
    crown.sleep(0.06)
    local _, next_pause = strangers:enter(stream)
    assert.equal(0, next_pause) -- the others have been there as long
    assert.same({ 32, 1 }, { strangers.count, closed })
  end)
end)
