-- An option that would have no effect is refused, with a hint, before anything is claimed.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function refused(args, text)
  local result = run(args)
  assert.equal(2, result.code, result.stdout .. result.stderr)
  assert.is_truthy(result.stderr:find(text, 1, true), result.stderr)
  assert.equal(1, select(2, result.stderr:gsub("\n", "")))
end

describe("an option in vain is refused", function()
  for oracle, text in pairs {
    ["redis://h?ca=/x"] = "ca has no effect without TLS: rediss://",
    ["redis://h?insecure=true"] = "insecure has no effect without TLS: rediss://",
    ["redis+cluster://h?server_name=x"] = "server_name has no effect without TLS: rediss+cluster://",
    ["etcd://h?cert=/x"] = "cert has no effect without TLS: etcds://",
    ["http://h/x?ca=/x"] = "ca has no effect without TLS: https://",
    ["redis://h?sentinel_user=a"] = "sentinel_user has no effect here: it is for redis+sentinel://",
    ["redis://h/2?db=3"] = "names two databases",
    ["redis://h?ttl=5&duration=9"] = "duration has no effect beside ttl",
    ["postgres://h/x?ttl=5&duration=9"] = "duration has no effect beside ttl",
    ["postgres+advisory://h/x?check=5&refresh=7"] = "refresh has no effect beside check",
    ["postgres+advisory://h/x?lock=a&key=7"] = "lock has no effect beside key",
    ["oban+postgres://h/x?check=4&refresh=5"] = "refresh has no effect beside check",
    ["http://h/x?bearer=a&user=b"] = "bearer has no effect beside user",
    ["http://h/x?password=b"] = "password has no effect without user",
    ["http://u:p@h/x?user=z"] = "user has no effect beside the user in the URL",
    ["http://u:p@h/x?bearer=z"] = "bearer has no effect beside the user in the URL",
    ["nats://h/x?bucket=y"] = "the bucket x of the URL has no effect beside bucket = y",
    ["file:/tmp/x?dir=/tmp/y"] = "the directory /tmp/x of the URL has no effect beside dir = /tmp/y",
  } do
    it("in an oracle's URL: " .. oracle, function() refused({ "check", "--oracle", oracle, "run", "x", "true" }, text) end)
  end

  for options, text in pairs {
    ["stop_timeout = 2, child = { command = { 'true' }, stop_timeout = 1 }"] = "stop_timeout has no effect beside the election's",
    ["follower_child = { command = { 'true' }, stop_timeout = 1 }"] = "stop_timeout has no effect here: the election's",
    ["child = { 'true' }, follower_child = { command = { 'true' }, restart = { max = 1 } }"] = "restart has no effect here: the child's",
  } do
    it("of children: " .. options, function()
      local app = write_file(tempdir() .. "/app.lua", ("require('crown').elect { name = 'x', oracle = 'memory:', %s }"):format(options))
      refused({ "check", app }, text)
    end)
  end

  it("an oracle of an unknown scheme, also where every election of the app names its own", function()
    local app = write_file(tempdir() .. "/app.lua", "require('crown').elect { name = 'x', oracle = 'memory:' }")
    local text = "no oracle has the scheme 'fil' (did you mean 'file'?)"
    refused({ "--oracle", "fil:/x", app }, text)
    refused({ "check", "--oracle", "fil:/x", app }, text)
    local result = run({ "check", app }, { env = { CROWN_ORACLE = "fil:/x" } })
    assert.equal(2, result.code)
    assert.is_truthy(result.stderr:find(text, 1, true))
  end)

  it("an oracle that is no module, also where every election of the app names its own", function()
    local dir = tempdir()
    local app = write_file(dir .. "/app.lua", "require('crown').elect { name = 'x', oracle = 'memory:' }")
    local text = "oracle 'reids' is neither one of crown-lua's own nor a module that require finds (did you mean 'redis'?)"
    refused({ "--oracle", "reids", app }, text)
    refused({ "check", "--oracle", "reids", app }, text)
    for _, known in ipairs { "redis", "crown.oracles.redis", "postgres_lease", "memory", "mine" } do
      write_file(dir .. "/mine.lua", "return {}")
      local result = run({ "check", "--oracle", known, app }, { env = { LUA_PATH = dir .. "/?.lua;;" } })
      assert.equal(0, result.code, result.stderr)
    end
  end)

  for oracle, text in pairs {
    ["/srv/locks"] = "(did you mean 'file:/srv/locks'?)",
    ["db.example/app"] = "(a URL begins with its scheme, such as postgres://)",
    ["127.0.0.1:5432"] = "(a URL begins with its scheme, such as postgres://)",
    ["reids"] = "(did you mean 'redis'?)",
  } do
    it("an oracle that lacks its scheme: " .. oracle, function() refused({ "run", "--oracle", oracle, "x", "true" }, text) end)
  end

  for what, words in pairs {
    ["--ttl 7 has no effect beside duration=9 in the oracle's URL"] = { "--ttl", "7", "--oracle", "redis://h?duration=9" },
    ["--ttl 7 has no effect beside ttl=9 in the oracle's URL"] = { "--ttl", "7", "--oracle", "postgres://h/x?ttl=9" },
    ["--ttl has no effect: with the oracle 'file' there is no lease that could run out"] = { "--ttl", "7" },
    ["--ttl has no effect: with the oracle 'oban_peer' the store says how long its lease lasts"] = { "--ttl", "7", "--oracle",
      "oban+postgres://h/x" },
  } do
    it("a TTL: " .. what, function()
      for _, verb in ipairs { "check", "run" } do
        local args = { unpack(words) }
        table.insert(args, 1, verb)
        for _, word in ipairs(verb == "check" and { "run", "x", "true" } or { "x", "true" }) do args[#args + 1] = word end
        refused(args, what)
      end
    end)
  end

  it("a lease of an election where there is none", function()
    local path = tempdir() .. "/app.lua"
    for oracle, text in pairs { ["file:"] = "there is no lease that could run out",
      ["oban+postgres://h/x"] = "the store says how long its lease lasts" } do
      write_file(path, ('require("crown").elect { name = "x", lease = 3, oracle = "%s" }'):format(oracle))
      refused({ "check", path }, "elect 'x': lease has no effect: with the oracle '")
      refused({ "check", path }, text)
    end
  end)

  it("but not where it is right: a TTL that is the same, or an app's own beside --ttl", function()
    local path = tempdir() .. "/app.lua"
    write_file(path, [[require("crown").elect { name = "x", oracle = { "redis", url = "redis://h", ttl = 9 } }]])
    for _, args in ipairs { { "check", "--ttl", "9", "--oracle", "redis://h?ttl=9", "run", "x", "true" },
      { "check", "--ttl", "7", path } } do
      local result = run(args)
      assert.equal(0, result.code, result.stderr)
      assert.matches("TTL +9 s", result.stdout)
    end
  end)
end)
