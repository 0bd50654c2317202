--- The objects of a bucket, with the conditions that S3 puts on a write and the codes that it answers with.
local crypto = require "crown.core.crypto"
local hex = require "crown.text.hex"
local json = require "crown.text.json"
local read_file = require "crown.text.read_file"
local write_file = require "support.write_file"

local Objects = {}
Objects.__index = Objects

--- Opens what a file has.
-- @string path
-- @treturn Objects
function Objects.open(path)
  local text = read_file(path)
  return setmetatable({ path = path, all = text and json.object(text) or {} }, Objects)
end

local function save(self) write_file(self.path, json.encode(self.all)) end

local MISSING = { 404, "NoSuchKey", "The specified key does not exist." }
local FAILED = { 412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold" }

-- @return a refusal, or nil
local function broken_condition(one, headers)
  if headers["if-none-match"] then
    if headers["if-none-match"] ~= "*" then
      return { 501, "NotImplemented", "A header you provided implies functionality that is not implemented" }
    end
    return one and FAILED
  end
  local wanted = headers["if-match"]
  if not wanted then return nil end
  if not one then return MISSING end
  return wanted ~= one.etag and wanted ~= one.etag:gsub('"', "") and FAILED or nil
end

--- Writes an object.
-- @string key
-- @string body
-- @tparam table headers of the request
-- @treturn table the object; or nil and a refusal `{ status, code, message }`
function Objects:put(key, body, headers)
  local refused = not self.ignores and broken_condition(self.all[key], headers)
  if refused then return nil, refused end
  self.all[key] = { body = body, etag = ('"%s"'):format(hex(crypto.sha256(body)):sub(1, 32)), written = os.time() }
  save(self)
  return self.all[key]
end

--- Reads an object.
-- @string key
-- @treturn table; or nil and a refusal
function Objects:get(key)
  local one = self.all[key]
  if not one then return nil, MISSING end
  return one
end

--- Deletes an object; one that is missing too.
-- @string key
function Objects:delete(key)
  self.all[key] = nil
  save(self)
end

--- The keys with a prefix.
-- @string prefix
-- @string after the last one of the page before
-- @number most
-- @treturn table an array, in order
-- @treturn boolean whether there are more
function Objects:list(prefix, after, most)
  local keys = {}
  for key in pairs(self.all) do
    if key:sub(1, #prefix) == prefix and key > after then keys[#keys + 1] = key end
  end
  table.sort(keys)
  local is_more = #keys > most
  for i = #keys, most + 1, -1 do keys[i] = nil end
  return keys, is_more
end

return Objects
