--- Hosts of the spec's own: network namespaces on one bridge, between which packets can be dropped without a trace.
local crown = require "crown"
local ffi = require "ffi"
local is_root = require "support.is_root"

ffi.cdef "int getpid(void);"

local Network = {}
Network.__index = Network

local IP, NFT = "/usr/sbin/ip", "/usr/sbin/nft"
local serial = 0

local function run(...)
  local words = { ... }
  local result = assert(crown.exec(words, { timeout = 10 }))
  return result.code == 0, table.concat(words, " ") .. ": " .. result.stderr
end

--- Whether this machine lets us: as root, with the kernel's namespaces.
function Network.is_possible()
  local name = ("crown-try-%d"):format(ffi.C.getpid())
  local made = is_root and run(IP, "netns", "add", name)
  if made then run(IP, "netns", "del", name) end
  return made == true
end

--- Makes hosts that reach each other and this one.
-- @tparam table names
function Network.new(names)
  serial = serial + 1
  local pid = ffi.C.getpid()
  local self = setmetatable({ hosts = {}, bridge = ("cw%d-%d"):format(pid % 100000, serial),
    net = ("10.%d.%d."):format(200 + serial % 50, pid % 250) }, Network)
  assert(run(IP, "link", "add", self.bridge, "type", "bridge"))
  assert(run(IP, "addr", "add", self.net .. "1/24", "dev", self.bridge))
  assert(run(IP, "link", "set", self.bridge, "up"))
  for i, name in ipairs(names) do
    local space, veth = self.bridge .. name, ("v%d%s%d"):format(pid % 100000, name, serial)
    assert(run(IP, "netns", "add", space))
    assert(run(IP, "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", space))
    assert(run(IP, "link", "set", veth, "master", self.bridge, "up"))
    local host = { space = space, address = self.net .. (1 + i) }
    self.hosts[name] = host
    assert(run(IP, "-n", space, "addr", "add", host.address .. "/24", "dev", "eth0"))
    assert(run(IP, "-n", space, "link", "set", "eth0", "up"))
    assert(run(IP, "-n", space, "link", "set", "lo", "up"))
  end
  self.here = self.net .. "1"
  return self
end

--- What runs a command on a host: the program and the words before the command.
function Network:launch(name)
  return IP, { "netns", "exec", self.hosts[name].space }
end

local function nft(host, rules)
  assert(run(IP, "netns", "exec", host.space, NFT, rules))
end

local function drop(host, what)
  nft(host, [[
add table inet cut
add chain inet cut incoming { type filter hook input priority 0; }
add chain inet cut outgoing { type filter hook output priority 0; }
]] .. what)
end

--- Cuts a host off from another one.
function Network:cut(name, other)
  local address = self.hosts[other].address
  drop(self.hosts[name], ("add rule inet cut incoming ip saddr %s drop\nadd rule inet cut outgoing ip daddr %s drop")
    :format(address, address))
end

--- Cuts a host off from a port of this one.
function Network:cut_port(name, port)
  drop(self.hosts[name], ("add rule inet cut incoming tcp sport %d drop\nadd rule inet cut outgoing tcp dport %d drop")
    :format(port, port))
end

--- Lets nobody connect to a port of a host, which goes on to connect to others.
function Network:deafen(name, port)
  drop(self.hosts[name], ("add rule inet cut incoming tcp dport %d drop"):format(port))
end

--- Lets everything through again.
function Network:heal()
  for _, host in pairs(self.hosts) do nft(host, "flush ruleset") end
end

function Network:destroy()
  for _, host in pairs(self.hosts) do run(IP, "netns", "del", host.space) end
  run(IP, "link", "del", self.bridge)
end

return Network
