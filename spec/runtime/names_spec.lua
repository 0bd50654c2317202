-- Name servers that misbehave: what a program on a host with such a one sees. As root, in namespaces of its own.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Names = require "support.names"
local Network = require "support.network"
local tempdir = require "support.tempdir"

if not Network.is_possible() then return end

-- Prints the longest time that the loop stood still while `what` went on.
local function watched(what)
  return ([[
local crown = require "crown"
local longest, done = 0, false
local function own() -- without what others had the processor for
  local file = io.open "/proc/self/schedstat"
  local others = file:read "*a":match "^%%d+ (%%d+)"
  file:close()
  return crown.now() - others / 1e9
end
crown.spawn(function()
  local last = own()
  while not done do
    crown.sleep(0.01)
    longest = math.max(longest, own() - last)
    last = own()
  end
end)
%s
crown.sleep(0.05)
done = true
print(("stood still for %%.1f s"):format(longest))
]]):format(what)
end

local ASK = [[
local answer, problem, code = crown.http.request { url = "http://store.test:%d/", timeout = %g }
print(answer and answer.status or nil, code, problem)
]]

local SERVE = [[
local listener = crown.tcp.listen("127.0.0.1", 0, function(connection)
  for line in function() return connection:read "*l" end do
    if line == "\r" then connection:write "HTTP/1.1 204 X\r\nConnection: close\r\n\r\n" connection:close() end
  end
end)
local port = listener:port()
local function ask(timeout)
  local answer, problem, code = crown.http.request { url = ("http://store.test:%d/"):format(port), timeout = timeout or 5 }
  return answer and answer.status or code, problem
end
]]

describe("HTTP by name", function()
  for how, code in pairs { silent = "timeout", slow = "closed", wrong = "timeout", empty = "dns", ["answers ::1"] = "closed" } do
    it("never waits on the loop for a name server that is or says: " .. how, function()
      local server = how == "slow" and "slow 127.0.0.1" or how
      local result = Names.run(watched(ASK:format(1, 2)), { server = server })
      assert.matches("nil\t" .. code, result.stdout)
      assert.matches("stood still for 0.[0-4] s", result.stdout)
    end)
  end

  it("costs an election beside it nothing while a name server is silent", function()
    local result = Names.run([[
local crown = require "crown"
local terms = 0
crown.elect { name = "healthy", oracle = { "memory" }, handlers = { won = function(term)
  terms = terms + 1
  while term:valid() do crown.sleep(1) end
end } }
crown.elect { name = "lost", oracle = { "etcd", url = "etcd://store.test:1" } }
crown.spawn(function()
  crown.sleep(6)
  print("terms", terms)
  os.exit(0)
end)]], { server = "silent" })
    assert.matches("terms\t1", result.stdout .. result.stderr)
    assert.is_nil(result.stderr:find("silent for", 1, true), result.stderr)
  end)

  it("connects to what the name server says", function()
    local result = Names.run(watched(SERVE .. "print(ask()) listener:close()"), { server = "answers 127.0.0.1" })
    assert.matches("^204", result.stdout)
  end)

  it("finds a proxy by its name", function()
    local result = Names.run([[local crown = require "crown"
crown.tcp.listen("127.0.0.1", 3128, function(connection)
  connection:write("HTTP/1.1 200 " .. connection:read "*l" .. "\r\nContent-Length: 0\r\n\r\n")
end)
local answer, problem = crown.http.request { url = "http://far.test/", timeout = 5 }
print(answer and answer.status or problem)
os.exit(0)]], { server = "answers 127.0.0.1", env = { http_proxy = "http://proxy.test:3128" } })
    assert.equal("200\n", result.stdout)
    assert.matches("proxy.test", result.asked)
  end)

  it("goes on with what it knows when the name servers have gone", function()
    local result = Names.run([[local crown = require "crown"
]] .. SERVE .. [[
print((ask()))
crown.exec { "/bin/sh", "-c", "kill $(pidof luajit)" }
crown.http.request { url = "http://store.test:1/" } -- nobody is there: the name is looked up anew
print((ask()))
listener:close()]], { server = "answers 127.0.0.1" })
    assert.equal("204\n204\n", result.stdout)
  end)
end)

