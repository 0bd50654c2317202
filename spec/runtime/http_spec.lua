local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "crown.http"

describe("crown.http", function()
  local listener, seen

  before_each(function()
    seen = {}
    listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      for line in function() return connection:read("*l", 10) end do
        seen[#seen + 1] = line
        if line == "\r" then connection:write "HTTP/1.1 200 X\r\nConnection: close\r\n\r\nfirst\n" end
      end
    end))
  end)
  after_each(function() listener:close() end)

  local function url()
    return ("http://127.0.0.1:%d/"):format(listener:port())
  end

  it("sends no second request that a method might hold", function()
    local answer, problem, code = http.request { url = url(), method = "GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET" }
    assert.is_nil(answer)
    assert.equal("usage", code)
    assert.matches("method", problem)
    assert.same({}, seen)
  end)

  it("speaks HTTP only", function()
    for _, other in ipairs { "ftp", "gopher", "dict" } do
      local answer, problem = http.request { url = (url():gsub("^http", other)) }
      assert.is_nil(answer)
      assert.matches("[Uu]nsupported protocol", problem)
    end
    assert.same({}, seen)
  end)

  it("refuses what C would cut short", function()
    assert.error_matches(function() http.request { url = url() .. "\0/etc" } end, "NUL")
  end)

  -- For an election by HTTP the number alone would be a grant.
  it("takes no answer whose header breaks off", function()
    for _, said in ipairs { "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" } do
      local other = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
        connection:read("*l", 10)
        connection:write(said)
        connection:shutdown()
      end))
      local answer, _, code = http.request { url = ("http://127.0.0.1:%d/"):format(other:port()), timeout = 20 }
      other:close()
      assert.same({ nil, "closed" }, { answer, code })
    end
  end)

  it("leaves its connection to questions where an answer goes on: that has one of its own", function()
    local count = 0
    local other = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      count = count + 1
      for line in function() return connection:read("*l", 10) end do
        if line == "\r" then connection:write "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nfirst\n" end
      end
    end))
    finally(function() other:close() end)
    local there = ("http://127.0.0.1:%d/"):format(other:port())
    assert(http.request { url = there })
    local stream = assert(http.stream { url = there })
    assert.equal("first", stream:line())
    assert.equal(2, count)
    assert(http.request { url = there })
    assert.equal(2, count)
    stream:close()
  end)

  it("leaves its connection to no program that is started meanwhile", function()
    local function inherited()
      local pipe = io.popen "ls -l /proc/self/fd"
      local text = pipe:read "*a"
      pipe:close()
      return select(2, text:gsub("socket:", ""))
    end
    http.request { url = url() } -- libcurl opens what wakes it up, which reaches nobody
    local before, going_on = inherited(), crown.tcp.listen("127.0.0.1", 0, function(connection)
      connection:read("*l", 10)
      connection:write "HTTP/1.1 200 X\r\n\r\nfirst\n"
      connection:read("*a", 10)
    end)
    local stream = assert(http.stream { url = ("http://127.0.0.1:%d/"):format(going_on:port()) })
    assert.equal("first", (stream:line(10)))
    assert.equal(before, inherited())
    stream:close()
    going_on:close()
  end)

  it("hands the lines of an answer to one task at a time", function()
    local stream = assert(http.stream { url = url() })
    assert.equal("first", stream:line())
    local second
    crown.spawn(function() second = { stream:line(20) } end)
    crown.sleep(0.01)
    assert.error_matches(function() stream:line() end, "another task waits for a line")
    stream:close()
    eventually(function() return second end)
    assert.equal("closed", second[3])
  end)
end)
