--- A register in the key-value store of Consul: a key for each record, written where its ModifyIndex is the one that is named.
-- @internal crown.stores.consul

local base64 = require "crown.text.base64"
local Bell = require "crown.consul.bell"
local calendar = require "crown.text.calendar"
local Client = require "crown.consul.client"
local json = require "crown.text.json"
local options = require "crown.consul.options"
local place = require "crown.consul.place"
local record = require "crown.register.record"
local singly = require "crown.link.singly"
local store_options = require "crown.oracle.options"
local tools = require "crown.consul.tools"

local driver = { word = "consul", ttl = 15, schemes = { "consul", "consuls" },
  options = { recipe = { type = "string", values = options.RECIPES } } }
for name, rule in pairs(options.COMMON) do driver.options[name] = rule end

local NO_MEMORY = "" -- nothing in Consul's API tells what it has from what a snapshot brings back
local NO_KEY = 0 -- the index that a write names where there is no key

local Store = { deletes = true }
Store.__index = function(self, name)
  if name == "deaf" then return self.bell.deaf end
  return Store[name]
end

-- --- looks

local function read(self, answer, key)
  local now = calendar.of_header(answer.headers.date)
  local found = { text = false, version = false, memory = NO_MEMORY, time = now and now * 1000 }
  if not self.client.index(answer) then return self.client:strange() end
  if answer.status == 404 then return found end
  local list = json.list(answer.body)
  local entry = list and list[1]
  local index = type(entry) == "table" and entry.Key == key and tonumber(entry.ModifyIndex)
  local text = index and (type(entry.Value) == "string" and base64.decode(entry.Value) or "")
  if not text then return self.client:strange() end
  found.text, found.version = text, ("%.0f"):format(index)
  return found
end

local function look_at(self, name)
  local key = self.client.prefix .. place.key(name)
  local answer, problem, code = self.client:ask({ path = place.path(key) .. "?consistent", is_urgent = record.is_reserved(name) },
    self.place.timeout)
  if not answer then return nil, problem, code end
  return read(self, answer, key)
end

--- Looks at records.
-- @tparam table names
-- @treturn table for each name `{ text =, version =, memory =, time = in ms, by the agent's clock }`, text and version false
-- where there is none; or nil, message, code
function Store:look(names)
  return singly.look(names, function(name) return look_at(self, name) end)
end

-- --- writes

local function operation(write, key)
  local index = tonumber(write.version) or NO_KEY
  if not write.text then return { Verb = "delete-cas", Key = key, Index = index } end
  return { Verb = "cas", Key = key, Value = base64.encode(write.text), Index = index }
end

-- A bell that others have rung meanwhile keeps no record from being written: nothing was, so it is asked again.
local function transact(self, write, key)
  local urgent, one = record.is_reserved(write.name), operation(write, key)
  if write.quiet or not record.is_news(write) then return self.client:write({ one }, self.place.timeout, urgent) end
  local ring, news, results, problem, code
  for _, is_plain in ipairs { false, true } do
    ring, news = self.bell:ring(write, is_plain)
    results, problem, code = self.client:write({ one, ring }, self.place.timeout, urgent)
    if results ~= false or problem[1] then break end
  end
  local last = results and results[#results]
  if last and last.Key == self.bell.key then self.bell:rang(tonumber(last.ModifyIndex), news) end
  return results, problem, code
end

-- A transaction that went out twice, on a connection that ended, is refused for its own success.
local function not_done(self, write)
  local answer, problem, code = look_at(self, write.name)
  if not answer then return nil, problem, code end
  return answer.text == write.text and (answer.version or "")
end

local function put(self, write)
  local key = self.client.prefix .. place.key(write.name)
  local results, problem, code = transact(self, write, key)
  if results == nil then return nil, problem, code end
  if not results then return not_done(self, write) end
  local first = results[1]
  if not write.text then return "" end
  local index = first and first.Key == key and tonumber(first.ModifyIndex)
  if not index then return self.client:strange() end
  return ("%.0f"):format(index)
end

--- Writes records, each over the version that it names.
-- @tparam table writes each `{ name =, version = or false, text = }`
-- @treturn table for each the new version, false where another one stands, nil where nobody knows; or nil, message, code
function Store:swap(writes)
  return singly.swap(writes, function(write) return put(self, write) end)
end

-- --- the rest

--- Hears of changes, as crown.oracle.driven has it.
-- @tparam function fn
function Store:hear(fn)
  self.bell:listen(fn, function() return self.place.timeout end)
end

--- The names of all records.
-- @treturn table an array; or nil, message, code
function Store:names() return tools.names(self.client, self.place.timeout) end

--- What Consul says of itself.
-- @treturn table `{ facts =, warnings =, problems = }`; or nil, message, code
function Store:health() return tools.health(self.client, self.place.timeout) end

--- What a candidate lacks.
-- @treturn table an array of texts; or nil, message, code
function Store:rights() return tools.rights(self.client, self.place.timeout) end

--- Checks the user's options.
-- @tparam table opts
-- @tparam table rules
-- @treturn table the options, checked; or nil and a message
function driver.check(opts, rules)
  local checked = store_options.check(driver.word, opts, rules)
  local found, problem = place.find(checked.url)
  if not found then return nil, problem end
  return checked
end

--- Makes a store, and asks nobody yet.
-- @tparam table where see crown.oracle.driven
-- @treturn Store or nil and a message
function driver.open(where)
  local client, problem = Client.new(where.url, where.options, not where.only_looks)
  if not client then return nil, problem end
  return setmetatable({ place = where, client = client, bell = Bell.new(client, not where.only_looks) }, Store)
end

return driver
