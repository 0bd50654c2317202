-- A lease server with an HTTP API, in one file. It forgets everything when it ends, which is why it sits out some seconds
-- before its first grant, and counts epochs from the time of its start.
--
--   POST   /locks/NAME/claim     {"holder", "ttl", "claim"}   200 {"ttl", "epoch"} | 409 {"holder", "epoch", "expires_in",
--                                                             "watch", "last"}
--   POST   /locks/NAME/refresh   the same
--   DELETE /locks/NAME           {"holder", "claim"}          200 {}
--   POST   /locks/batch          {"asked": [{"op", "name", …}, …]}   200 {"answers": [{"status", …}, …]}
--   GET    /locks/watch?after=N                               200 {"last", "freed": [NAME, …]}, as soon as something has been
--                                                             freed after the Nth | 204 when nothing was for a while
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

local REMEMBERED, PATIENCE = 1000, 25
local freed, last = {}, 0 -- what was freed, by number
local waiting = {}        -- connections on which somebody waits for more, and up to which number each knows

local function held(lease, now)
  return 409, { holder = lease.holder, epoch = lease.epoch, expires_in = math.max(0, lease.ends - now),
    watch = "/watch", last = last }
end

local REASONS = { [200] = "OK", [204] = "No Content", [400] = "Bad Request", [404] = "Not Found", [409] = "Conflict" }

local function respond(connection, status, text)
  return connection:write(("HTTP/1.1 %d %s\r\n%s\r\n%s"):format(status, REASONS[status],
    text and ("Content-Type: application/json\r\nContent-Length: %d\r\n"):format(#text) or "", text or ""))
end

local function add_freed(name)
  last = last + 1
  freed[last], freed[last - REMEMBERED] = name, nil
end

local function respond_freed(connection, after)
  local names = {}
  for i = math.max(after, last - REMEMBERED) + 1, last do names[#names + 1] = crown.json.encode(freed[i]) end
  return respond(connection, 200, ('{"last":%d,"freed":[%s]}'):format(last, table.concat(names, ",")))
end

local function wait(connection, after)
  if after ~= last then return respond_freed(connection, after) end -- also of an earlier life of this server
  local one = { after = after }
  waiting[connection] = one
  crown.spawn(function()
    crown.sleep(PATIENCE)
    if waiting[connection] ~= one then return end
    waiting[connection] = nil
    respond(connection, 204)
  end)
  return true
end

-- Those who wait for something that has been freed by now.
local function tell()
  local list = waiting
  waiting = {}
  for connection, one in pairs(list) do
    if one.after == last then waiting[connection] = one else crown.spawn(respond_freed, connection, one.after) end
  end
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
  if lease.holder == asked.holder and lease.claim <= asked.claim then
    lease.holder, lease.ends = nil, 0
    add_freed(asked.name)
  end
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
  asked.name, asked.ttl = name, math.max(0.5, math.min(3600, tonumber(asked.ttl) or 15))
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

local listener = assert(crown.tcp.listen("127.0.0.1", tonumber(arg[1]) or 0, function(connection)
  while true do
    local method, path, body = read_request(connection)
    if not method or not body then break end
    local after = method == "GET" and path:match "^/locks/watch%??(.*)$"
    local written
    if after then
      written = wait(connection, tonumber(after:match "^after=(%d+)$") or last)
    else
      local status, value = answer(method, path, body)
      written = respond(connection, status, crown.json.encode(value))
      tell()
    end
    if not written then break end
  end
  waiting[connection] = nil
  connection:close()
end))
print("lease server on port " .. listener:port())
