-- A lease server with an HTTP API, in one file. It forgets everything when it ends, which is why it sits out some seconds
-- before its first grant, and counts epochs from the time of its start.
--
--   POST   /locks/NAME/claim     {"holder", "ttl", "claim"}   200 {"ttl", "epoch"} | 409 {"holder", "epoch", "expires_in"}
--   POST   /locks/NAME/refresh   the same
--   DELETE /locks/NAME           {"holder", "claim"}          200 {}
--   POST   /locks/batch          {"asked": [{"op", "name", …}, …]}   200 {"answers": [{"status", …}, …]}
--
-- Usage: crown-lua lease_server.lua PORT [SIT_OUT_SECONDS]
local crown = require "crown"

local leases = {}
local first_epoch = os.time() * 1000 -- above all that an earlier process can have given out
local opened = crown.now() + (tonumber(arg[2]) or 0)

local function lease_of(name)
  leases[name] = leases[name] or { epoch = first_epoch, ends = opened, claims = {} }
  return leases[name]
end

local function held(lease, now)
  return 409, { holder = lease.holder, epoch = lease.epoch, expires_in = math.max(0, lease.ends - now) }
end

local verbs = {}

function verbs.claim(lease, asked, now)
  if lease.holder ~= asked.holder and lease.ends > now then return held(lease, now) end
  -- One that was overtaken on its way by a later claim, or by a release, comes too late.
  if asked.claim <= (lease.claims[asked.holder] or -1) then return held(lease, now) end
  lease.claims[asked.holder] = asked.claim
  lease.holder, lease.claim, lease.ends, lease.epoch = asked.holder, asked.claim, now + asked.ttl, lease.epoch + 1
  return 200, { ttl = asked.ttl, epoch = lease.epoch }
end

function verbs.refresh(lease, asked, now)
  if lease.holder ~= asked.holder or lease.claim ~= asked.claim or lease.ends <= now then return held(lease, now) end
  lease.ends = now + asked.ttl
  return 200, { ttl = asked.ttl, epoch = lease.epoch }
end

function verbs.release(lease, asked)
  lease.claims[asked.holder] = math.max(lease.claims[asked.holder] or -1, asked.claim)
  if lease.holder == asked.holder and lease.claim <= asked.claim then lease.holder, lease.ends = nil, 0 end
  return 200, {}
end

local function route(method, path)
  local name, verb = path:match "^/locks/([^/]+)/?(%l*)$"
  name = name and name:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  if method == "DELETE" and name and verb == "" then return name, verbs.release end
  if method == "POST" and name and (verb == "claim" or verb == "refresh") then return name, verbs[verb] end
end

local function decide(name, verb, asked)
  if type(asked.holder) ~= "string" or type(asked.claim) ~= "number" then
    return 400, { error = "holder and claim expected" }
  end
  asked.ttl = math.max(0.5, math.min(3600, tonumber(asked.ttl) or 15))
  return verb(lease_of(name), asked, crown.now())
end

local function decide_all(list)
  local answers = {}
  for i, asked in ipairs(list) do
    local verb = type(asked) == "table" and verbs[asked.op]
    local status, value = 404, { error = "claim, refresh or release" }
    if verb then status, value = decide(tostring(asked.name), verb, asked) end
    value.status = status
    answers[i] = value
  end
  return 200, { answers = answers }
end

local function answer(method, path, body)
  local fine, asked = pcall(crown.json.decode, body)
  if not fine or type(asked) ~= "table" then asked = {} end
  if method == "POST" and path == "/locks/batch" then
    if type(asked.asked) ~= "table" then return 400, { error = "asked expected: a list of questions" } end
    return decide_all(asked.asked)
  end
  local name, verb = route(method, path)
  if not verb then return 404, { error = "there are /locks/NAME/claim, /locks/NAME/refresh and /locks/NAME" } end
  return decide(name, verb, asked)
end

-- One request of HTTP/1.1: the request line, headers, as many bytes as they say.
local function read_request(connection)
  local line = connection:read("*l", 60)
  local method, path = (line or ""):match "^(%u+) (%S+) HTTP/1%.[01]\r$"
  if not method then return nil end
  local length = 0
  for header in function() return connection:read "*l" end do
    if header == "\r" then break end
    length = tonumber(header:lower():match "^content%-length:%s*(%d+)") or length
  end
  if length > 65536 then return nil end
  return method, path, length > 0 and connection:read(length) or ""
end

local REASONS = { [200] = "OK", [400] = "Bad Request", [404] = "Not Found", [409] = "Conflict" }

local listener = assert(crown.tcp.listen("127.0.0.1", tonumber(arg[1]) or 0, function(connection)
  while true do
    local method, path, body = read_request(connection)
    if not method or not body then break end
    local status, value = answer(method, path, body)
    local text = crown.json.encode(value)
    if not connection:write(("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s")
      :format(status, REASONS[status], #text, text)) then break end
  end
  connection:close()
end))
print("lease server on port " .. listener:port())
