--- What S3 says where it does not do what was asked, in words for a person.
-- @internal crown.s3.refusal

local calendar = require "crown.text.calendar"
local printable = require "crown.text.printable"
local xml = require "crown.s3.xml"

local refusal = {}

local SHOWN = 300 -- bytes of the server's own words
local PAGE = 60 -- bytes of what another server says

--- Codes that say that the login is not taken, or not any more.
refusal.OF_LOGIN = { ExpiredToken = true, InvalidToken = true, InvalidAccessKeyId = true, SignatureDoesNotMatch = true,
  TokenRefreshRequired = true }

local words = {}

function words.AccessDenied(where)
  return ("it needs s3:GetObject and s3:PutObject on %s/%s* and s3:ListBucket on the bucket"):format(where.bucket, where.prefix)
end

function words.NoSuchBucket(where) return ("make the bucket %s, or mend its name or region"):format(where.bucket) end

function words.InvalidAccessKeyId() return "it does not know this access key: is it of this server?" end

function words.SignatureDoesNotMatch() return "is the secret key right? A proxy that changes requests does this too" end

function words.InvalidToken()
  return "it does not take this session token: keys of a role need the AWS_SESSION_TOKEN that they came with"
end

function words.ExpiredToken() return "the login has expired, and what it is read from has no newer one" end

function words.RequestTimeTooSkewed(_, answer)
  local theirs = calendar.of_header(answer.headers.date)
  return ("the clock of this host is wrong%s: S3 takes at most 15 minutes"):format(
    theirs and (" by %.0f s, by the server's"):format(math.abs(os.time() - theirs)) or "")
end

local function in_region(where, answer)
  local region = answer.headers["x-amz-bucket-region"] or xml.text(answer.body, "Region")
  return region and region ~= where.region and ("the bucket is in region %s: give region=%s"):format(region, region)
end

--- Reads an answer that is no success.
-- @tparam table answer of crown.http
-- @tparam table where of crown.s3.place
-- @treturn string S3's own code, or the status
-- @treturn string what to show
function refusal.read(answer, where)
  local code = xml.text(answer.body, "Code") or tostring(answer.status)
  local said = xml.text(answer.body, "Message")
  local text = said and said ~= "" and (": " .. printable(said:sub(1, SHOWN))) or ""
  local step = words[code] and words[code](where, answer) or in_region(where, answer)
  return code, ("it answered %d %s%s%s"):format(answer.status, printable(code), text, step and "; " .. step or "")
end

-- A proxy, a portal or a server of another kind answers with a page; no record begins as one does.
local function is_page(answer, question)
  if question.element then return not answer.body:find("<" .. question.element, 1, true) end
  return answer.body:find "^%s*<" ~= nil
end

--- Says of an answer that tells success that it is not S3's.
-- @tparam table answer of crown.http
-- @tparam table question as Client:ask has it
-- @treturn string what to show; or nil: it may be S3's
function refusal.of_another(answer, question)
  if answer.status ~= 200 or not is_page(answer, question) then return nil end
  local text = printable(answer.body)
  return ('it answered 200 with what is not S3\'s: "%s"; this is not the store, so delete nothing: is the endpoint right, and '
    .. "does a proxy or a page for maintenance stand before it?"):format(#text > PAGE and text:sub(1, PAGE) .. "…" or text)
end

--- The action of a policy that an answer names as missing.
-- @tparam table answer
-- @treturn string "s3:PutObject", or nil
function refusal.action(answer)
  return (xml.text(answer.body, "Message") or ""):match "not authorized to perform: (s3:%w+)"
end

return refusal
