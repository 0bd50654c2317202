-- MySQL notifies nobody, so a follower waits for a lock that the leader's runtime holds (crown.mysql.bell). Followers here look by
-- themselves only once in `TTL` seconds: what comes sooner they have heard.
local Candidate = require "support.candidate"
local core = require "crown.core"
local crown = require "crown"
local driver = require "crown.stores.mysql"
local eventually = require("crown.testing").eventually
local Mysql = require "support.mysql"
local program = require "support.program"
local tempdir = require "support.tempdir"

local TTL, SOON = 3600, 20

local serial = 0

describe("a follower in MySQL", function()
  local server, members, name

  setup(function() server = Mysql.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial, members = serial + 1, {}
    name = "bell-" .. serial
  end)
  after_each(function()
    for _, member in ipairs(members) do member:destroy() end
  end)

  local function url()
    return ("%s?ttl=%d&refresh=2&trust_empty=true&amnesia_wait=0&retry=%d"):format(server.url, TTL, TTL)
  end

  local function candidate(node)
    local member = Candidate.start { node = node, log = tempdir() .. "/log",
      args = { "run", "--oracle", url(), name, "--", "/bin/sleep", "1000" } }
    members[#members + 1] = member
    return member
  end

  local function leads(member) return member:pids("child")[1] ~= nil end

  -- Whether some sessions wait for a lock. A statement that was sent has begun when the list shows it.
  local function waiting()
    return tonumber(server:sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST "
      .. "WHERE INFO LIKE 'SELECT IS_USED_LOCK(%GET_LOCK%'")[1][1])
  end

  -- The connection that holds the lock of a leader's session, if any.
  local function holder()
    local row = server:sql("SELECT IS_USED_LOCK(CONCAT('crown-', MD5(CONCAT('crown.crown_register.', name)))) AS holder "
      .. "FROM crown.crown_register WHERE name LIKE '@%' HAVING holder IS NOT NULL")[1]
    return row and row[1]
  end

  local function leader_and_followers(count)
    local one, others = candidate "one", {}
    eventually(function() return leads(one) end, SOON)
    for i = 1, count do others[i] = candidate("follower-" .. i) end
    eventually(function() return waiting() == count and holder() end, SOON)
    return one, others
  end

  local function one_leads(list)
    return eventually(function()
      for _, member in ipairs(list) do
        if leads(member) then return member end
      end
    end, SOON)
  end

  it("hears that its leader ends in order, and so do those beside it", function()
    local one, others = leader_and_followers(2)
    one:signal "TERM"
    local next_one = one_leads(others)
    eventually(function() return waiting() == 1 end, SOON) -- for the new leader's lock
    next_one:signal "TERM"
    one_leads { others[1] == next_one and others[2] or others[1] }
  end)

  it("hears it also when all connections were ended before", function()
    local one, others = leader_and_followers(1)
    local before = holder()
    server:end_sessions()
    eventually(function() return waiting() == 1 and holder() and holder() ~= before end, SOON)
    one:signal "TERM"
    one_leads(others)
  end)

  it("hears that its leader was evicted, whose connection goes on", function()
    local one, others = leader_and_followers(1)
    local evicted = assert(crown.exec({ program, "evict", "--oracle", url(), "--force", name }, { timeout = 60 }))
    assert.equal(0, evicted.code, evicted.stderr)
    one_leads(others)
    assert.is_nil(one.code)
  end)

  it("asks no more than about once a second while nobody holds the lock", function()
    local function open()
      return assert(driver.open { url = server.url, timeout = 5, options = { table = "crown_register" } })
    end
    local function asked() return tonumber(server:sql("SHOW GLOBAL STATUS LIKE 'Com_select'")[1][2]) end
    local one, two = open(), open()
    local memory = eventually(function() return one:look { name } end, SOON)[name].memory
    assert(one:swap { { name = name, version = false, memory = memory,
      text = [[{"v":1,"serial":1,"epoch":1,"by":"@of-an-older-version-30","at":1,"nonce":"n"}]] } }[1])
    two:hear(function() end)
    assert(two:look { name })
    local before, began = asked(), core.now()
    eventually(function() return asked() > before + 3 end, SOON)
    assert.is_true(core.now() - began > 1)
    for _, store in ipairs { one, two } do store:close() end
  end)
end)
