--- Two candidates for one election, with a ticking child each; on the file oracle, on the example's lease server, or on
-- whatever an oracle URL leads to.
local Candidate = require "support.candidate"
local eventually = require "crown.testing.eventually"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local write_file = require "support.write_file"

local Cluster = {}
Cluster.__index = Cluster

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

local FILE_APP = [[
local crown = require "crown"
local command = { unpack(arg, 2) }
crown.elect { name = "spec", oracle = "file:" .. arg[1], stop_timeout = tonumber(os.getenv "STOP_TIMEOUT"),
  child = { command = command, isolation = os.getenv "ISOLATION" } }
]]

local URL_APP = [[
local crown = require "crown"
local command = { unpack(arg, 2) }
local ttl = not arg[1]:find "^file:" and tonumber(os.getenv "TTL") or nil -- a file's lock has none
crown.elect { name = "spec", oracle = { arg[1], ttl = ttl }, child = command }
]]

--- Makes a cluster.
-- @tparam table options `oracle` "file" or "lease", or `url`; `mode` of the ticker, `ttl`, `app` source, `port` of a proxy;
-- `env`: the environments of members, by node; `stop_timeout` on the file oracle (0.5);
-- `words` for the program before the app; `args`: a function of the cluster that makes all of them, without an app
function Cluster.new(options)
  local self = setmetatable({ dir = tempdir(), options = options, members = {}, ticker = ticker }, Cluster)
  self.ticks = self.dir .. "/ticks"
  if options.oracle == "lease" then self:start_server() end
  write_file(self.dir .. "/app.lua", options.app or options.url and URL_APP or FILE_APP)
  return self
end

function Cluster:start_server(port)
  self.server = Candidate.start { args = { "lua/examples/custom_oracle/lease_server.lua", port or 0, port and 2 or 0 },
    node = "server", log = self.dir .. "/server.log" }
  self.port = eventually(function()
    local found
    for one in self.server:output():gmatch "port (%d+)" do found = tonumber(one) end
    return found
  end, 5)
end

-- What the program is started with: the app, what leads to the store, and the child's command.
local function arguments(self, url)
  if self.options.args then return self.options.args(self) end
  local app, store = self.dir .. "/app.lua", url or self.options.url or self.dir .. "/locks"
  if self.options.oracle == "lease" then
    app, store = "lua/examples/custom_oracle/app.lua", self.options.port or self.port
  end
  local words = { unpack(self.options.words or {}) }
  for _, word in ipairs { app, store, ticker, self.ticks, self.options.mode or "plain" } do words[#words + 1] = word end
  return words
end

--- Starts a member; `url`: its own way to the store; `words`: what starts the program, instead of the program itself.
function Cluster:join(node, url, words)
  local args = { unpack(words or {}, 2) }
  for _, word in ipairs(arguments(self, url)) do args[#args + 1] = word end
  local env = { TTL = self.options.ttl or 2, STOP_TIMEOUT = self.options.stop_timeout or 0.5,
    CROWN_LOG_LEVEL = "debug" } -- tells of each claim and refresh
  for key, value in pairs(self.options.env and self.options.env[node] or {}) do env[key] = value end
  local member = Candidate.start { program = words and words[1], args = args, node = node, env = env,
    log = ("%s/%s-%d.log"):format(self.dir, node, #self.members) } -- its own: one of before may have said what it is asked for
  self.members[#self.members + 1] = member
  return member
end

--- A leader that ticks and a follower that has been told that it is one, and the leader's term; `url`: the leader's own way to
-- the store.
function Cluster:pair(url)
  local leader = self:join("one", url)
  ticks.await(self.ticks, 0, 10)
  ticks.settle(self.ticks)
  local follower, term, lost = self:join "two", nil, 0
  eventually(function()
    local terms = ticks.terms(self.ticks)
    term = terms[#terms]
    if term.node == "one" then return follower:is_told() end
    if term.epoch > lost then -- on a busy machine a short lease had ended: the first one leads again then
      lost = term.epoch
      follower:destroy()
      follower = self:join "two"
    end
  end, 20)
  return leader, follower, term
end

--- Waits for the leader behind `epoch`, and raises when anything of an old one ticks beside it.
-- @string[opt] node the only one that can be it
function Cluster:succeed(epoch, seconds, node)
  return ticks.succeed(self.ticks, epoch, seconds, node)
end

--- Ends it.
-- @treturn bool whether one of its members had to be killed
function Cluster:destroy()
  local killed = false
  for _, member in ipairs(self.members) do killed = member:destroy() or killed end
  if self.server then self.server:destroy() end
  return killed
end

--- Ends it, and raises when two led at once at any time, or when anything ticks on.
function Cluster:finish()
  ticks.finish(self.ticks, self:destroy())
end

return Cluster
