-- An oracle for lease_server.lua: connect, ask, read the answer. Whatever fails is "not known", never "denied".
local crown = require "crown"

local Oracle = {}
Oracle.__index = Oracle

local function ttl_of(opts) return tonumber(opts.ttl) or 2 end -- in a URL it is a text

-- @return the line that the server answers; or nil and a reason
local function ask(opts, ...)
  local connection, problem = crown.tcp.connect(opts.host or "127.0.0.1", tonumber(opts.port), { timeout = ttl_of(opts) / 2 })
  if not connection then return nil, problem end
  connection:write(table.concat({ ... }, " ") .. "\n")
  local line
  line, problem = connection:read("*l", ttl_of(opts) / 2)
  connection:close()
  return line, problem
end

function Oracle.init(opts)
  if not opts.port then return nil, "port is required" end
  return setmetatable({ opts = opts, ttl = ttl_of(opts), name = opts.crown_name, node = opts.node, token = opts.token }, Oracle)
end

function Oracle.timing(opts) return ttl_of(opts), ttl_of(opts) / 3 end

function Oracle:ask(...)
  local line, problem = ask(self.opts, ...)
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

-- Who leads, for `crown-lua info`, and for all that operators order.
function Oracle.list(opts)
  local line, problem = ask(opts, "list")
  if not line then return nil, problem end
  local found = {}
  for name, node, epoch, left in line:gmatch " (%S+) (%S+) (%d+) (%S+)" do
    found[#found + 1] = { name = name, node = node ~= "-" and node or nil, epoch = tonumber(epoch), expires_in = tonumber(left) }
  end
  return found
end

-- --- operators' orders: a text beside the lease, here in words without spaces

local function word_of(text) return text and (text:gsub("%W", function(c) return ("%%%02x"):format(c:byte()) end)) or "-" end
local function text_of(word)
  return word ~= "-" and (word:gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end))
end

function Oracle.look_orders(opts, name)
  local line, problem = ask(opts, "orders", name)
  local word = line and line:match "^orders (%S+)$"
  if not word then return nil, problem or line end
  return text_of(word)
end

function Oracle.swap_orders(opts, name, was, now)
  local line, problem = ask(opts, "order", name, word_of(was), word_of(now))
  if line ~= "ordered" and line ~= "changed" then return nil, problem or line end
  return line == "ordered"
end

return Oracle
