-- The HTTP endpoint's server, as strangers use it.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local program = require "support.program"
local promise = require "crown.core.promise"
local server = require "crown.core.http"
local tempdir = require "support.tempdir"

describe("the HTTP server", function()
  local port = assert(server.serve(nil, 0, function(path) return 200, "text/plain", "you asked for " .. path end))

  local function ask(headers, body)
    local connection = assert(crown.tcp.connect("127.0.0.1", port))
    assert(connection:write("GET /x HTTP/1.1\r\n" .. headers .. "\r\n" .. (body or "")))
    local line = connection:read "*l"
    connection:close()
    return tonumber((line or ""):match "^HTTP/1.1 (%d+)")
  end

  it("answers to an address, localhost and this host's name", function()
    for _, host in ipairs { "127.0.0.1", "127.0.0.1:8080", "[::1]:80", "localhost", "LocalHost:80" } do
      assert.equal(200, ask("Host: " .. host .. "\r\n"), host)
    end
  end)

  it("refuses a foreign Host on loopback, as a page of another site would send it", function()
    for _, host in ipairs { "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "" } do
      assert.equal(403, ask("Host: " .. host .. "\r\n"), host)
    end
  end)

  it("refuses a request with two lengths", function()
    assert.equal(400, ask("Host: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"))
  end)

  it("ends a request that takes too long, however busily it comes", function()
    local connection = assert(crown.tcp.connect("127.0.0.1", port))
    local ended
    crown.spawn(function() ended = select(3, connection:read("*l", 60)) end)
    local started = crown.now()
    while not ended and crown.now() - started < 30 do
      connection:write "G"
      crown.sleep(0.3)
    end
    connection:close()
    assert.equal("closed", ended)
  end)

  it("answers again after there were no descriptors left for those who came", function()
    local dir = tempdir()
    local file = assert(io.open(dir .. "/app.lua", "w"))
    file:write [[
local crown = require "crown"
print("PORT " .. require("crown.core.http").serve(nil, 0, function() return 200, "text/plain", "well" end))
crown.elect { name = "x", oracle = { "memory" }, handlers = { won = function() end } } -- the program runs on
]]
    file:close()
    local app = Candidate.start { program = "/bin/sh", node = "app", log = dir .. "/log",
      args = { "-c", ("ulimit -n 40; exec %s %s/app.lua"):format(program, dir) } }
    finally(function() app:destroy() end)
    local there = eventually(function() return tonumber(app:output():match "PORT (%d+)") end, 20)
    local open = {}
    for i = 1, 31 do open[i] = assert(crown.tcp.connect("127.0.0.1", there)) end
    crown.sleep(0.5) -- they are accepted, until there are no more descriptors
    for _, connection in ipairs(open) do connection:close() end
    eventually(function()
      local answer = crown.http.request { url = ("http://127.0.0.1:%d/"):format(there), timeout = 1 }
      return answer and answer.status == 200
    end, 30)
  end)

  -- Connections of the same address that never end a request: each sends a byte now and then, and is made anew when it is ended.
  local function crowd(there, count, request)
    local over, ended = false, 0
    for _ = 1, count do
      crown.spawn(function()
        while not over do
          local connection = crown.tcp.connect("127.0.0.1", there)
          if connection then
            connection:write(request)
            repeat until over or select(3, connection:read("*s", 0.2)) ~= "timeout" or not connection:write "X"
            connection:close()
          end
          crown.sleep(0.05)
          ended = ended + 1
        end
      end)
    end
    return function() over = true end, function() return ended end
  end

  it("answers whoever shares an address with a hundred that never end their requests", function()
    local there = assert(server.serve(nil, 0, function() return 200, "text/plain", "well" end))
    local disperse, ended = crowd(there, 100, "GET /slow HTTP/1.1\r\nX-")
    finally(disperse)
    eventually(function() return ended() > 0 end, 20) -- they have to make room
    for _ = 1, 20 do
      local answer = assert(crown.http.request { url = ("http://127.0.0.1:%d/"):format(there), timeout = 20 })
      assert.equal(200, answer.status)
    end
  end)

  it("answers whoever shares an address with a hundred that do not read their answers", function()
    local large, listed = ("x"):rep(4e6), {}
    local there = assert(server.serve(nil, 0, function(path) return 200, "text/plain", path == "/large" and large or "small" end))
    for i = 1, 100 do
      listed[i] = assert(crown.tcp.connect("127.0.0.1", there))
      listed[i]:write "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    end
    for _ = 1, 20 do
      local answer = assert(crown.http.request { url = ("http://127.0.0.1:%d/"):format(there), timeout = 20 })
      assert.equal("small", answer.body)
    end
    for _, connection in ipairs(listed) do connection:close() end
  end)

  it("ends no request that waits for its answer, whoever comes meanwhile", function()
    local asked, go_on = 0, promise()
    local there = assert(server.serve(nil, 0, function(path)
      asked = asked + 1
      if path == "/waits" then go_on:wait(20) end
      return 200, "text/plain", "well"
    end))
    local waiting = assert(crown.tcp.connect("127.0.0.1", there))
    waiting:write "GET /waits HTTP/1.1\r\nHost: localhost\r\n\r\n"
    eventually(function() return asked == 1 end, 5)
    local open, ended = {}, 0
    for i = 1, 50 do
      open[i] = assert(crown.tcp.connect("127.0.0.1", there))
      crown.spawn(function()
        if select(3, open[i]:read("*l", 60)) == "closed" then ended = ended + 1 end
      end)
    end
    eventually(function() return ended == 50 - 31 end, 5)
    go_on:resolve(true)
    assert.truthy((waiting:read "*l"):find("^HTTP/1.1 200"))
    waiting:close()
    for _, connection in ipairs(open) do connection:close() end
  end)

  -- As `nc -N` does.
  it("answers whoever closes his half of the connection behind the request, also where the answer waits", function()
    local asked, go_on = 0, promise()
    local there = assert(server.serve(nil, 0, function(path)
      asked = asked + 1
      if path == "/waits" then go_on:wait(20) end
      return 200, "text/plain", "well"
    end))
    local listed = {}
    for i, path in ipairs { "/", "/waits" } do
      listed[i] = assert(crown.tcp.connect("127.0.0.1", there))
      listed[i]:write(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"):format(path))
      listed[i]:shutdown()
      eventually(function() return asked == i end, 20)
    end
    crown.sleep(0.1) -- for the server to see that no more comes
    go_on:resolve(true)
    for _, connection in ipairs(listed) do
      assert.matches("^HTTP/1.1 200.*well$", (connection:read("*a", 20)))
      connection:close()
    end
  end)

  it("leaves others their turn when one address connects too often", function()
    local open, refused = {}, 0
    for i = 1, 40 do
      open[i] = assert(crown.tcp.connect("127.0.0.1", port))
      crown.spawn(function()
        if select(3, open[i]:read("*l", 60)) == "closed" then refused = refused + 1 end
      end)
    end
    eventually(function() return refused >= 8 end, 5)
    assert.equal(8, refused)
    for _, connection in ipairs(open) do connection:close() end
    eventually(function() return ask "Host: localhost\r\n" == 200 end, 5)
  end)
end)
