-- What a NATS server refuses, or why it is silent: each with the server, the cause and the next step, in every verb and in the log.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local json = require("crown").json
local Nats = require "support.nats"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Wire = require "support.nats_wire"

describe("a NATS server", function()
  local server

  setup(function() server = Nats.start() end)
  teardown(function() server:destroy() end)

  local function leader(url, name)
    local one = Candidate.start { args = { "run", "--oracle", url, name, "sleep", "1000" }, node = "one", log = tempdir() .. "/log",
      env = { CROWN_DIRECTORY = tempdir() } }
    eventually(function() return one:pids("child")[1] end, 30)
    return one
  end

  local function make(bucket, more)
    local config = { name = "KV_" .. bucket, subjects = { ("$KV.%s.>"):format(bucket) }, max_msgs_per_subject = 1, discard = "new",
      max_age = 2e9, duplicate_window = 2e9, storage = "file", num_replicas = 1, allow_rollup_hdrs = true, deny_delete = true }
    for key, value in pairs(more or {}) do config[key] = value end
    return config
  end

  local function ask(verb, config)
    Wire.open(server.port):ask(("$JS.API.STREAM.%s.%s"):format(verb, config.name), nil, json.encode(config))
  end

  it("whose bucket suits no election: run and check name it, and what to do", function()
    ask("CREATE", make("HISTORY", { max_msgs_per_subject = 5 }))
    local url = server.url .. "/HISTORY?trust_empty=true"
    local tried = run { "run", "--once", "--wait", "1", "--oracle", url, "x", "true" }
    local checked = run { "check", "--store", "--oracle", url, "run", "x", "true" }
    assert.equal(3, tried.code)
    local words = "nats at 127.0.0.1:%d+[^ ]*: the bucket HISTORY keeps history[^;]*; mend it"
    assert.matches(words, tried.stderr)
    assert.matches("PROBLEM +" .. words, checked.stdout)
  end)

  it("whose bucket has a TTL near the refresh: run names both", function()
    ask("CREATE", make "NEAR")
    local tried = run { "run", "--once", "--wait", "1", "--oracle", server.url .. "/NEAR?refresh=1.9&trust_empty=true", "x", "true" }
    assert.matches("nats at [^ ]+: refresh=1.9 is too near the TTL of the bucket NEAR, which is 2 s: give at most 1.8", tried.stderr)
  end)

  it("that dies: the end of the term names the cause, and not only a silence", function()
    local one = leader(server.url .. "/DIES?ttl=2&trust_empty=true", "x")
    finally(function() one:destroy() end)
    server:down()
    local said = eventually(function() return one:output():match "no longer leading[^\n]*" end, 20)
    assert.matches("nats at 127.0.0.1:%d+: Connection refused; is the server running", said)
    server:up()
  end)
end)
