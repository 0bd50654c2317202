--- Real ZooKeeper servers of the spec's own, on free loopback ports: one, or an ensemble. Ticks of 0.2 s.
local Candidate = require "support.candidate"
local Connection = require "crown.zookeeper.connection"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local tcp = require "crown.core.tcp"
local tempdir = require "support.tempdir"
local Way = require "torture.way"
local write_file = require "support.write_file"

local ZooKeeper = {}
ZooKeeper.__index = ZooKeeper

local CLASS_PATH = "/usr/share/java/zookeeper.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"
local MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
local SMALL = { "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto" }
local CONFIG = [[
tickTime=200
minSessionTimeout=400
maxSessionTimeout=60000
initLimit=25
syncLimit=10
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=*
forceSync=no
maxClientCnxns=0
extendedTypesEnabled=true
]]

-- @tparam table lines more of the configuration
local function new(lines)
  local self = setmetatable({ dir = tempdir(), port = port.free() }, ZooKeeper)
  self.data = self.dir .. "/data"
  os.execute(("mkdir -p %s"):format(self.data))
  self.config = write_file(self.dir .. "/zoo.cfg", CONFIG .. ("dataDir=%s\nclientPort=%d\n"):format(self.data, self.port)
    .. table.concat(lines, "\n") .. "\n")
  self.url = ("zookeeper://127.0.0.1:%d"):format(self.port)
  self.quick = self.url .. "?trust_empty=true"
  return self
end

--- Starts one.
-- @tparam[opt] table lines more of its configuration
-- @treturn ZooKeeper
function ZooKeeper.start(lines)
  local self = new(lines or {})
  self:up()
  return self
end

--- Starts an ensemble.
-- @number count
-- @tparam[opt] table options `ways`: an array, of which each way that is opened between the first server and another one becomes
-- an element; `lines`: more of the configuration
-- @treturn table an array of ZooKeeper
function ZooKeeper.ensemble(count, options)
  options = options or {}
  local ports, servers = {}, {}
  for i = 1, count do ports[i] = { port.free(), port.free() } end
  local function seen_by(server, i, number)
    if not options.ways or server ~= 1 or i == 1 then return number end
    local way = Way.open(function() return number end)
    options.ways[#options.ways + 1] = way
    return way.port
  end
  local function lines_of(server)
    local lines = { unpack(options.lines or {}) }
    for i, one in ipairs(ports) do
      lines[#lines + 1] = ("server.%d=127.0.0.1:%d:%d"):format(i, seen_by(server, i, one[1]), seen_by(server, i, one[2]))
    end
    return lines
  end
  for i = 1, count do
    servers[i] = new(lines_of(i))
    write_file(servers[i].data .. "/myid", ("%d\n"):format(i))
    servers[i]:launch()
  end
  for _, server in ipairs(servers) do server:await() end
  return servers
end

--- Starts the process, with the data of before.
function ZooKeeper:launch()
  local args = {}
  for _, word in ipairs(SMALL) do args[#args + 1] = word end
  for _, word in ipairs { "-cp", self.dir .. ":" .. CLASS_PATH, MAIN, self.config } do args[#args + 1] = word end
  self.process = Candidate.start { program = "/usr/bin/java", args = args, node = "zookeeper", log = self.dir .. "/log" }
end

--- Starts the process; it is up when it serves.
function ZooKeeper:up()
  self:launch()
  self:await()
end

--- Waits until it serves.
function ZooKeeper:await()
  eventually(function() return self:serves() end, 60)
end

--- What the server answers to a word of four letters.
-- @string word
-- @treturn string or nil
function ZooKeeper:says(word)
  local stream = tcp.connect("127.0.0.1", self.port, { timeout = 2 })
  if not stream then return nil end
  stream:write(word)
  local text = stream:read("*a", 2)
  stream:close()
  return text
end

--- Whether it takes sessions: alone or in a quorum.
function ZooKeeper:serves()
  return (self:says "srvr" or ""):find "Mode: " ~= nil
end

--- Whether it leads its ensemble.
function ZooKeeper:leads()
  return (self:says "srvr" or ""):find "Mode: leader" ~= nil
end

--- Ends the server as a crash does.
function ZooKeeper:down()
  if self.client then self.client:close() end
  self.process:hurt_self "KILL"
  self.process:wait(20)
end

function ZooKeeper:freeze() self.process:freeze() end
function ZooKeeper:thaw() self.process:thaw() end

--- Removes its data, as an operator does who makes the store anew; it is down.
function ZooKeeper:wipe()
  os.execute(("rm -rf %s/version-2"):format(self.data))
end

--- Asks as an operator does, in a session of its own.
-- @string kind of crown.zookeeper.wire
-- @param ... its arguments
-- @return the answer; or nil, message, code
function ZooKeeper:ask(kind, ...)
  if not self.client or self.client.closed then
    self.client = assert(Connection.open(self.login or {}, { host = "127.0.0.1", port = self.port }, { ttl = 30 }, 10))
  end
  return self.client:ask(10, kind, ...)
end

function ZooKeeper:destroy()
  if self.client then self.client:close() end
  if not self.process.code then
    self.process:hurt_self "KILL"
    self.process:wait(20)
  end
end

return ZooKeeper
