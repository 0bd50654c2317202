--- Raw HTTP requests, as they are on the wire.
local crown = require "crown"

local http = {}

local MOST = 2 ^ 20 -- what one read may ask for

--- @tparam number port on loopback
-- @string request method and path: "GET /metrics"
-- @string[opt] body
-- @treturn table `{ status =, headers = text, body = }`
function http.ask(port, request, body)
  local connection = assert(crown.tcp.connect("127.0.0.1", port))
  connection:set_timeout(20)
  assert(connection:write(("%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s")
    :format(request, port, #(body or ""), body and "Content-Type: application/json\r\n" or "", body or "")))
  local status = assert(connection:read "*l"):match "HTTP/1.%d (%d+)"
  local headers, length = {}, 0
  for line in function() return connection:read "*l" end do
    line = line:gsub("\r$", "")
    if line == "" then break end
    headers[#headers + 1] = line
    length = tonumber(line:lower():match "^content%-length:%s*(%d+)") or length
  end
  local parts, left = {}, request:find "^HEAD" and 0 or length
  while left > 0 do
    local part = assert(connection:read(math.min(left, MOST)))
    parts[#parts + 1], left = part, left - #part
  end
  local text = table.concat(parts)
  connection:close()
  return { status = tonumber(status), headers = table.concat(headers, "\n"), body = text }
end

return http
