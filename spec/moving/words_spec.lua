-- What the reference documents promise in passing, and no other spec shows.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local tempdir = require "support.tempdir"
local WrongClock = require "support.wrong_clock"
local write_file = require "support.write_file"

describe("what the documents say in passing", function()
  local started

  before_each(function() started = {} end)
  after_each(function()
    for i = #started, 1, -1 do started[i]:destroy() end
  end)

  local function start(options)
    options.log = tempdir() .. "/log"
    options.node = options.node or "one"
    started[#started + 1] = Candidate.start(options)
    return started[#started]
  end

  local function with(server)
    started[#started + 1] = server
    return server
  end

  it("lets no host's clock say when a lease ends", function()
    local server = with(Postgres.start())
    local oracle = server.url .. "?ttl=2"
    local one = start { args = { "run", "--oracle", oracle, "x", "sleep", "60" } }
    eventually(function() return #one:pids "child" == 1 end, 20)
    local two = start { args = { "run", "--oracle", oracle, "x", "sleep", "60" }, node = "two",
      env = WrongClock.new(3600):environment() }
    two:follows()
    local ends, seen = {}, 0
    eventually(function()
      local row = server:sql("SELECT holder, expires_at::text AS ends FROM crown_lease_v1 WHERE lock_name = 'x'")[1]
      assert.matches("^one @", row.holder)
      assert.equal(0, #two:pids "child")
      if not ends[row.ends] then ends[row.ends], seen = true, seen + 1 end
      return seen > 4 -- two TTLs and more
    end, 30)
    one:signal "TERM"
    eventually(function() return #two:pids "child" == 1 end, 20)
  end)

  it("gives an oracle of one's own the name of its election, for each of several in one app", function()
    local dir = tempdir()
    write_file(dir .. "/named.lua", [[
      local Named = {}
      function Named.init(opts) return { key = opts.crown_name, text = opts.text } end
      function Named.claim(state) io.stderr:write(state.key, " ", state.text, " claimed\n") return true, 10, { ttl = 30 } end
      function Named.refresh() return true, 10, { ttl = 30 } end
      return Named]])
    write_file(dir .. "/app.lua", [[
      for _, name in ipairs { "mailer", "reports" } do
        require("crown").elect { name = name, oracle = { "named", text = "to " .. name } }
      end]])
    local one = start { args = { dir .. "/app.lua" } }
    for _, name in ipairs { "mailer", "reports" } do
      eventually(function() return one:output():find(("%s to %s claimed"):format(name, name), 1, true) end, 20)
    end
  end)

  -- How many of a process's sockets are connected to a port of this host.
  local function connections(pid, port)
    local inodes, count = {}, 0
    for line in io.lines(("/proc/%s/net/tcp"):format(pid)) do
      local remote, state, inode = line:match "^%s*%d+: %x+:%x+ %x+:(%x+) (%x+) %S+ %S+ %S+ +%d+ +%d+ (%d+)"
      if remote and tonumber(remote, 16) == port and state == "01" then inodes["socket:[" .. inode .. "]"] = true end
    end
    local pipe = assert(io.popen(("readlink /proc/%s/fd/*"):format(pid)))
    for link in pipe:lines() do count = count + (inodes[link] and 1 or 0) end
    pipe:close()
    return count
  end

  it("has many elections of a process on one connection to NATS", function()
    local server = with(Nats.start())
    local dir = tempdir()
    write_file(dir .. "/app.lua", [[
      local crown = require "crown"
      for i = 1, 5 do
        crown.elect { name = "e" .. i, handlers = { won = function(term) io.stderr:write(term.name, " is led\n") end } }
      end]])
    local one = start { args = { "--oracle", server.url .. "/MANY?ttl=4&amnesia_wait=2", dir .. "/app.lua" } }
    for i = 1, 5 do
      eventually(function() return one:output():find(("e%d is led"):format(i), 1, true) end, 60)
    end
    assert.equal(1, connections(one:pids("runtime")[1], server.port))
  end)
end)
