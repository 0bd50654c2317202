--- What the verbs `info` and `check` ask of S3.
-- @internal crown.s3.tools

local conditions = require "crown.s3.conditions"
local figure = require "crown.check.figure"
local place = require "crown.s3.place"
local refusal = require "crown.s3.refusal"
local xml = require "crown.s3.xml"

local tools = {}

local PAGE = "1000" -- keys in an answer: S3's most
local HOUR = 3600
local PUT_PRICE, GET_PRICE = 5e-6, 4e-7 -- dollars a request: the list price of S3 Standard in us-east-1
local EARLY = 0.9 -- of the delay: a renewal comes so much sooner
local OF_LEADER, OF_FOLLOWER = 1, 2 -- GETs beside each renewal, and of each look

local function list(client, query, timeout)
  query["list-type"], query.prefix = "2", client.place.prefix
  return client:ask({ method = "GET", query = query, element = "ListBucketResult" }, timeout)
end

--- The names of all records.
-- @tparam Client client of crown.s3.client
-- @number timeout seconds for each page
-- @treturn table an array; or nil, message, code
function tools.names(client, timeout)
  local names, prefix, after = {}, client.place.prefix, nil
  repeat
    local answer, problem, code = list(client, { ["max-keys"] = PAGE, delimiter = "/", ["continuation-token"] = after }, timeout)
    if not answer then return nil, problem, code end
    for one in xml.each(answer.body, "Contents") do
      local key = xml.text(one, "Key") or ""
      names[#names + 1] = key:sub(1, #prefix) == prefix and place.name(key:sub(#prefix + 1)) or nil
    end
    after = xml.text(answer.body, "IsTruncated") == "true" and xml.text(answer.body, "NextContinuationToken")
  until not after
  return names
end

-- --- health

local function cost(puts, gets) return puts * PUT_PRICE + gets * GET_PRICE end

-- Of one election whose leader and followers are runtimes of their own.
local function requests(delay, retry)
  local renewals, looks = HOUR / (delay * EARLY), HOUR / retry
  return ("about %.0f an hour of a leader ($%s at AWS' list price), %.0f of a follower ($%s)"):format(renewals * (1 + OF_LEADER),
    figure.about(cost(renewals, renewals * OF_LEADER)), looks * OF_FOLLOWER, figure.about(cost(0, looks * OF_FOLLOWER)))
end

--- What the server says of itself, and what the requests cost.
-- @tparam Client client
-- @number delay seconds from one renewal to the next
-- @number retry seconds from one look of a follower to the next
-- @number timeout seconds for each question
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function tools.health(client, delay, retry, timeout)
  local where, warnings = client.place, {}
  local one, problem = client:logged_in(timeout)
  if not one then return nil, "s3: " .. problem, "usage" end
  local answer, code, said
  answer, problem, code, said = list(client, { ["max-keys"] = "1" }, timeout)
  local is_refusal = code == "store" and said.status ~= 200
  if not answer and not is_refusal then return nil, problem, code end -- who may not list hears that from `rights`
  local facts = { { "Server", answer and answer.headers.server or where.host }, { "Bucket", ("%s in %s"):format(where.bucket,
    where.region) }, { "Login", ("%s, from %s"):format(one.id, one.from) }, { "Requests", requests(delay, retry) } }
  -- Which needs a right of its own.
  answer = client:ask({ method = "GET", query = { versioning = "" }, element = "VersioningConfiguration" }, timeout)
  local versioning = answer and answer.status == 200 and xml.text(answer.body, "Status")
  if versioning then facts[#facts + 1] = { "Versioning", versioning } end
  if versioning == "Enabled" then
    warnings[1] = ("the bucket keeps versions: each renewal leaves one, some %.0f a day of a runtime; end noncurrent versions "
      .. "by a lifecycle rule"):format(24 * HOUR / (delay * EARLY))
  end
  return { facts = facts, warnings = warnings }
end

-- --- rights

local function lacks_words(where, action)
  local on = action == "s3:ListBucket" and where.bucket or ("%s/%s*"):format(where.bucket, where.prefix)
  return ("no policy allows '%s' on arn:aws:s3:::%s"):format(action, on)
end

-- @return the action that is missing, or false; or nil, message, code
local function missing(answer, problem, code, said, action)
  if answer then return false end
  if not said or said.status ~= 403 then return nil, problem, code end
  local kind, words = refusal.read(said, { bucket = "", prefix = "" })
  if kind ~= "AccessDenied" then return nil, problem or words, code end
  return refusal.action(said) or action
end

--- What a candidate may not do, as actions of a policy. Nothing is written.
-- @tparam Client client
-- @number timeout seconds for each question
-- @treturn table an array of texts; or nil, message, code
function tools.rights(client, timeout)
  local lacks, seen = {}, {}
  local function try(action, answer, problem, code, said)
    local found, words, kind = missing(answer, problem, code, said, action)
    if found == nil then return nil, words, kind end
    if found and not seen[found] then lacks[#lacks + 1], seen[found] = lacks_words(client.place, found), true end
    return true
  end
  local fine, problem, code = try("s3:ListBucket", list(client, { ["max-keys"] = "1" }, timeout))
  if not fine then return nil, problem, code end
  -- Without the right to list, an object that is missing is answered as one that is forbidden.
  local answer, why, kind, said = client:ask({ method = "GET", key = conditions.KEY }, timeout)
  if answer or not seen["s3:ListBucket"] or said and refusal.action(said) then
    fine, problem, code = try("s3:GetObject", answer, why, kind, said)
    if not fine then return nil, problem, code end
  end
  fine, problem, code = try("s3:PutObject", conditions.try(client, timeout))
  if not fine then return nil, problem, code end
  return lacks
end

return tools
