--- A program: a stand-in for DynamoDB that knows one table, "elections", with the partition key `name`. stand_in.lua PORT FILE [FOLDER], as
-- support.web has it.
--
-- It is strict: about signatures (support.s3.signed), about words that are reserved, and about names and values that an expression does not
-- use. A read that is not consistent may be answered by what stood at the trick "stale". POST /trick has what support.web has, with
-- `status`, `code` and `message`, `stale = true`, and `page =`, items in the answer to a scan.
local core = require "crown.core"
local json = require "crown.text.json"
local read_file = require "crown.text.read_file"
local signed = require "support.s3.signed"
local web = require "support.web"
local write_file = require "support.write_file"

local REGION = "eu-central-1"
local RESERVED = { name = true, version = true, record = false }
local logins = { AKIAALL = { secret = "all/+secret" }, AKIATOKEN = { secret = "token-secret", token = "session/token+" },
  AKIAREAD = { secret = "read", only = "GetItem" } }

local text = read_file(arg[2])
local items, trick, stale = text and json.object(text) or {}, {}, nil

local function respond(connection, status, found)
  return web.respond(connection, status, json.encode(found), { ["Content-Type"] = "application/x-amz-json-1.0" })
end

local function refuse(connection, status, kind, message)
  return respond, connection, status, { __type = "com.amazonaws.dynamodb.v20120810#" .. kind, message = message }
end

local function invalid(connection, message) return refuse(connection, 400, "ValidationException", message) end

-- The attribute that a word of an expression means; nil where it may not be written so.
local function attribute(word, names, used)
  if word:sub(1, 1) ~= "#" then return not RESERVED[word] and word or nil end
  used[word] = true
  return names[word]
end

-- @return whether the condition holds; or nil: it is none
local function holds(item, question, used)
  local names, values, said = question.ExpressionAttributeNames or {}, question.ExpressionAttributeValues or {},
    question.ConditionExpression
  if not said then return true end
  local word = said:match "^attribute_not_exists%(([#%w]+)%)$"
  if word then
    local found = attribute(word, names, used)
    return found and not (item and item[found]) or (found and false)
  end
  local left, right = said:match "^([#%w]+) = (:%w+)$"
  local found = left and attribute(left, names, used)
  if not found or not values[right] then return nil end
  used[right] = true
  return item ~= nil and item[found] ~= nil and item[found].S == values[right].S
end

local function unused(question, used)
  for _, list in ipairs { question.ExpressionAttributeNames or {}, question.ExpressionAttributeValues or {} } do
    for word in pairs(list) do
      if not used[word] then return word end
    end
  end
end

local actions = {}

function actions.GetItem(connection, question)
  local name = question.Key and question.Key.name and question.Key.name.S
  if not name then return invalid(connection, "The provided key element does not match the schema") end
  local from = question.ConsistentRead ~= true and stale or items
  return respond, connection, 200, { Item = from[name] }
end

function actions.PutItem(connection, question)
  local item, used = question.Item, {}
  local name = item and item.name and item.name.S
  if not name or name == "" then return invalid(connection, "One or more parameter values were invalid: Missing the key name") end
  local fine = holds(items[name], question, used)
  if fine == nil then return invalid(connection, "Invalid ConditionExpression: Attribute name is a reserved keyword, or a syntax error") end
  if unused(question, used) then return invalid(connection, "Value unused in expressions: " .. unused(question, used)) end
  if not fine then return refuse(connection, 400, "ConditionalCheckFailedException", "The conditional request failed") end
  items[name] = item
  write_file(arg[2], json.encode(items))
  return respond, connection, 200, {}
end

function actions.Scan(connection, question)
  local names, found = {}, {}
  local after = question.ExclusiveStartKey and question.ExclusiveStartKey.name.S or ""
  local projected = attribute(question.ProjectionExpression or "", question.ExpressionAttributeNames or {}, {})
  if not projected then return invalid(connection, "Invalid ProjectionExpression: Attribute name is a reserved keyword") end
  for name in pairs(items) do names[#names + 1] = name > after and name or nil end
  table.sort(names)
  for i = 1, math.min(#names, trick.page or 1000) do found[i] = { [projected] = items[names[i]][projected] } end
  local is_more = #found < #names
  return respond, connection, 200, { Items = setmetatable(found, core.json.array_mt), Count = #found,
    LastEvaluatedKey = is_more and { name = { S = names[#found] } } or nil }
end

local function carry_out(connection, request, login)
  local action = (request.headers["x-amz-target"] or ""):match "^DynamoDB_20120810%.(%a+)$"
  if request.method ~= "POST" or request.path ~= "/" or request.headers["content-type"] ~= "application/x-amz-json-1.0" then
    return refuse(connection, 400, "SerializationException", "")
  end
  if not actions[action] then return refuse(connection, 400, "UnknownOperationException", "") end
  if login.only and login.only ~= action then
    return refuse(connection, 400, "AccessDeniedException", "User is not authorized to perform: dynamodb:" .. action)
  end
  local question = json.object(request.body)
  if not question then return refuse(connection, 400, "SerializationException", "") end
  if question.TableName ~= "elections" then
    return refuse(connection, 400, "ResourceNotFoundException", "Requested resource not found")
  end
  return actions[action](connection, question)
end

web.serve(tonumber(arg[1]) or 0, arg[3], function(found)
  trick, stale = found, found.stale and json.object(json.encode(items)) or nil
  for id, one in pairs(found.logins or {}) do logins[id] = one end
end, function(connection, request)
  local id, _, kind, message = signed.check(request, logins, REGION, "dynamodb")
  local function denied(...) return select(1, ...)(select(2, ...)) end
  if not id then
    return denied(refuse(connection, 400, kind == "ExpiredToken" and "ExpiredTokenException" or "UnrecognizedClientException", message))
  end
  return web.carry_out(trick, request, function() return denied(refuse(connection, trick.status, trick.code, trick.message or "")) end,
    function() return carry_out(connection, request, logins[id]) end)
end)
