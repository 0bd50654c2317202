-- The links between members: who may talk, and what becomes of those who talk nonsense.
local authority = require "support.authority"
local base64 = require "crown.text.base64"
local conditions = require "crown.link.conditions"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local Links = require "crown.registry.links"

local SECRET = "the secret of these specs"

describe("a link between members", function()
  local opened = {}

  local function who(node, fields)
    local made = { registry = "r", id = "r@" .. node, secret = SECRET, runtime = "runtime of " .. node }
    for key, value in pairs(fields or {}) do made[key] = value end
    return made
  end

  -- One side: its links, and what it heard.
  local function side(node, options)
    local self = { heard = {}, events = {}, ups = {}, answers = {} }
    local given = { who = who(node), host = "127.0.0.1", port = 0, every = 0.2, linger = 0.2,
      receive = function(from, message, reply)
        self.heard[#self.heard + 1] = { from = from, message = message }
        if message.kind == "nonsense" then return nil, "a message of no known kind" end
        if message.kind == "ask" then reply { kind = "told", of = message.of } end
        return true
      end,
      answered = function(_, message)
        self.answers[#self.answers + 1] = message
        return true
      end,
      up = function(id) self.ups[id] = true end, down = function(id) self.ups[id] = nil end,
      runtime_of = function(id) return "runtime of " .. id:match "@(.*)$" end,
      emit = function(event, fields) self.events[#self.events + 1] = { event = event, error = fields.error, peer = fields.peer } end }
    for key, value in pairs(options or {}) do given[key] = value end
    self.links = assert(Links.open(given))
    self.address = "127.0.0.1:" .. self.links.port
    opened[#opened + 1] = self.links
    return self
  end

  after_each(function()
    for _, links in ipairs(opened) do links:close() end
    opened = {}
  end)

  local function connect(one)
    local stream = assert(crown.tcp.connect("127.0.0.1", one.links.port))
    stream:set_timeout(5)
    return stream
  end

  local function is_cut(stream)
    return stream:read("*s", 5) == nil
  end

  local function told(one, words)
    local count = 0
    for _, event in ipairs(one.events) do
      if event.error:find(words, 1, true) then count = count + 1 end
    end
    return count
  end

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

  it("carries messages in order, and answers back", function()
    local a, b = side "a", side "b"
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return a.ups["r@b"] end)
    for i = 1, 100 do a.links:send("r@b", { kind = "ask", of = i }) end
    eventually(function() return #a.answers == 100 end)
    for i = 1, 100 do
      assert.equal(i, b.heard[i].message.of)
      assert.equal("r@a", b.heard[i].from)
    end
  end)

  it("is not to be had without the secret, for either side, and both say so once", function()
    local a, b = side "a", side("b", { who = who("b", { secret = "another secret altogether" }) })
    a.links:set_peers { ["r@b"] = b.address }
    eventually(function() return told(a, "does not know the secret") == 1 end)
    crown.sleep(0.3) -- several more dials: they must not be told of
    assert.equal(1, told(a, "secret"))
    assert.is_nil(a.ups["r@b"])
    assert.equal(0, #b.heard)
  end)

  -- A dialler that knows no secret, and repeats what it saw.
  local function greet(stream, id, nonce)
    stream:write(frames.encode { version = handshake.VERSION, registry = "r", id = id, runtime = "one",
      nonce = nonce or base64.encode(("n"):rep(32)) })
    return frames.read(stream, 1024, 5, 5)
  end

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
    assert.is_true(told(b, "where 1024 are the most") >= 1)
    assert.equal(0, #b.heard)
  end)

  local function proved(b)
    local stream = connect(b)
    assert.is_true(handshake.dial(stream, who "x", "r@b", 5))
    return stream
  end

  it("cuts a member that sends a frame above the bounds, with one line", function()
    local b = side "b"
    local stream = proved(b)
    stream:write "\1\0\0\0"
    assert.is_true(is_cut(stream))
    assert.equal(1, told(b, "where 1048576 are the most"))
  end)

  it("cuts a member that sends what is no message", function()
    local b = side "b"
    for _, bytes in ipairs { frames.encode { kind = "nonsense" }, "\0\0\0\4junk" } do
      local stream = proved(b)
      stream:write(bytes)
      assert.is_true(is_cut(stream))
    end
    assert.equal(1, told(b, "no known kind"))
    assert.equal(1, told(b, "not JSON"))
  end)

  it("cuts a member that falls silent", function()
    local b = side "b"
    local stream = proved(b)
    assert.is_true(is_cut(stream))
  end)

  it("gives an older connection of the same member up for a newer one", function()
    local b = side "b"
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
    local b = side "b"
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

  local function idlers(b, count)
    local streams = {}
    for i = 1, count do streams[i] = connect(b) end
    return streams
  end

  it("has room for so many strangers of one address, and says once that there are more", function()
    local b = side "b"
    local streams = idlers(b, 40)
    eventually(function() return b.links.strangers.count == 32 end, 20)
    assert.is_true(is_cut(streams[40]))
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

  it("cuts somebody for whom too much waits, and says so", function()
    local a = side("a", { waiting_most = 1000000 })
    local taken, listener = slow_taker(a, 10, 3600)
    for i = 1, 300 do a.links:send("r@slow", { kind = "ask", of = i, text = ("x"):rep(100000) }) end
    eventually(function() return told(a, "too slowly") == 1 end)
    eventually(function() return not a.ups["r@slow"] end)
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
    local a, b = side "a", side "b"
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
    assert.is_nil((greet(plain, "r@d")))
  end)
end)
