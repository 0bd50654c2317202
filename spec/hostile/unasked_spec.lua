-- What a server says on an idle connection, without having been asked: it must not be taken for the answer to the next question.
local authority = require "support.authority"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "crown.http"

-- Reads a request. @return its path, nil at the end of the connection
local function path_of(connection)
  local path
  for line in function() return connection:read("*l", 30) end do
    path = path or line:match "^%u+ (%S+)"
    if line == "\r" then return path end
  end
end

local FRAMES = {
  ["with a length"] = function(body) return ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body) end,
  ["in chunks"] = function(body)
    return ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"):format(#body, body)
  end,
  ["without a body"] = function(body) return ("HTTP/1.1 204 OK\r\nPath: %s\r\n\r\n"):format(body) end,
}

describe("an HTTP server that answers once more than it was asked", function()
  local UNASKED = "HTTP/1.1 200 OK\r\nPath: /unasked\r\nContent-Length: 8\r\n\r\n/unasked"
  local listener

  after_each(function() listener:close() end)

  -- @return what the questions were answered, and how many connections there were
  local function ask_three(frame, when, tls)
    local count, said = 0, {}
    listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      count = count + 1
      for path in function() return path_of(connection) end do
        local answer = frame(path)
        connection:write(when == "at once" and answer .. UNASKED or answer)
        if when == "in the next record" then connection:write(UNASKED) end
        if when == "later" then
          crown.sleep(0.02)
          connection:write(UNASKED)
        end
        said[path] = true
      end
      connection:close()
    end, { tls = tls and { cert = tls .. "/s.crt", key = tls .. "/s.key" } }))
    local answers = {}
    for i = 1, 3 do
      local at = ("%s://127.0.0.1:%d/%d"):format(tls and "https" or "http", listener:port(), i)
      local answer = assert(http.request { url = at, ca = tls and tls .. "/ca.crt", timeout = 20 })
      answers[i] = answer.body ~= "" and answer.body or answer.headers.path
      eventually(function() return said["/" .. i] end, 20)
    end
    return answers, count
  end

  for title, frame in pairs(FRAMES) do
    for _, when in ipairs { "at once", "in the next record", "later" } do
      for _, tls in ipairs { false, true } do
        it(("is heard for what it was asked: %s, %s%s"):format(title, when, tls and ", over TLS" or ""), function()
          local answers, count = ask_three(frame, when, tls and authority())
          assert.same({ "/1", "/2", "/3" }, answers)
          if when == "later" then assert.equal(3, count) end -- else libcurl may have dropped it with the answer
        end)
      end
    end
    it("is asked on one connection where it does not: " .. title, function()
      for _, tls in ipairs { false, true } do
        local answers, count = ask_three(frame, "never", tls and authority())
        assert.same({ "/1", "/2", "/3" }, answers)
        assert.equal(1, count)
        listener:close()
      end
    end)
  end
end)

describe("a Redis server that answers once more than it was asked", function()
  local Connection = require "crown.redis.connection"
  local listener, peer

  after_each(function() listener:close() end)

  local function connect()
    listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      peer = connection
      local asked = 0
      for line in function() return connection:read("*l", 30) end do
        if line:find "GET" then
          asked = asked + 1
          connection:write((":%d\r\n"):format(asked))
        end
      end
    end))
    return assert(Connection.open({}, { host = "127.0.0.1", port = listener:port() }, 5))
  end

  for what, bytes in pairs { ["an answer"] = ":4711\r\n", ["half an answer"] = ":47", ["two answers"] = ":4711\r\n:4712\r\n" } do
    it("is not believed, and left: " .. what, function()
      local connection = connect()
      assert.equal(1, connection:call(5, "GET", "x"))
      peer:write(bytes) -- it is there, and the client has had no turn to read it
      local answer, problem = connection:call(5, "GET", "x")
      assert.is_nil(answer)
      assert.matches("nobody asked for", problem)
      assert.truthy(connection.closed)
    end)
  end

  it("is not believed where half an answer was read before", function()
    local connection = connect()
    assert.equal(1, connection:call(5, "GET", "x"))
    peer:write ":47"
    crown.sleep(0.05)
    peer:write "11\r\n"
    assert.is_nil((connection:call(5, "GET", "x")))
  end)

  it("is asked on and on where it does not", function()
    local connection = connect()
    for i = 1, 5 do assert.equal(i, connection:call(5, "GET", "x")) end
  end)
end)
