--- Real NATS servers of the spec's own, on free loopback ports, with JetStream.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local tempdir = require "support.tempdir"

local Nats = {}
Nats.__index = Nats

--- Starts a server.
-- @tparam[opt] table options `config`: lines of its configuration file; `storage`: lines of its part for JetStream;
-- `clock` of support.wrong_clock that it goes by
function Nats.start(options)
  local self = setmetatable({ dir = tempdir(), port = port.free(), options = options or {} }, Nats)
  self.url = ("nats://127.0.0.1:%d"):format(self.port)
  self.quick = self.url .. "/SPEC?amnesia_wait=0" -- nobody has a longer lease than a bucket of it gives
  self:write ""
  self:up()
  return self
end

function Nats:write(more)
  local file = assert(io.open(self.dir .. "/config", "w"))
  file:write(("listen: 127.0.0.1:%d\njetstream { store_dir: %s/data\n%s }\n%s\n%s\n"):format(self.port, self.dir,
    self.options.storage or "", self.options.config or "", more))
  file:close()
end

--- Has it read its configuration again, with more lines; its clients stay, where they may.
-- @string more
function Nats:configure(more)
  self:write(more)
  self.process:signal "HUP"
end

--- Starts servers that are one cluster.
-- @number count
-- @string[opt] more lines for the cluster's part of their configuration
-- @tparam[opt] table clocks of support.wrong_clock, one for each
-- @treturn table of servers, each with its `name`
function Nats.cluster(count, more, clocks)
  local routes, ports = {}, {}
  for i = 1, count do
    ports[i] = port.free()
    routes[i] = ("nats-route://127.0.0.1:%d"):format(ports[i])
  end
  local servers = {}
  for i = 1, count do
    servers[i] = Nats.start { config = ("server_name: n%d\ncluster { name: spec, listen: 127.0.0.1:%d, routes: [%s]\n%s }")
      :format(i, ports[i], table.concat(routes, ", "), more or ""), clock = clocks and clocks[i] }
    servers[i].name = "n" .. i
  end
  return servers
end

--- Starts the process, with the data of before.
function Nats:up()
  local before = self.process and #self.process:output() or 0
  self.process = Candidate.start { program = "/usr/sbin/nats-server", args = { "-c", self.dir .. "/config" }, node = "nats",
    log = self.dir .. "/log", env = self.options.clock and self.options.clock:environment(true) }
  eventually(function() return self.process:output():find("Server is ready", before + 1, true) end, 20)
end

--- Ends the process, as in a crash.
function Nats:down()
  self.process:hurt_self "KILL"
  self.process:wait(20)
end

--- Throws the data away.
function Nats:wipe()
  assert(os.execute("rm -rf " .. self.dir .. "/data") == 0)
end

function Nats:freeze() self.process:freeze() end
function Nats:thaw() self.process:thaw() end

function Nats:destroy()
  if self.process.code then return end
  self.process:hurt_self "CONT"
  self:down()
end

return Nats
