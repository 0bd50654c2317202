-- Servers that repeat what they were told, as Redis does with a command that it does not know: the login's password among it.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"

local PASSWORD = 'PLANTED-pass"word'
local IN_URL = "PLANTED-pass%22word"
local INFO = 'INFO {"server_id":"x","version":"2.10.0","proto":1,"headers":true,"jetstream":true}\r\n'

local function printed(bytes) return (bytes:gsub("[%c']", " ")) end

local function echoing(greet, answer)
  return assert(crown.tcp.listen("127.0.0.1", 0, function(peer)
    if greet then peer:write(greet) end
    for bytes in function() return peer:read "*s" end do peer:write(answer(bytes)) end
    peer:close()
  end))
end

-- It asks for the password in the clear, and refuses it.
local function postgres(bytes)
  if bytes:find("user", 1, true) then return "R\0\0\0\8\0\0\0\3" end
  local text = "SFATAL\0C28000\0Mno login by " .. bytes:gsub("%c", "") .. "\0\0"
  return "E\0\0\0" .. string.char(#text + 4) .. text
end

-- It takes no login, and no question.
local function etcd(bytes)
  local body = crown.json.encode { error = "cannot parse " .. bytes:gsub("%c", " "), code = 3 }
  return ("HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body)
end

describe("a server that repeats what it was told", function()
  local function check(url, words)
    local dir = tempdir()
    local env = { CROWN_DIRECTORY = dir, CROWN_LOG_LEVEL = "debug" }
    local one = Candidate.start { node = "one", log = dir .. "/log", env = env, args = { "--oracle", url, "run", "x", "true" } }
    eventually(function() return one:output():find(words, 1, true) end, 20)
    local said = one:output()
    for _, verb in ipairs { { "status", "--stores" }, { "status", "--json" }, { "info", "--oracle", url },
      { "check", "--store", "--oracle", url } } do
      local result = run(verb, { env = env })
      said = said .. result.stdout .. result.stderr
    end
    one:destroy()
    assert.truthy(said:find("***", 1, true))
    assert.is_nil(said:find("PLANTED", 1, true), said)
  end

  it("shows no password of ours: Redis without its AUTH", function()
    local server = Redis.start { config = 'rename-command AUTH ""\n' }
    check(("redis://:%s@127.0.0.1:%d"):format(IN_URL, server.port), "unknown command")
    server:destroy()
  end)

  for what, case in pairs {
    NATS = { url = "nats://u:%s@127.0.0.1:%d/B", greet = INFO, words = "Unknown",
      answer = function(bytes) return "-ERR 'Unknown " .. printed(bytes) .. "'\r\n" end },
    ["NATS, by a token"] = { url = "nats://%s@127.0.0.1:%d/B", greet = INFO, words = "Unknown",
      answer = function(bytes) return "-ERR 'Unknown " .. printed(bytes) .. "'\r\n" end },
    Postgres = { url = "postgres://u:%s@127.0.0.1:%d/d?sslmode=disable", words = "no login by", answer = postgres },
    etcd = { url = "etcd://u:%s@127.0.0.1:%d", words = "cannot parse", answer = etcd },
  } do
    it("shows no password of ours: " .. what, function()
      local listener = echoing(case.greet, case.answer)
      check(case.url:format(IN_URL, listener:port()), case.words)
      listener:close()
    end)
  end

  it("shows no password where it has it as it is", function()
    assert.equal("a *** and ***", require "crown.text.blotted"("a " .. PASSWORD .. " and PLANTED-pass\\\"word", { PASSWORD }))
  end)

  it("shows no password however often it repeats it", function()
    assert.equal(("***"):rep(100000), require "crown.text.blotted"(("pass"):rep(100000), { "pass" }))
  end)
end)
