-- crown-lua spec/fuzz/wire.lua TARGET MOST SEED: feeds a client, or the HTTP endpoint, what a server or a guest may say,
-- changed at random; `make fuzz` runs it under ASan. MOST is a number of inputs, or of seconds where it ends in an s. What
-- counts as found: the runtime dies, an error of our own code, or the loop does not come back. The same seed says the same.
package.path = "spec/?.lua;spec/fuzz/?.lua;" .. package.path
local barrier = require "crown.link.barrier"
local crown = require "crown"
local mutator = require "mutator"

local target, seed = arg[1], tonumber(arg[3])
local seconds, inputs = tonumber(arg[2]:match "^(%d+)s$"), tonumber(arg[2])
local count, until_at = 0, seconds and crown.now() + seconds

-- Most of them wait for each other's words: so many come at once, each with a server and a seed of its own.
local AT_ONCE = { redis = 32, nats = 32, etcd = 32, postgres = 128, mysql = 32, http = 32 }

local targets = {}

-- What is said next: so many samples, each changed.
local function input(samples, random, pieces)
  count = count + 1
  local said = {}
  for i = 1, pieces or 1 do said[i] = mutator.next(samples, random) end
  return table.concat(said)
end

-- An error that the barrier caught is a defect: what is wrong has to be refused in words.
local function check(problem, said)
  if not tostring(problem):find "an error here" then return end
  io.stderr:write(("%s, seed %d: %s\nafter %q\n"):format(target, seed, problem, said))
  os.exit(1)
end

-- A server that greets each connection, and says something new once it was asked.
local function server(random, greet, samples)
  local self = {}
  self.listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
    connection:set_timeout(1)
    if not greet(connection) then return connection:close() end
    self.said = input(samples, random)
    connection:write(self.said)
    connection:read("*s", 0.005)
    connection:close()
  end))
  self.port = self.listener:port()
  return self
end

