--- Real etcd servers of the spec's own, on free loopback ports.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local tempdir = require "support.tempdir"

local Etcd = {}
Etcd.__index = Etcd

local function new(authority, more, clock)
  local self = setmetatable({ dir = tempdir(), port = port.free(), peer = "http://127.0.0.1:" .. port.free(), authority = authority,
    more = more or {}, clock = clock }, Etcd)
  self.data = self.dir .. "/data"
  self.endpoint = "127.0.0.1:" .. self.port
  self.client = (authority and "https://" or "http://") .. self.endpoint
  self.url = (authority and "etcds://" or "etcd://") .. self.endpoint
  self.quick = self.url .. "?amnesia_wait=0" -- where nothing was before, nobody has a longer lease than its own
  return self
end

--- Starts a server.
-- @string[opt] authority the directory of support.authority: then it speaks TLS
-- @tparam[opt] table more words for its command line
-- @tparam[opt] table clock of support.wrong_clock that it goes by
function Etcd.start(authority, more, clock)
  local self = new(authority, more, clock)
  self.members = "default=" .. self.peer
  self:up()
  return self
end

--- Starts servers that are one cluster.
-- @number count
-- @tparam[opt] table clocks of support.wrong_clock, one for each
-- @treturn table of servers
function Etcd.cluster(count, clocks)
  local servers, members = {}, {}
  for i = 1, count do
    servers[i] = new(nil, { "--name", "e" .. i, "--heartbeat-interval", "50", "--election-timeout", "500" }, clocks and clocks[i])
    members[i] = ("e%d=%s"):format(i, servers[i].peer)
  end
  for _, one in ipairs(servers) do
    one.members = table.concat(members, ",")
    one:launch()
  end
  for _, one in ipairs(servers) do one:await() end
  return servers
end

--- Starts the process, with the data of before, without waiting for it: of a cluster one server alone does not answer.
function Etcd:launch()
  local client, peer = self.client, self.peer
  local args = {
    "--data-dir", self.data, "--listen-client-urls", client, "--advertise-client-urls", client,
    "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", self.members,
    "--log-level", "error", "--unsafe-no-fsync" }
  if self.authority then
    for _, word in ipairs { "--cert-file", self.authority .. "/s.crt", "--key-file", self.authority .. "/s.key" } do
      args[#args + 1] = word
    end
  end
  for _, word in ipairs(self.more) do args[#args + 1] = word end
  self.process = Candidate.start { program = "/usr/bin/etcd", node = "etcd", log = self.dir .. "/log", args = args,
    env = self.clock and self.clock:environment(true) }
end

--- Waits until it answers.
function Etcd:await()
  eventually(function()
    local answer = crown.http.request { url = self.client .. "/health", timeout = 5, insecure = true }
    return answer and answer.body:find '"true"'
  end, 30)
end

--- Starts the process, with the data of before.
function Etcd:up()
  self:launch()
  self:await()
end

--- Ends the process, as in a crash.
function Etcd:down()
  self.process:hurt_self "KILL"
  self.process:wait(20)
end

--- Makes it one that has been what it is for long: what is not there has never been.
-- @string[opt] prefix of the elections
-- @return the server
function Etcd:trusted(prefix)
  local lease = self:ctl("lease", "grant", "999000000"):match "lease (%x+) granted" -- of 1,000,000,000 s
  self:ctl("put", "--lease=" .. lease, prefix and prefix .. "/.age" or "crown.age", "1")
  return self
end

--- Throws the data away.
function Etcd:wipe()
  assert(os.execute("rm -rf " .. self.data) == 0)
end

--- Makes its data anew of a snapshot that etcdctl has saved.
-- @string file
function Etcd:restore(file)
  self:ctl("snapshot", "restore", file, "--data-dir", self.data, "--initial-cluster", self.members,
    "--initial-advertise-peer-urls", self.peer)
end

--- Runs etcdctl.
-- @treturn string what it prints
function Etcd:ctl(...)
  local result = assert(crown.exec({ "/usr/bin/etcdctl", "--endpoints", self.endpoint, ... }, { timeout = 20 }))
  assert(result.code == 0, result.stderr)
  return result.stdout
end

--- Lets nobody in any more who does not log in.
-- @string login of root: "root:PASSWORD"
function Etcd:secure(login)
  local changes = { { "user", "add", login }, { "user", "grant-role", "root", "root" }, { "auth", "enable" } }
  for _, change in ipairs(changes) do -- again, where etcd gave up on a busy host: it may have been made all the same
    eventually(function()
      local fine, problem = pcall(self.ctl, self, unpack(change))
      return fine or problem:find("already exists", 1, true) or error(problem, 0)
    end, 20)
  end
end

function Etcd:freeze() self.process:freeze() end
function Etcd:thaw() self.process:thaw() end

function Etcd:destroy()
  if self.process.code then return end
  self.process:hurt_self "CONT"
  self:down()
end

return Etcd
