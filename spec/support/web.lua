--- What the small servers of the specs share: HTTP/1.1 as far as crown-lua speaks it, and tricks that the next requests meet.
local crown = require "crown"
local json = require "crown.text.json"

local web = {}

local REASONS = { [200] = "OK", [201] = "Created", [400] = "Bad Request", [403] = "Forbidden", [404] = "Not Found",
  [405] = "Method Not Allowed", [409] = "Conflict", [412] = "Precondition Failed", [429] = "Too Many Requests",
  [500] = "Internal Server Error", [501] = "Not Implemented", [503] = "Slow Down" }

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- @return `{ method =, path =, query = as they came, options = of the query, headers = by lower-case name, body = }`
local function read(connection)
  local line = connection:read("*l", 3600)
  local method, target = (line or ""):match "^(%u+) (%S+) HTTP/1%.[01]\r$"
  if not method then return nil end
  local request = { method = method, headers = {}, body = "", options = {} }
  request.path, request.query = target:match "^([^?]*)%??(.*)$"
  for header in function() return connection:read "*l" end do
    if header == "\r" then break end
    local name, value = header:match "^([^:]+):%s*(.-)%s*\r$"
    if name then request.headers[name:lower()] = value end
  end
  local length = tonumber(request.headers["content-length"] or 0)
  if length > 0 then request.body = connection:read(length) or "" end
  for pair in request.query:gmatch "[^&]+" do
    local key, value = pair:match "^([^=]*)=?(.*)$"
    request.options[key] = decoded(value)
  end
  return request
end

--- A time as HTTP's headers have it.
-- @number seconds since 1970
-- @treturn string
function web.date(seconds) return os.date("!%a, %d %b %Y %H:%M:%S GMT", seconds) end

--- Answers.
-- @param connection
-- @number status
-- @string body
-- @tparam[opt] table headers
-- @return whether it was written
function web.respond(connection, status, body, headers)
  local lines = { ("HTTP/1.1 %d %s"):format(status, REASONS[status] or "?"), "Server: stand-in", "Date: " .. web.date(os.time()),
    ("Content-Length: %d"):format(#body) }
  for name, value in pairs(headers or {}) do lines[#lines + 1] = ("%s: %s"):format(name, value) end
  return connection:write(table.concat(lines, "\r\n") .. "\r\n\r\n" .. body)
end

--- Carries a request out, unless a trick is played with it: `{ count =, method =, status =, slow = seconds, late = seconds (done
-- at once, answered so much later), unsaid = true (done, and the connection is closed) }`.
-- @tparam table trick
-- @tparam table request
-- @tparam function refuse answers with the trick's own status
-- @tparam function carry_out → a function that answers, and its arguments
-- @return whether the connection goes on
function web.carry_out(trick, request, refuse, carry_out)
  local is_tricked = trick.count and trick.count > 0 and (not trick.method or trick.method == request.method)
  if not is_tricked then
    local act = { carry_out() }
    return act[1](unpack(act, 2, table.maxn(act)))
  end
  trick.count = trick.count - 1
  if trick.slow then crown.sleep(trick.slow) end
  if trick.status then return refuse() end
  local act = { carry_out() }
  if trick.unsaid then return false end
  if trick.late then crown.sleep(trick.late) end
  return act[1](unpack(act, 2, table.maxn(act)))
end

--- Serves, and counts requests by their methods. POST /trick sets what happens to those that follow, GET /counts tells how many
-- there were.
-- @number port
-- @string[opt] folder of a certificate (support.authority)
-- @tparam function set called with the trick
-- @tparam function answer called with the connection and the request → whether the connection goes on
-- @tparam[opt] function most → how many connections there may be; a further one is answered with 429, and closed
function web.serve(port, folder, set, answer, most)
  local counts, open = {}, 0
  local function serve_one(connection, request)
    if request.path == "/trick" then
      set(json.object(request.body) or {})
      return web.respond(connection, 200, "{}")
    end
    if request.path == "/counts" then return web.respond(connection, 200, json.encode(counts)) end
    counts[request.method] = (counts[request.method] or 0) + 1
    return answer(connection, request)
  end
  local listener = assert(crown.tcp.listen("127.0.0.1", port, function(connection)
    open = open + 1
    if most and open > most() then
      web.respond(connection, 429, "Your IP is issuing too many concurrent connections")
    else
      for request in read, connection do
        if not serve_one(connection, request) then break end
      end
    end
    open = open - 1
    connection:close()
  end, folder and { tls = { cert = folder .. "/s.crt", key = folder .. "/s.key" } } or nil))
  print("stand-in on port " .. listener:port())
end

return web
