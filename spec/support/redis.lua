--- Real Redis servers of the spec's own, on free loopback ports.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local tempdir = require "support.tempdir"

local Redis = {}
Redis.__index = Redis

--- Starts a server.
-- @tparam[opt] table options `args`: more words for its command line; `sentinel`: lines of a Sentinel's configuration;
-- `scheme`, `query`: of its URL; `env`
function Redis.start(options)
  options = options or {}
  local self = setmetatable({ dir = tempdir(), port = port.free(), options = options }, Redis)
  self.data = self.dir .. "/appendonlydir"
  self.url = ("%s://127.0.0.1:%d%s"):format(options.scheme or "redis", self.port, options.query or "")
  -- It is new, and nobody has a longer lease than its own.
  self.quick = ("%s%samnesia_wait=0&trust_empty=true"):format(self.url, options.query and "&" or "?")
  self:up()
  return self
end

function Redis:up()
  local file = assert(io.open(self.dir .. "/config", "a+"))
  if file:seek "end" == 0 then
    file:write(("port %d\nbind 127.0.0.1\ndir %s\nsave \"\"\n"):format(self.options.tls and 0 or self.port, self.dir))
    if self.options.tls then file:write(("tls-port %d\n"):format(self.port)) end
    file:write(self.options.config or "")
  end
  file:close()
  self.process = Candidate.start { program = self.options.sentinel and "/usr/bin/redis-sentinel" or "/usr/bin/redis-server",
    args = { self.dir .. "/config" }, node = "redis", env = self.options.env, log = self.dir .. "/log" }
  eventually(function() return self.process:output():find "Ready to accept connections" or self.process:output():find "Sentinel ID" end, 10)
end

--- A client for the spec's own commands.
function Redis:call(...)
  self.client = self.client or assert(crown.redis.connect(self.url))
  return self.client:call(...)
end

--- Waits until somebody has subscribed to a channel, from when on no message passes by. That there is a connection is not enough.
-- @string channel
function Redis:await_subscriber(channel)
  eventually(function() return tonumber(self:call("PUBSUB", "NUMSUB", channel)[2]) > 0 end, 20)
end

function Redis:down()
  if self.client then self.client:close() end
  self.client = nil
  self.process:hurt_self "KILL"
  self.process:wait(20)
end

--- Throws the data away, where it keeps any.
function Redis:wipe()
  assert(os.execute("rm -rf " .. self.data) == 0)
end

--- Stops the process, or lets it go on.
function Redis:freeze() self.process:freeze() end
function Redis:thaw() self.process:thaw() end

function Redis:destroy()
  if self.client then self.client:close() end
  if not self.process.code then
    self.process:hurt_self "KILL"
    self.process:wait(20)
  end
end

return Redis
