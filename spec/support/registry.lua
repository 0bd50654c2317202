--- Real members of a registry, each a runtime of its own, told what to do over a control port.
local busted = require "busted"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require "crown.testing.eventually"
local Postgres = require "support.postgres"
local program = require "support.program"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local Registry = {}
Registry.__index = Registry

local APP = "spec/support/registry_app.lua"
local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

local Member = {}
Member.__index = Member

--- Makes a cluster.
-- @tparam table options `url`; `name`, `ttl` (2), and what else the oracle takes
-- @tparam[opt] table network of support.network: each member on the host of its name
function Registry.new(options, network)
  local dir = tempdir()
  return setmetatable({ dir = dir, ticks = dir .. "/ticks", options = options, network = network, members = {} }, Registry)
end

--- Gives a describe block a Postgres, and each spec in it a registry of its own there.
-- @tparam function take called before each spec with the cluster, the name of the registry, and the server
function Registry.around(take)
  local server, cluster
  busted.setup(function() server = Postgres.start() end)
  busted.teardown(function() server:destroy() end)
  busted.before_each(function()
    local name = ("spec-%d"):format(math.random(1e9))
    cluster = Registry.new { url = server.url, name = name }
    take(cluster, name, server)
  end)
  busted.after_each(function() cluster:destroy() end)
end

--- Starts a member.
-- @string node
-- @tparam[opt] table own its own options; `child`: a ticking one
function Registry:join(node, own)
  own = own or {}
  local options = { name = "spec", ttl = 2, listen = "127.0.0.1:0", secret = "a secret of the specs", snapshot_timeout = 1,
    replicate_timeout = 0.5 }
  for _, from in ipairs { self.options, own } do
    for key, value in pairs(from) do options[key] = value end
  end
  options.child = nil
  local address, env = "127.0.0.1", {}
  local launcher, args = program, { APP }
  if self.network then
    address = self.network.hosts[node].address
    options.listen, env.CONTROL = address .. ":0", address
    launcher, args = self.network:launch(node)
    args[#args + 1], args[#args + 2] = program, APP
  end
  args[#args + 1] = crown.json.encode(options)
  if own.child then
    for _, word in ipairs { ticker, self.ticks, "plain" } do args[#args + 1] = word end
  end
  local log = ("%s/%s-%d.log"):format(self.dir, node, #self.members)
  local member = setmetatable({ node = node, address = address, candidate = Candidate.start { program = launcher, args = args,
    node = node, log = log, env = env } }, Member)
  self.members[#self.members + 1] = member
  return member
end

--- Starts several, and waits until each knows all of them and one leads.
function Registry:join_all(nodes, own)
  local found = {}
  for i, node in ipairs(nodes) do found[i] = self:join(node, own) end
  self:await(found)
  return unpack(found)
end

--- Waits until these members agree on who they are and which of them leads; returns the leader's node and epoch.
-- @param _ the registry
-- @tparam table members
-- @number[opt=15] seconds to wait at most
-- @number[opt=0] beyond the epoch that they have left behind
function Registry.await(_, members, seconds, beyond)
  local node, epoch
  eventually(function()
    node, epoch = members[1]:ask "leader"
    local agree, views = false, {} -- not before one of them leads: who was killed may be the leader still, and no member
    for _, member in ipairs(members) do agree = agree or member.node == node end
    agree = agree and epoch > (beyond or 0)
    for i, member in ipairs(members) do
      local leader, its = member:ask "leader"
      local known = member:ask "members" or {}
      agree = agree and leader == node and its == epoch and #known == #members
      views[i] = ("%s: %s leads in epoch %s, %d members"):format(member.node, tostring(leader), tostring(its), #known)
    end
    if not agree then error("they do not agree: " .. table.concat(views, "; "), 0) end
    local probe, why = members[1]:ask("register", { name = "probe-" .. epoch, value = epoch, timeout = 1 })
    if probe == nil then error(("they agree, but %s cannot register: %s"):format(members[1].node, tostring(why)), 0) end
    return true
  end, seconds or 15)
  return node, epoch
end

--- Ends it.
-- @treturn bool whether one of its members had to be killed
function Registry:destroy()
  for _, member in ipairs(self.members) do member:close() end
  local killed = false
  for _, member in ipairs(self.members) do killed = member.candidate:destroy() or killed end
  return killed
end

--- Ends it, and raises when two led at once at any time, or when anything ticks on.
function Registry:finish()
  ticks.finish(self.ticks, self:destroy())
end

local function port_of(member)
  local found
  for one in member.candidate:output():gmatch "control port (%d+)" do found = tonumber(one) end
  return found
end

function Member:close()
  if self.connection then self.connection:close() end
  self.connection = nil
end

-- A restarted runtime has another port.
local function connection_of(self)
  local port = port_of(self)
  if self.connection and self.port == port then return self.connection end
  self:close()
  if not port then return nil end
  self.connection, self.port = crown.tcp.connect(self.address, port, { timeout = 1 }), port
  return self.connection
end

--- The same member, over a connection of its own: for what goes on side by side.
function Member:twin()
  return setmetatable({ node = self.node, address = self.address, candidate = self.candidate }, Member)
end

--- Asks: "register", "unregister", "whereis", "names", "members", "leader", "fill".
-- @return what it answers; nothing when it cannot be asked
function Member:ask(what, args)
  local connection = connection_of(self)
  if not connection then return nil, "not there" end
  local request = { what = what }
  for key, value in pairs(args or {}) do request[key] = value end
  connection:set_timeout((request.timeout or 5) + 2)
  local line = connection:write(crown.json.encode(request) .. "\n") and connection:read "*l"
  if not line then
    self:close()
    return nil, "gone"
  end
  local answer = crown.json.decode(line)
  for i = 1, 3 do
    if answer[i] == crown.json.null then answer[i] = nil end
  end
  return answer[1], answer[2], answer[3]
end

return Registry
