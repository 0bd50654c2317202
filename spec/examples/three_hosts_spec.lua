-- The three hosts of docs/how-to/systemd.md: the command line of the unit with the settings of the page, on network namespaces with
-- a Redis between them. One works at a time; when its cable is pulled, its worker is dead before another one begins.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Network = require "support.network"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local NAMES = { "a", "b", "c" }
local TTL = 2
local as_root = Network.is_possible() and it or pending

-- Each tick has the machine's uptime, which is one clock for all namespaces, and goes on while the shell is not stopped.
local WORKER = [[
#!/bin/sh
trap 'exit 0' INT TERM
while read up rest < /proc/uptime; do echo "$up $CROWN_NODE $CROWN_EPOCH" >> "$1"; sleep 0.03; done
]]

-- What stands in the unit, as systemd would start it.
local function unit_words(command)
  local line = read_file("tools/systemd/crown-run@.service"):match "\nExecStart=@PREFIX@/bin/crown%-lua ([^\n]*)"
  local words = {}
  for word in line:gsub("%%i", "reports"):gsub("%$CROWN_COMMAND", command):gmatch "%S+" do words[#words + 1] = word end
  return words
end

local function settings_of_the_page()
  local section = read_file("docs/how-to/systemd.md"):match "\n## Three hosts\n(.-)\n## "
  local found = {}
  for name, value in section:match("\n```text\n(.-)\n```"):gmatch "(CROWN_[A-Z]+)=([^\n]+)" do found[name] = value end
  return found
end

describe("three hosts with the unit and the settings of the page", function()
  local network, server
  local hosts = {}

  after_each(function()
    for _, one in pairs(hosts) do one:destroy() end
    if server then server:destroy() end
    if network then network:destroy() end
    hosts, server, network = {}, nil, nil
  end)

  local function ticks(file)
    local list = {}
    for up, node, epoch in (read_file(file) or ""):gmatch "([%d.]+) (%a+) (%d+)\n" do
      list[#list + 1] = { at = tonumber(up), node = node, epoch = tonumber(epoch) }
    end
    return list
  end

  local function works_now(file, but)
    local list = ticks(file)
    local last = list[#list]
    return last and last.node ~= but and last.node
  end

  as_root("run the worker on one, and after its cable is pulled on another one, never on both", function()
    network = Network.new(NAMES)
    server = Redis.start { config = "bind 0.0.0.0\nprotected-mode no\nuser crown on >secret ~* &* +@all\n" }
    local dir = tempdir()
    local worker, file = write_file(dir .. "/worker", WORKER), dir .. "/ticks"
    os.execute("chmod 755 " .. worker)
    local settings = settings_of_the_page()
    local oracle, replaced = settings.CROWN_ORACLE:gsub("@db.example/0", ("@%s:%d/0?ttl=%d&trust_empty=true")
      :format(network.here, server.port, TTL))
    assert.equal(1, replaced, settings.CROWN_ORACLE)
    local command = settings.CROWN_COMMAND:gsub("/usr/local/bin/report%-worker.*", worker .. " " .. file)
    for _, name in ipairs(NAMES) do
      local launcher, words = network:launch(name)
      words[#words + 1] = program
      for _, word in ipairs(unit_words(command)) do words[#words + 1] = word end
      hosts[name] = Candidate.start { program = launcher, args = words, node = name, log = ("%s/%s.log"):format(dir, name),
        env = { CROWN_ORACLE = oracle, CROWN_HTTP = settings.CROWN_HTTP, CROWN_DIRECTORY = ("%s/%s"):format(dir, name) } }
    end

    local first = eventually(function() return works_now(file) end, 30)
    network:cut_port(first, server.port)
    local second = eventually(function() return works_now(file, first) end, 10 * TTL)
    network:heal()
    eventually(function() return hosts[first]:output():find "following 'reports'; " end, 20)
    hosts[second]:signal "TERM"
    eventually(function() return works_now(file, second) end, 10)

    local seen, last, lasted = {}, nil, 0
    for _, tick in ipairs(ticks(file)) do
      if tick.epoch ~= last then
        assert.is_nil(seen[tick.epoch], "a worker goes on behind the next one")
        assert.is_true(tick.epoch > (last or 0) and tick.at >= lasted)
        seen[tick.epoch] = true
      end
      last, lasted = tick.epoch, tick.at
    end
  end)
end)
