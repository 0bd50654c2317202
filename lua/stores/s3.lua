--- A register in a bucket of S3, or of a server that speaks as it does: an object for each record, written under a condition.
-- @internal crown.stores.s3

local calendar = require "crown.text.calendar"
local Client = require "crown.s3.client"
local conditions = require "crown.s3.conditions"
local place = require "crown.s3.place"
local record = require "crown.register.record"
local singly = require "crown.link.singly"
local store_options = require "crown.oracle.options"
local tools = require "crown.s3.tools"
local usage = require "crown.check.usage"

local driver = { word = "s3", ttl = 15, schemes = { "s3" }, options = {
  url = { type = "string" },
  endpoint = { type = "string", match = "^https?://", match_words = "it is the server's URL, https://host:port" },
  region = { type = "string", match = "^[%w-]*$", match_words = "letters, digits and '-', such as eu-central-1" },
  profile = { type = "string" },
  ca = { type = "string" }, cert = { type = "string" }, key = { type = "string" },
} }

local RETRY = 1 -- seconds, as of crown.oracle.driven
local NO_MEMORY = "" -- nothing of S3 tells one bucket from another of its name

local Store = {}
Store.__index = Store

-- --- looks

local NO_TAG = "unexpected reply, without an ETag; is the endpoint that of a store that speaks as S3 does?"

local function read(client, answer)
  local now = calendar.of_header(answer.headers.date)
  local found = { text = false, version = false, memory = NO_MEMORY, time = now and now * 1000 }
  if answer.status ~= 200 then return found end
  local written = calendar.of_header(answer.headers["last-modified"])
  found.text, found.version, found.age = answer.body, answer.headers.etag, now and written and math.max(0, now - written)
  if not found.version then return nil, client:named(NO_TAG), "protocol" end
  return found
end

local function look_at(self, name)
  local answer, problem, code = self.client:ask({ method = "GET", key = place.key(name), is_urgent = record.is_reserved(name) },
    self.place.timeout)
  if not answer then return nil, problem, code end
  return read(self.client, answer)
end

--- Looks at records.
-- @tparam table names
-- @treturn table for each name `{ text =, version =, memory =, age = in seconds, time = in ms, by the server's clock }`, text and
-- version false where there is none; or nil, message, code
function Store:look(names)
  return singly.look(names, function(name) return look_at(self, name) end)
end

-- --- writes

-- A write that was not done though its version stands: the server wants its condition otherwise than it did.
local function is_misread(self, write)
  local answer = write.version and look_at(self, write.name)
  return answer and answer.version == write.version
end

local function put(self, write, form)
  local tag = write.version and conditions.tag(write.version, form == "bare")
  local headers = tag and { ["If-Match"] = tag } or { ["If-None-Match"] = "*" }
  local answer, problem, code = self.client:ask({ method = "PUT", key = place.key(write.name), headers = headers,
    body = write.text, is_urgent = record.is_reserved(write.name) }, self.place.timeout)
  if not answer then return nil, problem, code end
  if answer.status == 200 then
    if answer.headers.etag then return answer.headers.etag end
    return nil, self.client:named(NO_TAG), "protocol"
  end
  if not is_misread(self, write) then return false end
  self.form = nil
  return nil, self.client:named "the server did not write over a version that stands", "store"
end

--- Writes records, each over the version that it names.
-- @tparam table writes each `{ name =, version = or false, text = }`
-- @treturn table for each the new version, false where another one stands, nil where nobody knows; or nil, message, code
function Store:swap(writes)
  local form = self.form
  if not form then
    local problem, code
    form, problem, code = conditions.prove(self.client, self.place.timeout)
    if not form then return nil, problem, code end
    self.form = form
  end
  return singly.swap(writes, function(write) return put(self, write, form) end)
end

-- --- the rest

--- The names of all records.
-- @treturn table an array; or nil, message, code
function Store:names() return tools.names(self.client, self.place.timeout) end

--- What the server says of itself.
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function Store:health()
  local options = self.place.options
  local _, delay = store_options.timing(options, driver.ttl)
  return tools.health(self.client, delay, options.retry or RETRY, self.place.timeout)
end

--- What a candidate lacks.
-- @treturn table an array of texts; or nil, message, code
function Store:rights(patience) return tools.rights(self.client, patience or self.place.timeout) end

--- Ends it.
function Store:close() self.client = nil end

--- Checks the user's options.
-- @tparam table opts
-- @tparam table rules
-- @treturn table the options, checked; or nil and a message
function driver.check(opts, rules)
  local name = tostring(opts.endpoint):find "^http:" and store_options.of_tls(opts)
  if name then usage.error("oracle 's3': %s has no effect without TLS: endpoint=https://…", name) end
  local checked = store_options.check(driver.word, opts, rules)
  if checked.region == "" then usage.error "oracle 's3': region is empty: leave it out, or say which" end
  local found, problem = place.find(checked.url, { endpoint = checked.endpoint, region = checked.region or "none" }, {})
  if not found then return nil, problem end
  if checked.lock and not place.fits(found, tostring(checked.lock)) then
    usage.error("oracle 's3': lock must not be longer: the object's key has at most 1024 bytes")
  end
  return checked
end

--- Makes a store, and asks nobody yet.
-- @tparam table where see crown.oracle.driven
-- @treturn Store or nil and a message
function driver.open(where)
  local client, problem = Client.new(where.url, where.options, not where.only_looks)
  if not client then return nil, problem end
  return setmetatable({ place = where, client = client }, Store)
end

return driver