function targets.resp(random)
  local resp = require "crown.core.resp"
  local samples = { "+OK\r\n", "-ERR no\r\n", ":12\r\n", "$5\r\nhello\r\n", "$-1\r\n", "*2\r\n$3\r\nfoo\r\n:7\r\n", "*-1\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n", "*2\r\n*1\r\n:1\r\n*0\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "%1\r\n+a\r\n:1\r\n", "~1\r\n:1\r\n", ",1.5\r\n", "#t\r\n", "(123\r\n", "_\r\n", "=5\r\ntxt:a\r\n", ">1\r\n+x\r\n" }
  return function()
    local text, reader = input(samples, random), resp.reader()
    local cut = random(0, #text)
    for _, piece in ipairs { text:sub(1, cut), text:sub(cut + 1) } do
      reader:feed(piece)
      while reader:next() do end
    end
  end
end

function targets.redis(random)
  local Connection = require "crown.redis.connection"
  local one = server(random, function(connection) return connection:read "*s" end,
    { "+OK\r\n", ":1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n", "-NOAUTH no\r\n", "$3\r\nabc\r\n" })
  return function()
    local connection, problem = Connection.open({}, { host = "127.0.0.1", port = one.port }, 1)
    check(problem, one.said)
    if not connection then return end -- a busy host
    if random(2) == 1 then connection.on_message = function() end end
    check(select(2, connection:call(1, "GET", "x")), one.said)
    connection:close()
    check(connection.closed, one.said)
  end
end

function targets.nats(random)
  local Connection = require "crown.nats.connection"
  local function greet(connection)
    connection:write 'INFO {"server_id":"x"}\r\n'
    for line in function() return connection:read "*l" end do
      if line:find "^PING" then return connection:write "PONG\r\n" end
    end
  end
  local one = server(random, greet, { "MSG a 1 3\r\nabc\r\n", "HMSG a 1 r 12 15\r\nNATS/1.0\r\n\r\nabc\r\n", "PING\r\n", "PONG\r\n",
    "-ERR 'Permissions Violation'\r\n", "-ERR 'x'\r\n", "+OK\r\n", "INFO {}\r\n",
    "MSG a 1 3\r\nabc\r\nHMSG b 1 18 18\r\nNATS/1.0 503 x\r\n\r\n\r\n" })
  local login = server(random, function() return true end, { 'INFO {"server_id":"x","nonce":"y","tls_required":false}\r\nPONG\r\n' })
  return function()
    local connection, problem = Connection.open({}, { host = "127.0.0.1", port = one.port }, 1)
    check(problem, one.said)
    if connection then
      connection:subscribe("a", function() end)
      local _, why = connection:request("a", nil, "x", 0.02)
      check(why, one.said)
      connection:close()
      check(connection.closed, one.said)
    end
    connection, problem = Connection.open({}, { host = "127.0.0.1", port = login.port }, 0.02)
    check(problem, login.said)
    if connection then connection:close() end
  end
end

function targets.etcd(random)
  local Client = require "crown.etcd.client"
  local Watch = require "crown.etcd.watch"
  local function answer(body) return ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body) end
  local one = server(random, function(connection) return connection:read "*s" end, {
    answer '{"header":{"cluster_id":"1","revision":"7"},"kvs":[{"key":"YQ==","create_revision":"5","value":"Yg=="}]}',
    answer '{"error":"x","code":14}', answer '{"result":{"created":true,"watch_id":"1","header":{"revision":"7"}}}\n',
    answer '{"result":{"watch_id":"1","header":{"revision":"8"},"events":[{"type":"DELETE","kv":{"key":"YQ==","value":"Yg=="}}]}}\n',
    "HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" })
  local client = Client.new({ endpoints = { "http://127.0.0.1:" .. one.port } }, 1)
  return function()
    local _, problem = barrier.call(client.ask, client, "/v3/kv/range", {})
    check(problem, one.said)
    local watch, over = Watch.new { client = client, timeout = 1, on_event = function() end, on_missed = function() end }, crown.now() + 1
    crown.spawn(watch.over, watch, { key = "YQ==" })
    repeat crown.sleep(0.001) until watch.problem or watch.whole or crown.now() > over
    watch:close()
    check(watch.problem, one.said)
  end
end

-- A message of Postgres: its kind, its length, its bytes.
local function message(kind, bytes)
  local size = #bytes + 4
  return kind .. string.char(math.floor(size / 16777216) % 256, math.floor(size / 65536) % 256, math.floor(size / 256) % 256,
    size % 256) .. bytes
end

-- The same bytes as whole messages, whatever lengths they claim.
local function in_messages(text)
  local messages, at = {}, 1
  while #text - at >= 4 do
    local a, b, c, d = text:byte(at + 1, at + 4)
    local size = math.max(0, math.min(((a * 256 + b) * 256 + c) * 256 + d - 4, #text - at - 4))
    messages[#messages + 1] = message(text:sub(at, at), text:sub(at + 5, at + 4 + size))
    at = at + 5 + size
  end
  return table.concat(messages)
end

-- Mostly what one message holds is changed; else more, and seldom their lengths: libpq first makes room for what they claim.
local function changed_answer(samples, random)
  local sample, messages = samples[random(#samples)], {}
  local which = random(#sample)
  count = count + 1
  for i, one in ipairs(sample) do
    messages[i] = message(one[1], i == which and mutator.next({ one[2] }, random) or one[2])
  end
  if random(4) > 1 then return table.concat(messages) end
  local answer = mutator.next({ table.concat(messages) }, random)
  return random(128) > 1 and in_messages(answer) or answer
end

function targets.postgres(random)
  local READY = message("Z", "I")
  local function row(kind, value)
    return { { "1", "" }, { "2", "" },
      { "T", "\0\1v\0\0\0\0\0\0\0\0\0" .. string.char(math.floor(kind / 256), kind % 256) .. "\0\8\255\255\255\255\0\0" },
      { "D", "\0\1\0\0\0" .. string.char(#value) .. value }, { "C", "SELECT 1\0" } }
  end
  local samples = { row(16, "t"), row(20, "-9223372036854775808"), row(23, "5"), row(25, "text"), row(701, "1e5"), row(1700, "3.50"),
    row(17, "\\x00ff"), { { "E", "SERROR\0C23505\0Mno\0\0" } }, { { "A", "\0\0\0\1c\0x\0" }, { "1", "" } }, { { "S", "a\0b\0" } } }
  local copy = { { { "1", "" }, { "2", "" }, { "H", "\0\0\1\0\0" } } } -- it ends the connection
  local login = { { "R", "\0\0\0\0" }, { "S", "server_version\00016.0\0" }, { "K", "\0\0\0\1\0\0\0\1" }, { "Z", "I" } }
  local logins = { login, { { "R", "\0\0\0\3" }, unpack(login) }, { { "R", "\0\0\0\5salt" }, unpack(login) },
    { { "R", "\0\0\0\10SCRAM-SHA-256\0\0" } }, { { "E", "SFATAL\0C28P01\0Mno\0\0" } }, { { "v", "\0\3\0\0\0\0\0\0" }, unpack(login) } }
  local words -- what was said last

  local function greet(connection)
    if not connection:read "*s" then return end
    words = nil
    if random(16) == 1 then return connection:write(changed_answer(logins, random)) and nil end
    for _, one in ipairs(login) do connection:write(message(one[1], one[2])) end
    return connection:read "*s"
  end

  -- Where libpq waits for the end of what was whole, it hears once more that the answer is over.
  local function asked_again(connection)
    for _ = 1, 3 do
      local question, _, code = connection:read("*s", 0.05)
      if question or code ~= "timeout" then return question end
      connection:write(READY)
    end
  end

  -- A login takes three threads: a connection lasts for many answers, until the order of messages is lost.
  local function serve(connection)
    connection:set_timeout(5)
    local asked = greet(connection)
    while asked do
      words = changed_answer(random(64) > 1 and samples or copy, random) .. READY
      connection:write(words)
      asked = asked_again(connection)
    end
    connection:close()
  end

  local listener = assert(crown.tcp.listen("127.0.0.1", 0, serve))
  local url = ("postgres://x:y@127.0.0.1:%d/x?sslmode=disable&target_session_attrs=any"):format(listener:port())
  return function()
    local client = assert(crown.postgres.new(url, { timeout = 5 }))
    if random(2) == 1 then client:listen("c", function() end) end
    local problem
    repeat
      problem = select(2, client:query "SELECT v")
      check(problem, words)
    until problem == "failed" or client.bare:generation() == 0 -- failed: libpq has lost count of the answers
    client:close()
  end
end

function targets.mysql(random)
  local Connection, wire = require "crown.mysql.connection", require "crown.mysql.wire"
  local hello = wire.packet(0, "\0105.5.5-10.11.1-MariaDB\0\1\0\0\0abcdefgh\0\255\247\45\2\0\255\129\21" .. ("\0"):rep(10)
    .. "ijklmnopqrst\0mysql_native_password\0")
  local done = wire.packet(2, "\0\0\0\2\0\0\0")
  local function greet(connection)
    connection:write(hello)
    return connection:read "*s" and connection:write(done) and connection:read "*s"
  end
  local function rows(status)
    return wire.packet(1, "\1") .. wire.packet(2, "column") .. wire.packet(3, "\254\0\0\2\0") .. wire.packet(4, "\1x")
      .. wire.packet(5, "\251") .. wire.packet(6, "\254\0\0" .. status .. "\0")
  end
  local one = server(random, greet, { rows "\2", rows "\10" .. wire.packet(7, "\0\1\0\2\0\0\0"), wire.packet(1, "\0\0\0\2\0\0\0"),
    wire.packet(1, "\255\21\4#28000no") })
  local login = server(random, function() return true end, { hello .. done, hello .. wire.packet(2, "\254mysql_native_password\0abc"),
    hello .. wire.packet(2, "\1\3") .. done, wire.packet(0, "\255\16\4#08004no") })
  return function()
    local parsed = { user = "x", password = "y", database = "z" }
    local connection, problem = Connection.open(parsed, { host = "127.0.0.1", port = one.port }, 1)
    check(problem, one.said)
    if connection then
      check(select(2, connection:query(0.05, "SELECT 1")), one.said)
      connection:close()
      check(connection.closed, one.said)
    end
    connection, problem = Connection.open(parsed, { host = "127.0.0.1", port = login.port }, 0.02)
    check(problem, login.said)
    if connection then connection:close() end
  end
end

function targets.http(random)
  local port = assert(require("crown.core.http").serve("127.0.0.1", 0, require("crown.web").answer))
  local samples = { "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "GET /metrics HTTP/1.0\r\n\r\n",
    "HEAD /leader/a%20b HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
    "GET /api/elections/3 HTTP/1.1\r\nHost: [::1]:80\r\nOrigin: http://x\r\n\r\n",
    "GET /?a=b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" }
  return function()
    local connection = assert(crown.tcp.connect("127.0.0.1", port))
    connection:write(input(samples, random))
    connection:shutdown()
    connection:read("*a", 0.05)
    connection:close()
  end
end

-- A connection that has said all that it says.
local function said(text)
  local at = 1
  return { write = function() return true end, read = function(_, bytes)
    if at > #text then return nil, "closed", "closed" end
    local piece = text:sub(at, at + bytes - 1)
    at = at + bytes
    return piece
  end }
end

local function framed(samples)
  local frames, found = require "crown.registry.frames", {}
  for i, one in ipairs(samples) do found[i] = frames.encode(one) end
  return found
end

-- What members say to each other once they know each other, whatever stands in it.
function targets.frames(random)
  local frames, messages = require "crown.registry.frames", require "crown.registry.messages"
  local samples = framed { { kind = "append", epoch = 1, first = 2, changes = { { "+", "n", "r@a", "t", "1" }, { "-", "n" } } },
    { kind = "snapshot", epoch = 1, seq = 2, part = 1, last = true, names = { { "n", "r@a", "t", "1" } } },
    { kind = "write", writes = { { request = "s:1", op = { what = "register", name = "n", token = "t", value = "1" } } } },
    { kind = "written", answers = { { request = "s:1", result = { ok = true } } } }, { kind = "position", epoch = 1,
      at = { epoch = 1, seq = 2 } }, { kind = "resume", epoch = 1, from = { epoch = 0, seq = 0 } }, { kind = "ping" } }
  return function()
    local stream = said(input(samples, random))
    for one in function() return frames.read(stream, frames.MOST, 1, 1) end do messages.check(one) end
  end
end

-- What a stranger says; none of it may let anybody in.
function targets.handshake(random)
  local handshake = require "crown.registry.handshake"
  local who = { registry = "r", id = "r@a", secret = "a secret that is long enough", runtime = "x" }
  local samples = framed { { version = handshake.VERSION, registry = "r", id = "r@b", runtime = "y", nonce = ("n"):rep(44) },
    { id = "r@b", nonce = ("n"):rep(44), proof = ("p"):rep(44) }, { proof = ("p"):rep(44) }, { ok = true },
    { error = "another registry" } }
  return function()
    local text = input(samples, random, 3)
    local let_in = handshake.accept(said(text), who, 1, function() end) or handshake.dial(said(text), who, "r@b", 1)
    if let_in then check("an error here: a stranger was let in", text) end
  end
end

local make = assert(targets[target], "targets: resp, redis, nats, etcd, postgres, http, frames, handshake")
local left = AT_ONCE[target] or 1

local function is_enough()
  return until_at and crown.now() >= until_at or inputs and count >= inputs
end

for i = 1, left do
  local try, tries = make(mutator.random(seed * 100 + i)), 0
  crown.spawn(function()
    while not is_enough() do
      local _, problem = barrier.call(try)
      check(problem, "its last input")
      tries = tries + 1
      if tries % 1000 == 0 then crown.sleep(0) end
    end
    left = left - 1
  end)
end
while left > 0 do crown.sleep(0.1) end
print(count)
os.exit(0)
