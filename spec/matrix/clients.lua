--- The clients, each of a real server: how that is started, what leads to it, and by which words of the client the steps are known
-- that a trick may begin with. `NAME` stands for the election's.
local authority = require "support.authority"
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Mysql = require "support.mysql"
local Nats = require "support.nats"
local port = require "support.port"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local RedisCluster = require "support.redis_cluster"
local tempdir = require "support.tempdir"
local tls_stores = require "support.tls_stores"

local clients = {}

local CONNECT = {}
local RESP = "$99999999999999\r\n"
local HTTP = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n{"

local SCRIPT = { greeting = CONNECT, login = { says = "AUTH" }, setup = { says = "SCRIPT" }, claim = { says = '"epoch":' },
  refresh = { says = '"ttl":', armed = true }, release = { says = '"epoch":', armed = true }, -- a session's record, an election's
  watch = { says = "SUBSCRIBE" } }

local function without(steps, ...)
  local left = {}
  for name, step in pairs(steps) do left[name] = step end
  for _, name in ipairs { ... } do left[name] = nil end
  return left
end

-- What elections that tricks are played on are told, and one beside them, on the same server, which nothing happens to: a busy
-- machine must not make it lose its lease.
local HIT, WELL =
  "amnesia_wait=0&trust_empty=true&ttl=4&refresh=1&timeout=1",
  "amnesia_wait=0&trust_empty=true&ttl=20&refresh=5&timeout=4&prefix=well"

-- @tparam table server its port is the only one
-- @tparam table steps
-- @string url `%d` is the port
-- @string[opt] hit options
-- @string[opt] well options
-- @string[opt] well_url where the one beside needs another one
local function one(server, steps, url, hit, well, well_url)
  return { ports = { server.port }, steps = { steps }, destroy = function() server:destroy() end,
    url = function(ports, is_well)
      return (is_well and well_url or url):format(ports[1]) .. (is_well and (well or WELL) or hit or HIT)
    end }
end

local function without_prefix(words) return (words:gsub("&prefix=well", "")) end

local function of_no_memory(words) return (without_prefix(words):gsub("amnesia_wait=0&trust_empty=true&", "")) end

clients.redis = { huge = RESP, start = function()
  local server = Redis.start { config = "requirepass secret\n" }
  return one(server, SCRIPT, "redis://:secret@127.0.0.1:%d?")
end }

clients.sentinel = { huge = RESP, start = function()
  local server = Redis.start()
  local sentinel = Redis.start { sentinel = true, config = ("sentinel monitor mine 127.0.0.1 %d 1\n"):format(server.port) }
  return { ports = { sentinel.port, server.port }, steps = { { lookup = { says = "SENTINEL" }, greeting = CONNECT },
    without(SCRIPT, "login", "greeting") },
    url = function(ports, is_well) return ("redis+sentinel://127.0.0.1:%d/mine?%s"):format(ports[1], is_well and WELL or HIT) end,
    destroy = function()
      sentinel:destroy()
      server:destroy()
    end }
end }

clients.cluster = { huge = RESP, start = function()
  local cluster = RedisCluster.start { replicas = 0 }
  local ports, steps = {}, {}
  for i, server in ipairs(cluster.servers) do
    ports[i], steps[i] = server.port, without(SCRIPT, "login")
    steps[i].lookup = { says = "SLOTS" }
  end
  return { ports = ports, steps = steps, url = function(of, is_well)
    return ("redis+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?"):format(unpack(of)) .. (is_well and WELL or HIT)
  end, destroy = function() cluster:destroy() end }
end }

-- Two of the three play the trick: nobody can lead without one of them.
clients.majority = { huge = RESP, start = function()
  local servers, ports = {}, {}
  for i = 1, 3 do
    servers[i] = Redis.start()
    ports[i] = servers[i].port
  end
  local steps = without(SCRIPT, "login")
  return { ports = ports, steps = { steps, steps, {} }, url = function(of, is_well)
    return ("redis+majority://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?"):format(unpack(of)) .. (is_well and WELL or HIT)
  end, destroy = function()
    for _, server in ipairs(servers) do server:destroy() end
  end }
end }

clients.nats = { huge = "MSG a 1 99999999999999\r\n", start = function()
  local server = Nats.start { config = "authorization { user: joe, password: secret }\n" }
  return one(server, { greeting = CONNECT, login = { says = "CONNECT" }, setup = { says = "STREAM.INFO" },
    watch = { says = "CONSUMER.CREATE" }, claim = { says = "$KV.SPEC.NAME" }, refresh = { says = "$KV.SPEC.NAME", armed = true },
    release = { says = "KV-Operation", armed = true } }, "nats://joe:secret@127.0.0.1:%d/SPEC?",
    HIT, without_prefix(WELL), "nats://joe:secret@127.0.0.1:%d/WELL?")
end }

clients.mysql = { huge = "\255\255\255\1", start = function()
  local server = Mysql.start()
  server:sql "ALTER USER crown@'%' IDENTIFIED BY 'secret'"
  return one(server, { greeting = CONNECT, login = { says = "mysql_native_password" }, setup = { says = "SET SESSION" },
    claim = { says = "START TRANSACTION" }, refresh = { says = "START TRANSACTION", armed = true },
    release = { says = "START TRANSACTION", armed = true } }, "mysql://crown:secret@127.0.0.1:%d/crown?", HIT, without_prefix(WELL))
end }

local LOGIN = "root:secret"

clients.etcd = { huge = HTTP, start = function()
  local server = Etcd.start(nil, { "--bcrypt-cost", "4" })
  server:secure(LOGIN)
  return one(server, { greeting = CONNECT, login = { says = "authenticate" }, setup = { says = "/lease/grant" },
    watch = { says = "/v3/watch" }, claim = { says = "/kv/txn" }, refresh = { says = "keepalive", armed = true },
    release = { says = "/lease/revoke", armed = true } }, "etcd://" .. LOGIN .. "@127.0.0.1:%d?",
    HIT, without_prefix(WELL), "etcd://" .. LOGIN .. "@127.0.0.1:%d/well?")
end }

clients.http = { huge = HTTP, start = function()
  local number = port.free()
  local process = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua", number }, node = "server",
    log = tempdir() .. "/log" }
  eventually(function() return process:output():find "port %d" end, 10)
  return one({ port = number, destroy = function() process:destroy() end }, { greeting = CONNECT, claim = { says = "/claim" },
    refresh = { says = "/refresh", armed = true }, release = { says = "DELETE", armed = true } },
    "http://127.0.0.1:%d/locks?", of_no_memory(HIT), of_no_memory(WELL))
end }

