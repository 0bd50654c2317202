-- The kinds of Redis servers that an election can be on, and the ways to them.
local authority = require "support.authority"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local redis_lease = require "support.redis_lease"
local Subscriber = require "crown.redis.subscriber"
local tempdir = require "support.tempdir"

-- What a user needs, but not publish: a claim fails when the record is written already, and is then given back.
local RIGHTS = { "~*", "&*", "+@all", "-publish" }
local ASKED_MOST = 100 -- calls of the script by three candidates in two seconds: claims that wait for nothing are thousands

local candidate = redis_lease.candidate

describe("a Redis server", function()
  local server
  local start, destroy = own_servers(Redis.start)

  before_each(redis_lease.name_anew)
  after_each(destroy)

  local function refused(url, pattern)
    local verdict = candidate(url, "one"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches(pattern, verdict[2])
    assert.is_nil(verdict[2]:find "secret")
  end

  local function leads(url, options)
    local verdict
    eventually(function()
      verdict = candidate(url, "one", options):claim()
      return verdict[1] == "granted"
    end, 10)
    return verdict
  end

  it("asks for its password, of the default user and of others", function()
    server = start { config = "requirepass secret\nuser joe on >other ~* &* +@all\n" }
    local at = "@127.0.0.1:" .. server.port
    leads("redis://:secret" .. at, { ttl = 0.5 })
    redis_lease.name_anew()
    leads("redis://joe:other" .. at, { ttl = 0.5 })
    refused("redis://:secret-not" .. at, "WRONGPASS")
    refused("redis://127.0.0.1:" .. server.port, "NOAUTH")
  end)

  it("is reached by a UNIX socket, and in another database", function()
    local path = tempdir() .. "/redis.sock"
    server = start { config = "unixsocket " .. path .. "\n" }
    leads("redis+unix://" .. path .. "?db=3", { ttl = 0.5 })
    assert.equal("1", tostring(server:call("SELECT", "3") and server:call("EXISTS", redis_lease.key())))
  end)

  it("is reached by TLS, with a certificate that is checked", function()
    local dir = authority()
    server = start { tls = true, scheme = "rediss", query = ("?ca=%s/ca.crt&cert=%s/s.crt&key=%s/s.key"):format(dir, dir, dir),
      config = ("tls-cert-file %s/s.crt\ntls-key-file %s/s.key\ntls-ca-cert-file %s/ca.crt\ntls-auth-clients yes\n")
        :format(dir, dir, dir) }
    leads(server.url, { ttl = 0.5 })
    refused(server.url:gsub("ca=[^&]*", "ca=" .. dir .. "/other.crt"), "certificate")
    refused(server.url:gsub("127.0.0.1", "localhost"):gsub("$", "&server_name=elsewhere"), "certificate")
    refused(("rediss://127.0.0.1:%d?ca=%s/ca.crt"):format(server.port, dir), "certificate")
  end)

  it("is refused when it is a replica", function()
    server = start()
    local replica = start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    refused(replica.url, "is a replica")
  end)

  it("with min_replicas counts an answer when enough replicas have it", function()
    server = start()
    local replica = start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, 20)
    local one = candidate(server.url, "one", { min_replicas = 1, timeout = 3 })
    eventually(function() return one:claim()[1] == "granted" end)
    replica:down()
    local verdict = one:refresh()
    assert.equal("unknown", verdict[1])
    assert.matches("only 0 of 1 replicas have it", verdict[2])
  end)

  -- Each hears of what the others give back.
  it("that answers each claim with an error is not asked without end", function()
    server = start()
    server:call("ACL", "SETUSER", "joe", "on", ">other", unpack(RIGHTS))
    local url = ("redis://joe:other@127.0.0.1:%d?trust_empty=true&ttl=3"):format(server.port)
    local all = {}
    for i = 1, 3 do
      local node = "node" .. i
      all[i] = Candidate.start { args = { "run", "--oracle", url, "work", "--", "sleep", "60" }, node = node,
        log = server.dir .. "/" .. node .. ".log", env = { CROWN_DIRECTORY = tempdir() } }
    end
    local function asked()
      return tonumber(server:call("INFO", "commandstats"):match "cmdstat_evalsha:calls=(%d+)")
    end
    for _, one in ipairs(all) do eventually(function() return one:output():find "oracle.error" end, 20) end
    local before = asked()
    crown.sleep(2)
    local count = asked() - before
    for _, one in ipairs(all) do one:destroy() end
    assert.is_true(count > 0 and count < ASKED_MOST, count .. " calls")
  end)

  it("that lets nobody hear of changes says so of that connection", function()
    server = start { config = "user deaf on nopass ~* &* +@all -subscribe\n" }
    local heard = Subscriber.new(("redis://deaf:x@127.0.0.1:%d"):format(server.port), 5)
    finally(function() heard:close() end)
    heard:subscribe("c", function() end)
    eventually(function()
      local problem = heard.client.link:condition().problem
      return problem and problem:find "NOPERM.*'subscribe' command; crown%-lua check %-%-store"
    end, 20)
  end)

  it("is found by its Sentinels, also after a failover, which is sat out", function()
    server = start()
    local replica = start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    local sentinels, urls = {}, {}
    for i = 1, 3 do
      sentinels[i] = start { sentinel = true, config = ("sentinel monitor mine 127.0.0.1 %d 2\n"
        .. "sentinel down-after-milliseconds mine 500\nsentinel failover-timeout mine 3000\n"):format(server.port) }
      urls[i] = "127.0.0.1:" .. sentinels[i].port
    end
    local url = "redis+sentinel://" .. table.concat(urls, ",") .. "/mine"
    eventually(function() return sentinels[1]:call("SENTINEL", "ckquorum", "mine") end, 20)
    eventually(function() return #sentinels[1]:call("SENTINEL", "replicas", "mine") == 1 end, 20)
    local one = candidate(url, "one", { ttl = 2 })
    local epoch, verdict = one:claim()[4], nil
    eventually(function() return redis_lease.field(replica, "by") end, 20)
    server:down()
    local two = candidate(url, "two", { ttl = 2 })
    eventually(function() verdict = two:claim() return verdict[1] == "denied" and verdict[5] end, 20)
    assert.is_true(two:win()[4] > epoch)
  end)
end)
