local crown = require "crown"
local eventually = require("crown.testing").eventually
local program = require "support.program"
local tempdir = require "support.tempdir"

describe("crown.tcp", function()
  local listener, connection

  local function serve(handler, options)
    listener = assert(crown.tcp.listen("127.0.0.1", 0, handler, options))
    return listener:port()
  end

  local function echo(peer)
    for line in function() return peer:read "*L" end do
      if not peer:write(line) then break end
    end
    peer:close()
  end

  -- Another task's read, which has begun: a function that gives the code of its error when it is over.
  local function reading(...)
    local begun, code
    local arguments = { ... }
    crown.spawn(function()
      begun = true -- the read begins before anybody else has a turn
      code = select(3, connection:read(unpack(arguments)))
    end)
    eventually(function() return begun end)
    return function() return code end
  end

  after_each(function()
    if connection then connection:close() end
    if listener then listener:close() end
    connection, listener = nil, nil
  end)

  it("reads lines, counts of bytes and everything, as Lua's io does", function()
    connection = assert(crown.tcp.connect("127.0.0.1", serve(function(peer)
      peer:write "one\ntwo\nthree and the rest\nno newline"
      peer:close()
    end)))
    assert.equal("one", connection:read "*l")
    assert.equal("two\n", connection:read "*L")
    assert.equal("three", connection:read(5))
    assert.equal(" and the rest\nno newline", connection:read "*a")
    local nothing, _, code = connection:read "*l"
    assert.is_nil(nothing)
    assert.equal("closed", code)
  end)

  it("finds names, and speaks to the first address that answers", function()
    connection = assert(crown.tcp.connect("localhost", serve(echo)))
    connection:write "hello\n"
    assert.equal("hello", connection:read())
  end)

  it("waits, and does not spin, while there is no descriptor for who connects", function()
    local path = tempdir() .. "/app.lua"
    local file = assert(io.open(path, "w"))
    file:write [[
local crown = require "crown"
local held = {}
local listener = crown.tcp.listen("127.0.0.1", 0, function(peer) peer:write "here" peer:close() end)
repeat
  local one = io.open "/dev/null"
  held[#held + 1] = one
until not one
table.remove(held):close()
local client = crown.tcp.connect("127.0.0.1", listener:port()) -- has the last one
local before = os.clock()
crown.sleep(2)
print(os.clock() - before < 0.15 and "idle" or "busy")
for _, one in ipairs(held) do one:close() end
print(client:read(4))
listener:close()]]
    file:close()
    local result = crown.exec({ "/bin/sh", "-c", ("ulimit -n 40; exec %s %s"):format(program, path) }, { timeout = 60 })
    assert.equal("idle\nhere\n", result.stdout, result.stderr)
  end)

  it("stays in step after a read that timed out", function()
    local timed_out
    connection = assert(crown.tcp.connect("127.0.0.1", serve(function(peer)
      peer:write "half "
      eventually(function() return timed_out end)
      peer:write "a line\nnext\n"
      peer:read "*a"
    end)))
    local _, _, code = connection:read("*l", 0.02)
    assert.equal("timeout", code)
    timed_out = true
    assert.equal("half a line", connection:read "*l")
    assert.equal("next", connection:read "*l")
  end)

  it("says who refused", function()
    local port = serve(echo)
    listener:close()
    local nothing, message, code = crown.tcp.connect("127.0.0.1", port)
    assert.is_nil(nothing)
    assert.equal("refused", code)
    assert.matches("127.0.0.1:" .. port, message)
  end)

  it("says which name has no address", function()
    local _, message, code = crown.tcp.connect("no-such-host.invalid", 1, { timeout = 2 })
    assert.is_true(code == "dns" or code == "timeout")
    assert.is_string(message)
  end)

  it("asks no name server for an address, and goes on while one is silent for a name", function()
    local number = require("support.port").free()
    local silent = require("support.candidate").start { program = "/usr/bin/socat", node = "dns",
      args = { "-u", ("UDP-RECV:%d,bind=127.0.0.1,reuseaddr"):format(number), "/dev/null" }, log = require("support.tempdir")() .. "/log" }
    local path = require("support.tempdir")() .. "/app.lua"
    local file = assert(io.open(path, "w"))
    file:write [[
local crown = require "crown"
crown.spawn(function() crown.tcp.connect("name.invalid", 1, { timeout = 3 }) end)
local started = crown.now()
local _, _, code = crown.tcp.connect("127.0.0.1", 1, { timeout = 20 })
local _, _, code6 = crown.tcp.connect("::1", 1, { timeout = 20 })
print(code, code6 == "refused" or code6 ~= "timeout", crown.now() - started < 15)]]
    file:close()
    local result = require "support.run"({ path }, { env = { CROWN_DNS_SERVERS = "127.0.0.1:" .. number } })
    silent:hurt_self "KILL"
    silent:wait(5)
    assert.equal("refused\ttrue\ttrue\n", result.stdout)
  end)

  it("wakes a reader when the connection is closed under it", function()
    connection = assert(crown.tcp.connect("127.0.0.1", serve(function(peer) peer:read "*a" end)))
    local answer = reading "*l"
    connection:close()
    eventually(answer)
    assert.equal("closed", answer())
  end)

  it("allows one reader at a time", function()
    connection = assert(crown.tcp.connect("127.0.0.1", serve(function(peer) peer:read "*a" end)))
    reading "*l"
    assert.has_error(function() connection:read "*l" end)
  end)

  it("wakes a reader when a write has failed", function()
    connection = assert(crown.tcp.connect("127.0.0.1", serve(function(peer) peer:read "*a" crown.sleep(30) end)))
    local answer = reading("*l", 60)
    connection:shutdown()
    assert.equal("closed", select(3, connection:write "x"))
    eventually(answer)
    assert.equal("closed", answer())
    assert.equal("closed", select(3, connection:read("*l", 20))) -- nor does a later one wait
  end)

  -- A server's last words to one who was still speaking: the connection is reset, and they are on this side already.
  local function last_words(options, tls)
    local spoken, gone
    local port = serve(function(peer)
      assert(peer:write "-ERR too many clients\n")
      eventually(function() return spoken end)
      peer:close() -- with bytes that it has not read
      gone = true
    end, options)
    connection = assert(crown.tcp.connect("localhost", port, { tls = tls }))
    assert(connection:write "hello\n")
    spoken = true
    eventually(function() return gone and not connection:write "more\n" end)
    assert.equal("-ERR too many clients", connection:read "*l")
  end

  it("hands over what the other side said before it reset the connection, also after a write has failed", function()
    last_words()
  end)

  it("refuses a port that is none, and a host that C would cut short", function()
    for _, port in ipairs { 0, -1, 65558, 1.5 } do
      assert.error_matches(function() crown.tcp.connect("127.0.0.1", port) end, "a port expected")
    end
    assert.error_matches(function() crown.tcp.connect("127.0.0.1\0.example", 22) end, "NUL")
    assert.error_matches(function() crown.tcp.listen("127.0.0.1", 65558, function() end) end, "a port expected")
  end)

  it("refuses a line that is too long", function()
    connection = assert(crown.tcp.connect("127.0.0.1", serve(function(peer)
      for _ = 1, 20 do
        if not peer:write(("x"):rep(65536)) then return end
      end
      peer:read "*a"
    end)))
    assert.equal("protocol", select(3, connection:read("*l", 60)))
  end)

  describe("with TLS", function()
    local dir

    local function openssl(...)
      local result = assert(crown.exec({ "openssl", ... }, { cwd = dir, timeout = 30 }))
      assert.equal(0, result.code, result.stderr)
    end

    setup(function()
      dir = tempdir()
      openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=spec CA")
      openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj",
        "/CN=localhost")
      local file = io.open(dir .. "/names", "w")
      file:write "subjectAltName=DNS:localhost\n"
      file:close()
      openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
        "server.pem", "-days", "2", "-extfile", "names")
    end)

    local function tls_port()
      return serve(echo, { tls = { cert = dir .. "/server.pem", key = dir .. "/server.key" } })
    end

    it("verifies the certificate and the name, and speaks", function()
      connection = assert(crown.tcp.connect("localhost", tls_port(), { tls = { ca = dir .. "/ca.pem" } }))
      connection:write "secret\n"
      assert.equal("secret", connection:read())
    end)

    it("hangs up at once when nobody waits for it to open any more", function()
      local came, closed
      local port = serve(function(peer) -- it never answers
        came = true
        peer:read("*a", 60)
        closed = true
      end)
      collectgarbage "stop" -- which would close what nobody has
      eventually(function() -- on a busy host the time may be up before it is there
        assert.equal("timeout", select(3, crown.tcp.connect("127.0.0.1", port, { tls = true, timeout = 0.1 })))
        return came
      end, 20)
      local fine, problem = pcall(eventually, function() return closed end, 20)
      collectgarbage "restart"
      assert.is_true(fine, problem)
    end)

    it("hands over what the other side said before it reset the connection, also after a write has failed", function()
      last_words({ tls = { cert = dir .. "/server.pem", key = dir .. "/server.key" } }, { ca = dir .. "/ca.pem" })
    end)

    it("refuses a certificate of an unknown authority", function()
      local _, message, code = crown.tcp.connect("localhost", tls_port(), { tls = true })
      assert.equal("tls", code)
      assert.matches("certificate verify failed", message)
    end)

    it("refuses a certificate for another name", function()
      local _, message, code = crown.tcp.connect("127.0.0.1", tls_port(), { tls = { ca = dir .. "/ca.pem" } })
      assert.equal("tls", code)
      assert.matches("mismatch", message)
    end)

    it("verifies nothing only when told so in so many words", function()
      connection = assert(crown.tcp.connect("127.0.0.1", tls_port(), { tls = { insecure = true } }))
      connection:write "x\n"
      assert.equal("x", connection:read())
    end)

    it("says which file of certificates is missing", function()
      local _, message, code = crown.tcp.connect("localhost", tls_port(), { tls = { ca = dir .. "/none.pem" } })
      assert.equal("tls", code)
      assert.matches("none.pem: No such file or directory", message)
    end)

    it("does not begin after more has come in plain than was read", function()
      connection = assert(crown.tcp.connect("localhost", serve(function(peer)
        peer:write "INFO {}\nPING put there by somebody\n"
        peer:read "*a"
      end)))
      assert.equal("INFO {}", connection:read "*l")
      local fine, message, code = connection:starttls { ca = dir .. "/ca.pem" }
      assert.is_nil(fine)
      -- Where bytes are received one by one, the rest is not here yet: it comes as what begins TLS, and is none.
      local short = os.getenv "CROWN_TORTURE" == "short"
      assert.equal(short and "tls" or "protocol", code)
      if not short then assert.matches("in plain", message) end
      assert.equal(code, select(3, connection:read "*l"))
    end)

    it("gives up when the other side does not speak TLS", function()
      local port = serve(function(peer) peer:write "hello\n" peer:read "*a" end)
      assert.equal("tls", select(3, crown.tcp.connect("localhost", port, { tls = true, timeout = 2 })))
    end)
  end)
end)
