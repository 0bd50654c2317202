-- Who writes the word of the system that he comes from is told ours, wherever he writes it.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function says(words)
  local result = run(words)
  assert.equal(2, result.code, result.stderr)
  return result.stderr
end

local function path_of(text)
  local path = tempdir() .. "/app.lua"
  write_file(path, ("require('crown').elect { name = 'x', %s }\n"):format(text))
  return path
end

local function app(text) return says { "check", path_of(text) } end
local function url(text) return says { "check", "run", "--oracle", text, "x", "true" } end
local function line(text)
  local words = {}
  for word in text:gmatch "%S+" do words[#words + 1] = word end
  return says(words)
end

local function has(text, expected)
  assert.is_truthy(text:find(expected, 1, true), text)
end

local APP = {
  ["child_spec = { 'true' }"] = "did you mean 'child'?",
  ["childSpec = { 'true' }"] = "did you mean 'child'?",
  ["command = { 'true' }"] = "did you mean 'child'?",
  ["follower_child_spec = { 'true' }"] = "did you mean 'follower_child'?",
  ["claimDelay = 5"] = "did you mean 'claim_delay'?",
  ["monitor_timeout = 5"] = "a follower knows when the lease ends",
  ["max_restarts = 0"] = "restart = { max = … }",
  ["identity = 'me'"] = "did you mean 'node'?",
  ["child = 'sleep 3'"] = "child must be a table, not a string: { 'sleep', '3' }\n",
  ["child = 'sleep 3 && true'"] = [[child must be a table, not a string: { 'sh', '-c', "sleep 3 && true" }]],
  ["lock = '10'"] = "oracle = { …, lock = … }",
  ["on_won = print"] = "handlers = { won = … }",
  ["OnStartedLeading = print"] = "handlers = { won = … }",
  ["handlers = { on_won = print }"] = "did you mean 'won'?",
  ["handlers = { OnLost = print }"] = "did you mean 'lost'?",
  ["handlers = { OnNewLeader = print }"] = "did you mean 'leader'?",
  ["oracle = { 'postgres_lease', repo = 'MyApp.Repo' }"] = "the database is the URL",
  ["oracle = { 'postgres_lease', lock_name = 'x' }"] = "did you mean 'lock'?",
  ["oracle = { 'http_lease', base_url = 'http://127.0.0.1' }"] = "did you mean 'url'?",
  ["oracle = { 'http_lease', refresh_delay = 5 }"] = "did you mean 'refresh'?",
  ["oracle = { 'oban_peer', interval = 30 }"] = "did you mean 'ttl'?",
  ["oracle = { 'nats_kv', leader_election_ttl = 60 }"] = "did you mean 'ttl'?",
  ["oracle = { 'postgres_advisory', objid = 10 }"] = "did you mean 'key'?",
  ["oracle = { 'postgres_advisory', lock = 10 }"] = "give key",
  ["oracle = { 'PostgresLease' }"] = "did you mean 'postgres_lease'?",
  ["oracle = { 'Crown.Oracles.ObanPeer' }"] = "did you mean 'oban_peer'?",
  ["oracle = 'postgres'"] = "did you mean 'postgres_lease'?",
  ["oracle = { 'postgres_lease', url = 'postgres://h/d', lease_duration = 15 }"] = "did you mean 'ttl'?",
  ["backoff = 'TwentySec'"] = "did you mean 'twenty_sec'?",
  ["call_timeout = 5000"] = "5000: seconds, not milliseconds?",
  ["oracle = { 'postgres_lease', timeout = 5000 }"] = "5000: seconds, not milliseconds?",
  ["oracle = { 'postgres_lease', ttl = '30s' }"] = "in seconds: 30",
}

-- Options in another place than theirs, and slips of the pen: what was meant, and where the list is.
local PLACES = {
  ["ttl = 15"] = "(it is the oracle's: oracle = { …, ttl = … }, or ?ttl=… in its URL); docs/app.md has the list",
  ["refresh = 5"] = "it is the oracle's",
  ["restart = 'permanent'"] = "child = { …, restart = { policy = … } }",
  ["strategy = 'one_for_one'"] = "child = { …, restart = { policy = … } }",
  ["shutdown = 5"] = "did you mean 'stop_timeout'?",
  ["won = print"] = "handlers = { won = … }",
  ["stdout = 'null'"] = "it is the child's: child = { …, stdout = … }",
  ["child = { command = { 'true' }, policy = 'finish' }"] = "child = { …, restart = { policy = … } }",
  ["child = { command = { 'true' }, cool_down = 5 }"] = "it is the election's: crown.elect { …, cool_down = … }",
  ["child = { command = { 'true' }, restart = { isolation = 'tree' } }"] = "it is the child's",
  ["child = { 'true', restart = { max = 1 } }"] = "child = { command = { … }, restart = … }",
  ["oracle = { 'redis', stop_timeout = 5 }"] = "it is the election's",
  ["oracle = { 'redis', tll = 5 }"] = "(did you mean 'ttl'?); the page of its store (docs/oracles.md) has the list",
  ["oracle = { 'choria' }"] = "(did you mean 'nats_kv'?); docs/oracles.md has the list",
  ["oracle = { 'jetstream' }"] = "did you mean 'nats_kv'?",
  ["handlers = { wun = print }"] = "(did you mean 'won'?); there are init, won, lost, leader, campaign",
  ["claim_dleay = 5"] = "(did you mean 'claim_delay'?); docs/app.md has the list",
}

local MEMBERS = {
  ["crown.elct {}"] = "app.lua:1: crown has no 'elct' (did you mean 'elect'?); docs/app.md has the list",
  ["crown.redsi.connect()"] = "did you mean 'redis'?",
  ["crown.on '[:crown, :leadership, :claimed]'"] = "(did you mean 'leadership.claimed'?); docs/events.md has the list",
  ["crown.on('leadership.clamied', print)"] = "(did you mean 'leadership.claimed'?); docs/events.md has the list",
  ["crown.on 'leadership.claimed'"] = "crown.on('leadership.claimed', function(event) … end)",
}

local URLS = {
  ["postgres://h/d?repo=MyApp.Repo"] = "the database is the URL",
  ["postgres://h/d?lock_name=x"] = "did you mean 'lock'?",
  ["postgres://h/d?duratoin=30"] = "unknown option 'duratoin' (did you mean 'duration'?)",
  ["postgres+advisory://h/d?kye=10"] = "did you mean 'key'?",
  ["oban+postgres://h/d?obanname=Oban"] = "did you mean 'oban_name'?",
  ["postgres://h/d?sslmod=require"] = "did you mean 'sslmode'?",
  ["postgres://h/d?ttl=1m"] = "in seconds: 60",
  ["oban+postgres://h/d?refresh_delay=15"] = "did you mean 'refresh'?",
  ["oban+postgres://h/d?timeout=5000"] = "5000: seconds, not milliseconds?",
  ["postgres+advisory://h/d?objid=10"] = "did you mean 'key'?",
  ["postgres+advisory://h/d?lock=10"] = "give key",
  ["nats://h/B?leader_election_replicas=3"] = "did you mean 'replicas'?",
  ["nats://h/B?backoff=TwentySec"] = "did you mean 'twenty_sec'?",
  ["nats://h/B?refersh=3"] = "did you mean 'refresh'?",
  ["http://h/locks?base_url=http://h"] = "did you mean 'url'?",
  ["etcd://h?session-ttl=5"] = "did you mean 'ttl'?",
  ["choria://h/B"] = "did you mean 'nats'?",
  ["oban://h/d"] = "did you mean 'oban+postgres'?",
  ["advisory://h/d"] = "did you mean 'postgres+advisory'?",
  ["pg://h/d"] = "did you mean 'postgres'?",
  ["kubernetes://h"] = "'k8s'",
}

local LINES = {
  ["election run x true"] = "crown-lua run",
  ["election info"] = "crown-lua run, file, info or evict",
  ["elect x y"] = "did you mean 'run'?",
  ["lock x true"] = "did you mean 'run'?",
  ["watch"] = "crown-lua info --watch",
  ["info --bucket CHORIA_LEADER_ELECTION"] = "nats://HOST/BUCKET",
  ["run --bucket B x true"] = "nats://HOST/BUCKET",
  ["run x --bucket B true"] = "nats://HOST/BUCKET",
  ["evict --bucket B x"] = "nats://HOST/BUCKET",
  ["run --identity me x true"] = "did you mean '--node'?",
  ["run -name me x true"] = "did you mean '--node'?",
  ["run --nonblock x true"] = "did you mean '--once'?",
  ["run -n x true"] = "--once",
  ["run -w 3 x true"] = "did you mean '--wait'?",
  ["run --timeout 3 x true"] = "did you mean '--wait'?",
  ["run -try x true"] = "--once, with --wait",
  ["run -c true"] = "-- sh -c",
  ["run -o x true"] = "whole tree is dead",
  ["run -E 3 x true"] = "exit code is 1",
  ["run -child-exit-code x true"] = "always the command's",
  ["run --lease-duration 15 x true"] = "did you mean '--ttl'?",
  ["run --endpoints h x true"] = "did you mean '--oracle'?",
  ["run --restart always x true"] = "did you mean 'permanent'?",
  ["run --restart on-failure x true"] = "did you mean 'transient'?",
  ["run --restart x x true"] = "'x' is not one of permanent, transient, temporary\n",
  ["run --ttl 15s x true"] = "in seconds: 15",
  ["run --wait 1m x true"] = "in seconds: 60",
  ["file CRON /tmp/cron.host"] = "FILE stands first",
  ["kv get"] = "crown-lua info shows who leads) nor a file; crown-lua help lists the commands",
  ["run reports.lua"] = "an app needs no verb: crown-lua reports.lua",
  ["run ./worker"] = "crown-lua run NAME -- ./worker",
  ["-x"] = "'-x' (flock's -x: an election has one leader, always, so there is no such option); crown-lua help lists them",
  ["run -q x true"] = "'-q' (options have no short forms here: --quiet?); crown-lua help run lists them",
  ["run -z x true"] = "unknown option '-z'; crown-lua help run lists them",
  ["run --onc x true"] = "(did you mean '--once'?); crown-lua help run lists them",
}

describe("a name that nobody knows", function()
  for given, meant in pairs(PLACES) do
    it("is answered by where it belongs: " .. given, function() has(app(given), meant) end)
  end

  for given, meant in pairs(MEMBERS) do
    it("is answered by the nearest one: " .. given, function()
      local path = tempdir() .. "/app.lua"
      write_file(path, "local crown = require 'crown' " .. given .. "\n")
      has(says { path }, meant)
    end)
  end

  it("that begins with two underlines is left to who looks for it in any table", function()
    local path = tempdir() .. "/app.lua"
    write_file(path, "print(require('crown').__name)\n")
    assert.equal("nil\n", run({ path }).stdout)
  end)
end)

describe("a program that is taken for an app", function()
  local FILES = {
    script = { "#!/bin/sh\nexit 0\n", "is no app in Lua; to run it on one machine: crown-lua run NAME -- " },
    binary = { "\127ELF\2\1\1\0\0", "is no app in Lua; to run it on one machine: crown-lua run NAME -- " },
    words = { "exit 0\n", "is it a program? crown-lua run NAME -- " },
  }
  for name, about in pairs(FILES) do
    it("is answered by the verb that was forgotten: " .. name, function()
      local path = tempdir() .. "/" .. name
      write_file(path, about[1])
      has(says { path }, about[2] .. path)
    end)
  end

  it("is none where its first line names Lua, or it is compiled Lua", function()
    local path = tempdir() .. "/app"
    write_file(path, "#!/usr/bin/env crown-lua\nprint 'runs'\n")
    assert.equal("runs\n", run({ path }).stdout)
    local file = assert(io.open(path, "wb"))
    file:write(string.dump(loadstring "print 'runs, too'"))
    file:close()
    assert.equal("runs, too\n", run({ path }).stdout)
  end)

  it("is an app with a slip where it is called so", function()
    local path = tempdir() .. "/app.lua"
    write_file(path, "exit 0\n")
    assert.is_nil(says({ path }):find("run NAME", 1, true))
  end)
end)

describe("a word of another system's", function()
  for where, list in pairs { app = { app, APP }, ["a URL"] = { url, URLS }, ["the command line"] = { line, LINES } } do
    for given, ours in pairs(list[2]) do
      it(("is answered by ours in %s: %s"):format(where, given), function() has(list[1](given), ours) end)
    end
  end

  it("says nothing of milliseconds where it is no time", function()
    assert.is_nil(app("child = { command = { 'true' }, restart = { max = 5000 } }"):find("milliseconds", 1, true))
  end)

  it("is left alone where it is libpq's to judge", function()
    assert.matches("postgres_lease", run({ "check", "run", "--oracle", "postgres://h/d?dbname=x&application_name=y&ssl=true",
      "x", "true" }).stdout)
  end)
end)

describe("a time that is possible, and yet looks like milliseconds", function()
  local function warned(words)
    local result = run(words)
    assert.equal(0, result.code, result.stderr)
    return select(2, result.stderr:gsub("seconds, not milliseconds%?", "")), result.stderr
  end

  it("is warned of once, in an app, in a URL and on the command line", function()
    assert.equal(1, (warned { "check", path_of "claim_delay = 5000" }))
    assert.equal(1, (warned { "check", path_of "oracle = { 'postgres_lease', url = 'postgres://h/d', duration = 30000 }" }))
    assert.equal(1, (warned { "check", "run", "--oracle", "postgres://h/d?duration=30000", "x", "true" }))
    assert.equal(1, (warned { "check", "run", "--stop-timeout", "5000", "--ttl", "86400", "--oracle", "redis://db", "x", "true" }))
    local _, text = warned { "check", path_of "claim_delay = 5000" }
    has(text, "elect 'x': claim_delay 5000: seconds, not milliseconds?")
  end)

  it("is not warned of where it is a time that people mean", function()
    for _, seconds in ipairs { 30, 999, 1200, 1800, 3600, 7200, 86400 } do
      assert.equal(0, (warned { "check", path_of("claim_delay = " .. seconds) }))
    end
  end)

  it("is warned of where an oracle of one's own returns it", function()
    local dir = tempdir()
    write_file(dir .. "/mine.lua", "return { init = function() return {} end, claim = function() return true, 5000 end, "
      .. "refresh = function() return true, 5000 end }")
    write_file(dir .. "/app.lua", [[
local election
election = require("crown").elect { name = "x", oracle = { "mine" }, handlers = { won = function() election:stop() end } }]])
    local count, text = warned { dir .. "/app.lua" }
    assert.equal(1, count, text)
    has(text, "claim returned a refresh delay of 5000")
  end)
end)
