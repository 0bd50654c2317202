-- A pipe where a file is expected: whoever opens it waits for somebody to write to it.
local crown = require "crown"
local http = require "crown.http"
local nats_login = require "crown.nats.login"
local tempdir = require "support.tempdir"

describe("a pipe in place of a file", function()
  local pipe, listener

  before_each(function()
    pipe = tempdir() .. "/pipe"
    assert.equal(0, crown.exec({ "/usr/bin/mkfifo", pipe }).code)
    listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection) connection:read("*s", 20) end))
  end)
  after_each(function() listener:close() end)

  local function is_refused(found, problem)
    assert.is_nil(found)
    assert.matches("is no plain file", problem)
  end

  for _, what in ipairs { "ca", "cert", "key" } do
    it("is refused by connections: " .. what, function()
      is_refused(crown.tcp.connect("127.0.0.1", listener:port(), { timeout = 20, tls = { [what] = pipe } }))
    end)

    it("is refused by HTTP: " .. what, function()
      is_refused(http.request { url = "https://127.0.0.1:" .. listener:port(), timeout = 20, [what] = pipe })
    end)
  end

  it("is refused by listeners", function()
    is_refused(crown.tcp.listen("127.0.0.1", 0, function() end, { tls = { cert = pipe, key = pipe } }))
  end)

  it("is refused by NATS' credentials", function()
    for _, option in ipairs { "credentials", "nkey" } do
      is_refused(nats_login.words({ [option] = pipe }, {}))
    end
  end)
end)
