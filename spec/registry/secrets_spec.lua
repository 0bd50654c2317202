-- What must stay a secret shows nowhere, whatever goes wrong: secrets are planted, and all that can be read is searched.
local crown = require "crown"
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"

local APP = [[
local function planted(name) return (assert(io.open(arg[1] .. "/" .. name)):read "*l") end
require("crown.registry").open { name = "planted", url = planted(arg[3] or "url"), listen = "127.0.0.1:" .. arg[2],
  secret = planted "secret", ttl = 2, snapshot_timeout = 1, replicate_timeout = 0.5, child = { "sleep", "1000" } }
]]
local SECRETS = { secret = "PLANTEDdieGeheimeLosung", other = "PLANTEDeineAndereLosung", password = "PLANTEDpasswort77" }

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

describe("what is secret about a registry", function()
  local dir, server, members

  -- A directory for each: what it knows, and what it says.
  local function start(node, secret, url, port)
    local own = dir .. "/" .. node
    assert(os.execute("mkdir " .. own) == 0)
    write(own .. "/app.lua", APP)
    write(own .. "/secret", secret)
    write(own .. "/url", url)
    local member = Candidate.start { node = node, log = own .. "/log", args = { own .. "/app.lua", own, tostring(port or 0) },
      env = { CROWN_LOG_LEVEL = "debug", CROWN_DIRECTORY = own } }
    member.own = own
    members[#members + 1] = member
    return member
  end

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)
  before_each(function() dir, members = tempdir(), {} end)
  after_each(function()
    for _, member in ipairs(members) do member:destroy() end
  end)

  local function search(what, text)
    for _, planted in pairs(SECRETS) do
      if text:find(planted, 1, true) then error(("a planted secret shows in %s:\n%s"):format(what, text), 0) end
    end
  end

  -- What anybody on the host sees of its processes, what its children were given, and what its own user is told.
  local function look_at(member)
    for _, kind in ipairs { "supervise", "runtime", "keeper", "warden", "child" } do
      for _, pid in ipairs(member:pids(kind)) do
        for _, file in ipairs { "cmdline", "comm" } do
          search(file .. " of the " .. kind, read_file(("/proc/%d/%s"):format(pid, file)) or "")
        end
        if kind == "child" then search("its child's environment", read_file(("/proc/%d/environ"):format(pid)) or "") end
      end
    end
    local env = { CROWN_DIRECTORY = member.own }
    for _, words in ipairs { { "status" }, { "status", "--json" } } do
      local result = run(words, { env = env })
      search(table.concat(words, " "), result.stdout .. result.stderr)
    end
    search("its log", member:output())
    local files = assert(crown.exec({ "sh", "-c", "cat $(find . -type f ! -name url ! -name secret ! -name log) /dev/null" },
      { cwd = member.own }))
    search("its files", files.stdout)
  end

  local function has_said(member, words)
    eventually(function()
      return member:output():find(words, 1, true) or error(("%s does not say '%s':\n%s"):format(member.node, words, member:output()))
    end, 30)
  end

  local function leads(member) return member:output():find("leadership.claimed", 1, true) end

  it("shows nowhere, whatever goes wrong", function()
    local url = server.url:gsub("://([^@/]*)@", function(user) return "://" .. user:gsub(":.*", "") .. ":" .. SECRETS.password .. "@" end)
    assert.truthy(url:find(SECRETS.password, 1, true))
    local a = start("a", SECRETS.secret, url)
    eventually(function() return leads(a) end, 30)
    local b, stranger = start("b", SECRETS.secret, url), start("stranger", SECRETS.other, url)
    has_said(a, "the secret")
    has_said(stranger, "the secret")
    has_said(a, "link_cut")
    for _, member in ipairs { a, b, stranger } do look_at(member) end

    local lost = start("lost", SECRETS.secret, (url:gsub(":%d+/", ":1/"))) -- nobody is there
    has_said(lost, "oracle.error")
    local denied = start("denied", SECRETS.secret, (url:gsub("://[^:]*:", "://nobody:"))) -- no such user
    has_said(denied, "oracle.error")
    local wrong = start("wrong", SECRETS.secret, (url:gsub("(/[^/]*)$", "/nowhere")))
    has_said(wrong, "oracle.error")
    local busy = start("busy", SECRETS.secret, url, url:match ":(%d+)/")
    has_said(busy, "in use")
    look_at(busy)
    busy:destroy() -- or it takes the port while the server is down

    server:down "immediate"
    has_said(a, "oracle.error")
    server:up()
    a:hurt("KILL", "runtime")
    has_said(a, "runtime.restarted")
    for _, member in ipairs(members) do look_at(member) end
    b:signal "TERM"
    assert.equal(0, b:wait(30))
    for _, member in ipairs(members) do search("its log", member:output()) end
  end)

  it("shows nowhere on a command line, nor in what is said of it", function()
    local url = server.url:gsub("^postgres", "registry+postgres")
      :gsub("://([^@/]*)@", function(user) return "://" .. user:gsub(":.*", "") .. ":" .. SECRETS.password .. "@" end)
    local oracle = ("%s?listen=127.0.0.1:0&secret=%s"):format(url, SECRETS.secret)
    local one = Candidate.start { node = "line", log = dir .. "/log", env = { CROWN_DIRECTORY = dir, CROWN_LOG_LEVEL = "debug" },
      args = { "--oracle", oracle, "run", "planted-line", "sleep", "1000" } }
    one.own = dir
    members[1] = one
    eventually(function() return leads(one) end, 30)
    look_at(one)
    for _, words in ipairs { { "info", "--oracle", oracle }, { "evict", "--force", "--oracle", oracle, "nothing" },
      { "info", "--oracle", (oracle:gsub(":%d+/", ":1/")) }, { "info", "--oracle", oracle .. "&replicas=none" },
      { "info", "--oracle", oracle .. "&secrt=" .. SECRETS.other } } do
      local result = run(words)
      search(table.concat(words, " ", 1, 1), result.stdout .. result.stderr)
    end
  end)

  it("shows in no message about options", function()
    local path, refused = dir .. "/app.lua", 0
    for _, option in ipairs { [[secret = { "%s" }]], [[secret = "%s", tls = "%s"]], [[secret = "%s", replicas = 0]],
      [[secret = "%s", listen = 1]], [[secrets = "%s"]], [[secret = "%s", url = "%s"]], [[secret = "%s", url = "postgres://x:%s@y:z"]] } do
      write(path, ([[require("crown.registry").open { name = "x", url = "postgres://x/y", listen = "127.0.0.1:0", %s }]])
        :format((option:gsub("%%s", SECRETS.secret))))
      local result = run { "check", path }
      search("what is said of " .. option, result.stdout .. result.stderr)
      refused = refused + (result.code == 2 and 1 or 0)
    end
    assert.is_true(refused >= 5, refused .. " were refused")
  end)
end)
