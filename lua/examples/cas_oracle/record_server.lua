-- Records over HTTP, in one file. It forgets everything when it ends: the oracle sits that out.
--
--   GET /records/NAME   200 and the record, its version as ETag | 404
--   PUT /records/NAME   200 and the new ETag | 412: another version than `If-Match` says, or one where none should be
--   GET /records        the names, one a line
--
-- Usage: crown-lua record_server.lua PORT
local crown = require "crown"

local records, writes = {}, 0
local life = ("%.0f"):format(os.time()) -- so that no version comes twice, also from another life of this server

local function get(name)
  if name == "" then
    local names = {}
    for one in pairs(records) do names[#names + 1] = one end
    return 200, table.concat(names, "\n")
  end
  local record = records[name]
  if not record then return 404, "" end
  return 200, record.text, record.version
end

local function put(name, text, headers)
  local record = records[name]
  if headers["if-none-match"] == "*" and record then return 412, "" end
  if headers["if-match"] and headers["if-match"] ~= (record and record.version) then return 412, "" end
  writes = writes + 1
  records[name] = { text = text, version = ('"%s-%d"'):format(life, writes) }
  return 200, "", records[name].version
end

-- One request of HTTP/1.1: the request line, headers, as many bytes as they say.
local function read_request(connection)
  local line = connection:read("*l", 60)
  local method, name = (line or ""):match "^(%u+) /records/?([^/ ]*) HTTP/1%.[01]\r$"
  if not method then return nil end
  local headers = {}
  for header in function() return connection:read "*l" end do
    if header == "\r" then break end
    local key, value = header:match "^([^:]+):%s*(.-)\r$"
    if key then headers[key:lower()] = value end
  end
  local length = tonumber(headers["content-length"]) or 0
  if length > 65536 then return nil end
  return method, name, headers, length > 0 and connection:read(length) or ""
end

local REASONS = { [200] = "OK", [404] = "Not Found", [412] = "Precondition Failed" }

local listener = assert(crown.tcp.listen("127.0.0.1", tonumber(arg[1]) or 0, function(connection)
  while true do
    local method, name, headers, body = read_request(connection)
    if not method then break end
    local status, text, version
    if method == "PUT" then status, text, version = put(name, body, headers) else status, text, version = get(name) end
    if not connection:write(("HTTP/1.1 %d %s\r\n%sContent-Length: %d\r\n\r\n%s"):format(status, REASONS[status],
      version and "ETag: " .. version .. "\r\n" or "", #text, text)) then break end
  end
  connection:close()
end))
print("record server on port " .. listener:port())
