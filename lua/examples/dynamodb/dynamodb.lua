-- An oracle in a table of DynamoDB: an item for each record, written where the item still has the text that was read. That text
-- has a nonce, so no version comes twice.
--
--   dynamodb://dynamodb.REGION.amazonaws.com/TABLE?region=REGION
--
-- The table's partition key is `name`, a string. The login is that of AWS's command line: the environment, a profile, the
-- container or the instance. A policy needs dynamodb:GetItem, dynamodb:PutItem and, for `info`, dynamodb:Scan.
-- crown.s3 and crown.text are no public modules of crown-lua: try this again by `check --laws` with each new version of it.
local crown = require "crown"
local json = require "crown.text.json"
local login = require "crown.s3.login"
local signature = require "crown.s3.signature"

local KEPT = 60 -- seconds until the login is read again
local OF_LOGIN = { ExpiredTokenException = true, UnrecognizedClientException = true, InvalidSignatureException = true }
local CHANGED = "ConditionalCheckFailedException"

local place = {} -- by URL: the login, and until when it is used

local function logged_in(self)
  local here = place[self.options.url] or {}
  place[self.options.url] = here
  if here.login and os.time() < here.over then return here.login, here end
  local found, problem = login.find(self.options.profile, self.timeout)
  if not found then return nil, problem end
  here.login, here.over = found, os.time() + KEPT
  return found, here
end

-- @return what DynamoDB answers; or nil, a reason and its own name for it
local function ask(self, action, question)
  local one, here = logged_in(self)
  if not one then return nil, here end
  question.TableName = self.table
  local body = json.encode(question)
  local headers = signature.headers({ method = "POST", path = "/", body = body, headers = { Host = self.host,
    ["Content-Type"] = "application/x-amz-json-1.0", ["X-Amz-Target"] = "DynamoDB_20120810." .. action } },
    one, self.options.region, os.time(), "dynamodb")
  local scheme = self.options.plain and "http" or "https"
  local answer, problem, code = crown.http.request { url = ("%s://%s/"):format(scheme, self.host), method = "POST", body = body,
    headers = headers, timeout = self.timeout, ca = self.options.ca }
  if not answer then return nil, problem, code end
  local found = json.object(answer.body)
  if answer.status == 200 and found then return found end
  local kind = found and tostring(found.__type):match "[^#]*$" or "no JSON"
  if OF_LOGIN[kind] then here.login = nil end
  local words = found and (found.message or found.Message) or ""
  return nil, ("DynamoDB answered %d %s: %s"):format(answer.status, kind, tostring(words)), kind
end

local function read(self)
  local found, problem = ask(self, "GetItem", { Key = { name = { S = self.name } }, ConsistentRead = true })
  if not found then return nil, problem end
  local text = found.Item and found.Item.record and found.Item.record.S
  if not text then return false end
  return text, text
end

-- A write that went out twice, on a connection that ended, is refused for its own success.
local function not_written(self, text)
  local there, version = read(self)
  if there == nil then return nil, version end
  return there == text and text
end

return require("crown.oracle.cas").oracle {
  word = "dynamodb",
  init = function(self)
    self.host, self.table = tostring(self.options.url):match "^%l+://([%w.:-]+)/([%w_.-]+)"
    if not self.host then return nil, "the URL is written dynamodb://dynamodb.REGION.amazonaws.com/TABLE?region=REGION" end
    if not self.options.region then return nil, "region is required" end
    return true
  end,
  read = read,
  write = function(self, text, version)
    local question = { Item = { name = { S = self.name }, record = { S = text } },
      ExpressionAttributeNames = { ["#there"] = version and "record" or "name" },
      ConditionExpression = version and "#there = :version" or "attribute_not_exists(#there)",
      ExpressionAttributeValues = version and { [":version"] = { S = version } } or nil }
    local done, problem, kind = ask(self, "PutItem", question)
    if done then return text end
    if kind == CHANGED then return not_written(self, text) end
    return nil, problem
  end,
  names = function(self)
    local names, after = {}, nil
    repeat
      local found, problem = ask(self, "Scan", { ProjectionExpression = "#name", ConsistentRead = true,
        ExpressionAttributeNames = { ["#name"] = "name" }, ExclusiveStartKey = after })
      if not found then return nil, problem end
      for _, item in ipairs(found.Items) do names[#names + 1] = item.name.S end
      after = found.LastEvaluatedKey
    until not after
    return names
  end,
}
