-- A lease server in one file: a line of text in, a line of text out. It forgets everything when it ends, which is why
-- it sits out one TTL before its first grant.
--
--   claim NAME TOKEN CLAIM NODE TTL   granted EPOCH | denied NODE EPOCH SECONDS
--   refresh NAME TOKEN TTL            granted EPOCH | denied NODE EPOCH SECONDS
--   release NAME TOKEN CLAIM          released
--   list                              leases NAME NODE EPOCH SECONDS NAME NODE ...
--   orders NAME                       orders TEXT      (operators' orders, without spaces; - where there are none)
--   order NAME WAS NOW                ordered | changed
--
-- Usage: crown-lua lease_server.lua PORT [SIT_OUT_SECONDS]
local crown = require "crown"

local leases, orders = {}, {}
local opened = crown.now() + (tonumber(arg[2]) or 0)

local function denied(lease, now)
  return ("denied %s %d %.3f"):format(lease.node or "-", lease.epoch, math.max(0, lease.ends - now))
end

local function claim(name, token, number, node, ttl)
  local now = crown.now()
  local lease = leases[name] or { epoch = 0, ends = opened }
  leases[name] = lease
  if lease.token ~= token and lease.ends > now then return denied(lease, now) end
  -- One that was overtaken on its way by a later claim of the same token comes too late.
  if lease.token == token and tonumber(number) < tonumber(lease.claim) then return denied(lease, now) end
  lease.token, lease.claim, lease.node = token, number, node
  lease.ends, lease.epoch = now + tonumber(ttl), lease.epoch + 1
  return "granted " .. lease.epoch
end

local function refresh(name, token, ttl)
  local now, lease = crown.now(), leases[name] or { epoch = 0, ends = 0 }
  if lease.token ~= token or lease.ends <= now then return denied(lease, now) end
  lease.ends = now + tonumber(ttl)
  return "granted " .. lease.epoch
end

-- Only what this very claim got: a release that comes late must not undo a later claim.
local function release(name, token, number)
  local lease = leases[name]
  if lease and lease.token == token and lease.claim == number then lease.token, lease.ends = nil, 0 end
  return "released"
end

local function list()
  local words, now = { "leases" }, crown.now()
  for name, lease in pairs(leases) do
    local left = math.max(0, lease.ends - now)
    words[#words + 1] = ("%s %s %d %.3f"):format(name, left > 0 and lease.node or "-", lease.epoch, left)
  end
  return table.concat(words, " ")
end

local function look(name) return "orders " .. (orders[name] or "-") end

-- Who has not seen what stands there changes nothing.
local function order(name, was, now)
  if (orders[name] or "-") ~= was then return "changed" end
  orders[name] = now
  return "ordered"
end

local verbs = { claim = claim, refresh = refresh, release = release, list = list, orders = look, order = order }

local function answer(line)
  local words = {}
  for word in line:gmatch "%S+" do words[#words + 1] = word end
  local verb = verbs[words[1]]
  return verb and verb(unpack(words, 2)) or "error unknown command"
end

local listener = assert(crown.tcp.listen("127.0.0.1", tonumber(arg[1]) or 0, function(connection)
  for line in function() return connection:read("*l", math.huge) end do
    if not connection:write(answer(line) .. "\n") then break end
  end
  connection:close()
end))
print("lease server on port " .. listener:port())