local HBA = "host all crown 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"

local SCRAM = { greeting = CONNECT, login = { says = "SCRAM-SHA" }, setup = { says = "crown_store_v1" },
  watch = { says = "LISTEN" }, claim = { says = "pg_try_advisory_lock" }, refresh = { says = "NAME", armed = true },
  release = { says = "NAME", armed = true } }
local IN_A_REGISTER = { setup = { says = "pg_backend_pid" }, claim = { says = "NAME" }, refresh = { says = '"renews":', armed = true } }

local function postgres(scheme, other)
  return { huge = "D\127\255\255\255\0\1", start = function()
    local server = Postgres.start { hba = HBA }
    local steps = without(SCRAM)
    for name, step in pairs(other) do steps[name] = step end
    return one(server, steps, scheme .. "://crown:secret@127.0.0.1:%d/crown?", HIT, without_prefix(WELL))
  end }
end

clients.postgres = postgres("postgres", IN_A_REGISTER)
clients.advisory = postgres("postgres+advisory", {})

-- What is said over TLS cannot be read here: a step is known by when it is.
local TLS = { greeting = CONNECT, handshake = { says = "\22\3\1" }, refresh = { says = "", armed = true },
  release = { says = "", armed = true } }
local RECORD = "\22\3\3\255\255\2\0\255\255\255"

local function over_tls(start)
  return { huge = RECORD, start = function()
    local dir = authority()
    local server, url, well_url = start(dir)
    return one(server, TLS, url, HIT, well_url and without_prefix(WELL) or WELL, well_url)
  end }
end

for name, start in pairs(tls_stores) do clients[name .. "_tls"] = over_tls(start) end

return clients
