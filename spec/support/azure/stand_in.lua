--- A program: a stand-in for Azure's Blob storage that knows one account, "spec", with one container, "elections". stand_in.lua PORT FILE
-- [FOLDER], as support.web has it.
--
-- It is strict about the Shared Key's signature, which it makes apart from the example, and about conditions, and answers with Azure's
-- codes. POST /trick has what support.web has, with `status` and `code`, and `page =`, blobs in the answer to a list.
local base64 = require "crown.text.base64"
local calendar = require "crown.text.calendar"
local crypto = require "crown.core.crypto"
local json = require "crown.text.json"
local read_file = require "crown.text.read_file"
local web = require "support.web"
local write_file = require "support.write_file"

local ACCOUNT, KEY = "spec", "the-key-of-the-account"
local SKEW = 900 -- seconds
local LINES = { "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date", "if-modified-since",
  "if-match", "if-none-match", "if-unmodified-since", "range" }

local text = read_file(arg[2])
local kept, trick = text and json.object(text) or { count = 0, blobs = {} }, {}

local function respond(connection, status, body, headers)
  local all = { ["x-ms-version"] = "2021-08-06" }
  for name, value in pairs(headers or {}) do all[name] = value end
  return web.respond(connection, status, body, all)
end

local function refuse(connection, status, code)
  return respond(connection, status, ('<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code></Error>'):format(code),
    { ["x-ms-error-code"] = code })
end

local function is_signed(request)
  local headers, lines = request.headers, { request.method }
  local time = calendar.of_header(headers["x-ms-date"])
  if not time or math.abs(os.time() - time) > SKEW or not headers["x-ms-version"] then return false end
  for _, name in ipairs(LINES) do
    local value = headers[name] or ""
    lines[#lines + 1] = name == "content-length" and value == "0" and "" or value
  end
  local names, words = {}, {}
  for name in pairs(headers) do names[#names + 1] = name:find "^x%-ms%-" and name or nil end
  table.sort(names)
  for _, name in ipairs(names) do lines[#lines + 1] = name .. ":" .. headers[name] end
  lines[#lines + 1] = "/" .. ACCOUNT .. request.path
  for name in pairs(request.options) do words[#words + 1] = name end
  table.sort(words)
  for _, name in ipairs(words) do lines[#lines + 1] = name .. ":" .. request.options[name] end
  return headers.authorization == ("SharedKey %s:%s"):format(ACCOUNT, base64.encode(crypto.hmac_sha256(KEY, table.concat(lines, "\n"))))
end

local function put(connection, name, request)
  local headers, one = request.headers, kept.blobs[name]
  if headers["x-ms-blob-type"] ~= "BlockBlob" then return refuse, connection, 400, "MissingRequiredHeader" end
  if headers["if-none-match"] == "*" and one then return refuse, connection, 409, "BlobAlreadyExists" end
  if headers["if-match"] and headers["if-match"] ~= (one and one.etag) then return refuse, connection, 412, "ConditionNotMet" end
  if one and one.leased then return refuse, connection, 412, "LeaseIdMissing" end
  kept.count = kept.count + 1
  kept.blobs[name] = { text = request.body, etag = ('"0x%015X"'):format(0x8DD0000 * 65536 + kept.count) }
  write_file(arg[2], json.encode(kept))
  return respond, connection, 201, "", { ETag = kept.blobs[name].etag }
end

local function list(connection, options)
  local names, parts = {}, {}
  for name in pairs(kept.blobs) do
    if name:sub(1, #options.prefix) == options.prefix and name > options.marker then names[#names + 1] = name end
  end
  table.sort(names)
  local most = math.min(#names, trick.page or 5000)
  for i = 1, most do parts[i] = ("<Blob><Name>%s</Name></Blob>"):format(names[i]) end
  return respond, connection, 200, ("<EnumerationResults><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>"):format(
    table.concat(parts), most < #names and names[most] or "")
end

local function carry_out(connection, request)
  local container, name = request.path:match "^/([^/]*)/?(.*)$"
  if container ~= "elections" then return refuse, connection, 404, "ContainerNotFound" end
  name = name:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  if name == "" and request.options.comp == "list" and request.options.restype == "container" then
    return list(connection, request.options)
  end
  if request.method == "PUT" then return put(connection, name, request) end
  local one = kept.blobs[name]
  if not one then return refuse, connection, 404, "BlobNotFound" end
  if request.method == "DELETE" then
    kept.blobs[name] = nil
    return respond, connection, 202, ""
  end
  return respond, connection, 200, one.text, { ETag = one.etag }
end

web.serve(tonumber(arg[1]) or 0, arg[3], function(found) trick = found end, function(connection, request)
  if not is_signed(request) then return refuse(connection, 403, "AuthenticationFailed") end
  return web.carry_out(trick, request, function() return refuse(connection, trick.status, trick.code) end,
    function() return carry_out(connection, request) end)
end)