describe("a connection by name", function()
  it("is found as soon as resolv.conf names a server that answers", function()
    local result = Names.run([[
local crown = require "crown"
local listener = crown.tcp.listen("127.0.0.1", 0, function() end)
print(select(3, crown.tcp.connect("store.test", listener:port(), { timeout = 6 })))
local file = io.open("/etc/resolv.conf", "w")
file:write "nameserver 127.0.0.1\n"
file:close()
print(crown.tcp.connect("store.test", listener:port(), { timeout = 6 }) ~= nil)
listener:close()]], { server = "answers 127.0.0.1", resolv = "nameserver 127.0.0.9\n" })
    assert.equal("dns\ntrue\n", result.stdout)
  end)

  it("shows that its name is being looked up, also where libpq connects", function()
    local result = Names.run([[
local conditions = require "crown.link.conditions"
local crown = require "crown"
crown.spawn(function() crown.redis.connect("redis://store.test", { timeout = 3 }) end)
crown.spawn(function() crown.postgres.connect("postgres://store.test/x", { timeout = 3 }) end)
local function resolving()
  local list = conditions.all()
  return #list == 2 and list[1].state == "resolving" and list[2].state == "resolving"
end
print(require("crown.testing").eventually(resolving, 2) or "no")
os.exit(0)]], { server = "silent" })
    assert.equal("true\n", result.stdout, result.stderr)
  end)

  -- A client gives up, and asks again: the answer that comes too late for one try is there for the next.
  for what, world in pairs { ["is slower than the client"] = { server = "slow 127.0.0.1" },
    ["is the second one, after one that is dead"] = { server = "answers 127.0.0.1",
      resolv = "nameserver 127.0.0.9\nnameserver 127.0.0.1\n",
      sh = "luajit spec/support/name_server.lua 127.0.0.9:53 silent >/dev/null &\n" } } do
    it("is found though the name server " .. what, function()
      local result = Names.run([[
local crown = require "crown"
local listener = crown.tcp.listen("127.0.0.1", 0, function() end)
local found
for _ = 1, 30 do
  found = crown.tcp.connect("store.test", listener:port(), { timeout = 0.5 })
  if found then break end
end
print(found ~= nil)
listener:close()]], world)
      assert.equal("true\n", result.stdout, result.stderr)
    end)
  end

  it("does not wait long for addresses that are dead", function()
    local result = Names.run([[
local crown = require "crown"
local listener = crown.tcp.listen("192.0.2.9", 0, function() end)
local connection, problem = crown.tcp.connect("store.test", listener:port(), { timeout = 2 })
print(connection and connection:peer():match "^[^:]*" or problem)
listener:close()]], { server = "answers 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.9 192.0.2.4 192.0.2.5",
      sh = "ip link add dead type veth peer name end; ip addr add 192.0.2.9/24 dev dead; ip link set dead up; ip link set end up\n" })
    assert.equal("192.0.2.9\n", result.stdout, result.stderr)
  end)
end)

describe("a connection whose way is cut", function()
  it("is noticed in the time that it was told, though nobody writes", function()
    local network = Network.new { "a" }
    finally(function() network:destroy() end)
    local peer
    local listener = assert(crown.tcp.listen(network.here, 0, function(connection)
      peer = connection
      connection:read("*l", 60)
    end))
    local path = tempdir() .. "/app.lua"
    local file = assert(io.open(path, "w"))
    file:write(([[
local crown = require "crown"
local connection = assert(crown.tcp.connect("%s", %d, { silence = 2 }))
print(select(3, connection:read("*l", 40)))]]):format(network.here, listener:port()))
    file:close()
    local launcher, words = network:launch "a"
    words[#words + 1], words[#words + 2] = os.getenv "CROWN_LUA" or "./crown-lua", path
    local result
    crown.spawn(function() result = crown.exec({ launcher, unpack(words) }, { timeout = 60 }) end)
    eventually(function() return peer end, 10)
    network:cut_port("a", listener:port())
    eventually(function() return result end, 15)
    listener:close()
    assert.not_equal("timeout\n", result.stdout)
  end)
end)
