-- Connections that come and go leave nothing behind: neither descriptors nor memory. RECONNECTS= more of them.
local crown = require "crown"
local program = require "support.program"
local tempdir = require "support.tempdir"

local COUNT = tonumber(os.getenv "RECONNECTS") or 600
local TIMES = { registry = 5 } -- as many where they are quick: a thousand a second

-- Under ASan what is freed is used again.
local ENV = { ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0" }

-- Both ends in one process: prints how much memory it has, in KiB, and how many descriptors, after a third and at the end.
local APP = [[
package.path = "spec/?.lua;" .. package.path
local crown = require "crown"
local Hostile = require "support.hostile"
local what, count = arg[1], tonumber(arg[2])
local barrier = require "crown.link.barrier"

local function used()
  collectgarbage() collectgarbage()
  local kib = tonumber(io.open("/proc/self/status"):read("*a"):match "VmRSS:%s+(%d+)")
  return kib, #require("crown.core.files").list "/proc/self/fd"
end

local OK = "HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\n{}"
local ETCD_OK = "HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 13\\r\\n\\r\\n{\"header\":{}}"
local ways = {
  redis = { "hear PING\nsay +PONG\\r\\n\nhear GET\nclose", function(place)
    local connection = require("crown.redis.connection").open({}, place, 5)
    connection:call(5, "PING")
    connection:call(5, "GET")
    connection:close()
  end },
  nats = { "say INFO {}\\r\\n\nhear PING\nsay PONG\\r\\n\nhear PUB\nclose", function(place)
    local connection = require("crown.nats.connection").open({}, place, 5)
    connection:request("a", nil, "x", 5)
    connection:close()
  end },
  etcd = { "hear POST\nsay " .. ETCD_OK, function(place)
    place.client = place.client or require("crown.etcd.client").new({ endpoints = { "http://127.0.0.1:" .. place.port } }, 5)
    assert(place.client:ask("/v3/kv/range", {}))
  end },
  watch = { Hostile.watch "null" .. "close", function(place)
    place.client = place.client or require("crown.etcd.client").new({ endpoints = { "http://127.0.0.1:" .. place.port } }, 5)
    local stream = assert(place.client:open_watch { { key = "a2V5" } })
    while stream:line(5) do end
    stream:close()
  end },
  postgres = { "wait 0.001\n" .. Hostile.LETS_IN .. "wait 0.01\nclose", function(place)
    local client = crown.postgres.connect(("postgres://x@127.0.0.1:%d/x?sslmode=disable&target_session_attrs=any"):format(place.port))
    if client then client:query "SELECT 1" client:close() end
  end },
  http = { "hear GET\nsay " .. OK, function(place)
    assert(require("crown.http").request { url = "http://127.0.0.1:" .. place.port .. "/", timeout = 5 })
  end },
  tcp = { "hear x\nsay y\\n\nclose", function(place)
    local connection = assert(crown.tcp.connect("127.0.0.1", place.port, { timeout = 5 }))
    connection:write "x\n"
    assert(connection:read("*l", 5) == "y")
    assert(not connection:read("*l", 5))
    connection:close()
  end },
  registry = { "", function(place)
    local Links = require "crown.registry.links"
    local function side(node)
      local function yes() return true end
      local self = { promise = require "crown.core.promise" }
      self.links = assert(Links.open { who = { registry = "r", id = node, secret = "s", runtime = node }, host = "127.0.0.1", port = 0,
        every = 1, linger = 0, receive = yes, answered = yes, runtime_of = function(id) return id end, dialled = yes, emit = function() end,
        up = function() self.up:resolve(true) end, down = function() self.down:resolve(true) end })
      return self
    end
    place.a, place.b = place.a or side "a", place.b or side "b"
    local a = place.a
    a.up, a.down = a.promise(), a.promise()
    a.links:set_peers { b = "127.0.0.1:" .. place.b.links.port }
    assert(a.up:wait(5))
    a.links:set_peers {}
    assert(a.down:wait(5))
  end },
  refused = { "", function()
    crown.tcp.connect("127.0.0.1", 1)
  end },
}
local server = Hostile.start(ways[what][1])
local place = { host = "127.0.0.1", port = server.port }
for i = 1, count do
  local _, problem = barrier.call(ways[what][2], place)
  if problem then print(problem) os.exit(1) end
  if i == math.floor(count / 3) or i == count then print(i, used()) end
end
os.exit(0)
]]

describe("connections that come and go", function()
  for _, what in ipairs { "redis", "nats", "etcd", "watch", "http", "postgres", "tcp", "registry", "refused" } do
    it("leave nothing behind: " .. what, function()
      local path = tempdir() .. "/app.lua"
      local file = assert(io.open(path, "w"))
      file:write(APP)
      file:close()
      local result = assert(crown.exec({ program, path, what, tostring(COUNT * (TIMES[what] or 1)) }, { timeout = 600, env = ENV }))
      local readings = {}
      for kib, fds in result.stdout:gmatch "%d+\t(%d+)\t(%d+)" do readings[#readings + 1] = { tonumber(kib), tonumber(fds) } end
      assert.equal(2, #readings, result.stdout .. result.stderr)
      if os.getenv "RECONNECTS" then print(what, result.stdout) end
      assert.is_true(readings[2][1] < readings[1][1] + 3000, result.stdout)
      assert.is_true(readings[2][2] < readings[1][2] + 10, result.stdout)
    end)
  end
end)
