-- crown.core.http: a request is answered by a task.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local http = require "crown.core.http"
local run = require "support.http"

local TEXT = "text/plain"

describe("the HTTP server", function()
  local port, held

  setup(function()
    port = assert(http.serve("127.0.0.1", 0, function(path)
      if path == "/fails" then error "on purpose" end
      if path == "/odd" then return 200 end
      if path == "/held" then
        held = true
        while held do crown.sleep(0.002) end
      end
      return 200, TEXT, path .. "\n"
    end))
  end)

  it("lets an answer wait, and others be answered meanwhile", function()
    local answer
    crown.spawn(function() answer = run.ask(port, "GET /held") end)
    eventually(function() return held end)
    assert.equal("/other\n", run.ask(port, "GET /other").body)
    assert.is_nil(answer)
    held = false
    eventually(function() return answer end)
    assert.same({ 200, "/held\n" }, { answer.status, answer.body })
  end)

  it("is not confused by a client that goes away before its answer", function()
    local connection = assert(crown.tcp.connect("127.0.0.1", port))
    connection:write "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"
    held = false
    eventually(function() return held end)
    connection:close()
    held = false
    assert.equal("/other\n", run.ask(port, "GET /other").body)
  end)

  it("answers 500 for a function that fails or does not answer", function()
    assert.equal(500, run.ask(port, "GET /fails").status)
    assert.equal(500, run.ask(port, "GET /odd").status)
  end)

  it("ends with the term that opened it", function()
    local of_term, over
    local election = crown.elect { name = "http-server-spec", oracle = { "memory", path = "http", ttl = 30 }, handlers = {
      won = function() of_term = assert(http.serve("127.0.0.1", 0, function() crown.sleep(60) end)) end,
      lost = function() over = true end } }
    eventually(function() return of_term end)
    local waiting = assert(crown.tcp.connect("127.0.0.1", of_term))
    waiting:write "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    crown.sleep(0.02) -- it waits for its answer
    election:stop()
    eventually(function() return over end)
    assert.is_nil((waiting:read "*l"))
    assert.is_nil((crown.tcp.connect("127.0.0.1", of_term)))
    eventually(function() return election.handle:finished() end)
  end)
end)
