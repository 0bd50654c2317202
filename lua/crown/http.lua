--- HTTP for oracles and handlers: `crown.http`.
-- @module crown.http

local base64 = require "crown.text.base64"
local request = require "crown.core.http_request"

local http = {}

local function headers_of(options)
  local headers = {}
  for name, value in pairs(options.headers or {}) do headers[name] = tostring(value) end
  if options.user then headers.Authorization = "Basic " .. base64.encode(options.user .. ":" .. (options.password or "")) end
  if options.bearer then headers.Authorization = "Bearer " .. options.bearer end
  if options.body and not headers["Content-Type"] then headers["Content-Type"] = "application/json" end
  headers.Expect = headers.Expect or ""
  return headers
end

local function parse(lines)
  local headers = {}
  for name, value in lines:gmatch "\n([^:\r\n]+):[ \t]*([^\r\n]*)" do headers[name:lower()] = value end
  return headers
end

--- Asks once. Redirects are not followed.
-- @tparam table options `url`; `method`, `headers`, `body`; `timeout` seconds (5); `user` and `password`, or `bearer`; `ca`,
-- `cert`, `key` (files), or `ca_data`, `cert_data`, `key_data` (PEM); `insecure`; `most` bytes of the answer's body (16 MiB);
-- `silence` seconds that a peer which acknowledges nothing goes unnoticed (10)
-- @treturn table `{ status =, headers = by lower-case name, body = }`; or nil, message, code ("timeout", "closed", "protocol", …)
function http.request(options)
  local given = {}
  for key, value in pairs(options) do given[key] = value end
  given.headers = headers_of(options)
  local status, lines, body = request(given)
  if not status then return nil, lines, body end
  return { status = status, headers = parse(lines), body = body }
end

--- Asks for an answer that comes line by line, without end.
-- @tparam table options as for request, without `timeout`
-- @treturn stream `:line(timeout)` → a line; or nil, message, code; `:status()`; `:close()`; or nil, message, code
function http.stream(options)
  local given = { stream = true }
  for key, value in pairs(options) do given[key] = value end
  given.headers = headers_of(options)
  return request(given)
end

return http
