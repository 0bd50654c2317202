-- An oracle for lease_server.lua: connect, ask, read the answer. Whatever fails is "not known", never "denied".
local crown = require "crown"

local Oracle = {}
Oracle.__index = Oracle

function Oracle.init(opts)
  if not opts.port then return nil, "port is required" end
  return setmetatable({ host = opts.host or "127.0.0.1", port = opts.port, ttl = opts.ttl or 2,
    name = opts.crown_name, node = opts.node, token = opts.token }, Oracle)
end

function Oracle:ask(...)
  local connection, problem = crown.tcp.connect(self.host, self.port, { timeout = self.ttl / 2 })
  if not connection then return nil, problem end
  connection:write(table.concat({ ... }, " ") .. "\n")
  local line
  line, problem = connection:read("*l", self.ttl / 2)
  connection:close()
  if not line then return nil, problem end
  local epoch = line:match "^granted (%d+)$"
  if epoch then return true, self.ttl / 3, { ttl = self.ttl, epoch = tonumber(epoch) } end
  local node, held, expires = line:match "^denied (%S+) (%d+) (%S+)$"
  if node then return false, { node = node, epoch = tonumber(held), expires_in = tonumber(expires) } end
  return nil, line
end

-- Each claim bears a number that rises, and a release names it: one that arrives late undoes nothing newer.
function Oracle:claim()
  self.number = ("%.9f"):format(crown.now())
  return self:ask("claim", self.name, self.token, self.number, self.node, self.ttl)
end

function Oracle:refresh() return self:ask("refresh", self.name, self.token, self.ttl) end
function Oracle:abdicate() self:ask("release", self.name, self.token, self.number) end

return Oracle
