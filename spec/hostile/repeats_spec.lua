-- Servers that repeat what they were told, as Redis does with a command that it does not know: the login's password among it.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"

local PASSWORD = 'PLANTED-pass"word'
local IN_URL = "PLANTED-pass%22word"
local POSTGRES = "postgres://u:%s@127.0.0.1:%d/d?sslmode=disable"
local INFO = 'INFO {"server_id":"x","version":"2.10.0","proto":1,"headers":true,"jetstream":true}\r\n'

local function printed(bytes) return (bytes:gsub("[%c']", " ")) end

local function echoing(greet, answer)
  return assert(crown.tcp.listen("127.0.0.1", 0, function(peer)
    if greet then peer:write(greet) end
    for bytes in function() return peer:read "*s" end do peer:write(answer(bytes)) end
    peer:close()
  end))
end

local function message(kind, body) return ("%s\0\0%s%s%s"):format(kind, string.char(math.floor((#body + 4) / 256)),
  string.char((#body + 4) % 256), body) end

local ASK = message("R", "\0\0\0\3") -- for the password in the clear

local function refusal(words, bytes)
  return message("E", "SFATAL\0C28000\0M" .. words .. bytes:gsub("%c", "") .. "\0\0")
end

local function postgres(bytes)
  if bytes:find("user\0", 1, true) then return ASK end
  return refusal("no login by ", bytes)
end

-- As long as what is shown of it: that ends in the middle of the password.
local function postgres_at_length(bytes)
  if bytes:find("user\0", 1, true) then return ASK end
  return refusal(("no login by "):rep(14) .. ("x"):rep(13), bytes)
end

-- It lets everybody in, and answers each question with an error.
local function postgres_later()
  local told
  local function parameter(name, value) return message("S", name .. "\0" .. value .. "\0") end
  local ready = message("Z", "I")
  return function(bytes)
    if bytes:find("user\0", 1, true) then return ASK end
    if bytes:find "^p" then
      told = bytes
      return message("R", "\0\0\0\0") .. parameter("server_version", "16.0") .. parameter("in_hot_standby", "off")
        .. parameter("default_transaction_read_only", "off") .. ready
    end
    local _, questions = bytes:gsub("S%z%z%z\4", "")
    return (refusal("nothing for ", told) .. ready):rep(questions)
  end
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
    assert.truthy(said:find("***", 1, true), said)
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
    Postgres = { url = POSTGRES, words = "no login by", answer = postgres },
    ["Postgres, where the message is cut"] = { url = POSTGRES, words = "no login by", answer = postgres_at_length },
    ["Postgres, after the login"] = { url = POSTGRES, words = "nothing for", answer = postgres_later() },
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
