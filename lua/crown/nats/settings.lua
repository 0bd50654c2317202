--- What an election in a NATS bucket is told by its options, and what a bucket has to be for it.
-- @internal crown.nats.settings

local figure = require "crown.check.figure"
local login = require "crown.nats.login"
local named_files = require "crown.oracle.named_files"
local nats_url = require "crown.nats.url"
local store_options = require "crown.oracle.options"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local settings = {}

--- Seconds between two campaigns, as a part of the bucket's TTL: Choria's come so often, whatever ours do.
settings.INTERVAL = 0.75

--- Choria's own bucket.
settings.CHORIAS = "CHORIA_LEADER_ELECTION"
local CHORIAS_TTL, DEFAULT_TTL = 60, 10
local LEAST_TTL, MOST_TTL = 1, 3600

local LONGEST = 1024 -- bytes of a key; a server closes the connection at a line of more than 4096

local NAME_MOST = 252 -- bytes of a bucket: the server takes 255 for the stream, which is KV_BUCKET

local function length_problem(bucket)
  if #bucket > NAME_MOST then return ("is too long: %d bytes, and a server takes %d"):format(#bucket, NAME_MOST) end
end

local RULES = {
  url = { type = "string", default = "nats://127.0.0.1:4222" },
  bucket = { type = "string", match = "^[%w_-]+$", match_words = "letters, digits, '_' and '-'", check = length_problem },
  ttl = { type = "number", least = LEAST_TTL, most = MOST_TTL },
  refresh = { type = "number", above = 0, most = MOST_TTL },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(),
  cool_down = { type = "number", least = 0, most = 3600 },
  replicas = { type = "number", integer = true, least = 1, most = 5 },
  storage = { type = "string", values = { "file", "memory" }, default = "file" },
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
}
-- What the client reads from the URL.
local CLIENTS = { ca = true, cert = true, key = true, server_name = true, insecure = true, nkey = true, credentials = true }

local function bucket_of(opts)
  return opts.bucket or opts.url and opts.url:match "^%l+://[^/?]*/([^?]+)" or settings.CHORIAS
end

-- A key is a part of a subject. A server closes the connection of who publishes to what is none, and others share it.
local function check_key(key)
  if #key > LONGEST or key:find "[%s%c%*>]" or ("." .. key .. "."):find("..", 1, true) then
    usage.error("oracle 'nats_kv': '%s' is no key of a NATS bucket: no spaces, no '*' or '>', no '.' at an end or after another, "
      .. "at most %d bytes; give another lock", (key:sub(1, 60):gsub("%c", "?")), LONGEST)
  end
end

--- How long a winner waits before it acts: a campaigner of Choria's that was leader may act for one more interval of its own.
-- @number[opt] given by the options
-- @string bucket
-- @number ttl of the bucket
-- @treturn number seconds
function settings.cool_down(given, bucket, ttl)
  return given or bucket == settings.CHORIAS and ttl * settings.INTERVAL or 0
end

-- Other clients of NATS have an option of that name.
local function refuse_token(opts)
  local _, there = url.without(opts.url or "", {})
  if there.token or (opts.given or {}).token ~= nil then
    usage.error "oracle 'nats_kv': token is no option: a token stands in the URL, before the host, with an @ between"
  end
end

local function check_login(text)
  local parsed = nats_url.parse(text)
  if not parsed or not (parsed.nkey or parsed.credentials) then return end
  named_files.once("nats " .. text, function()
    local problem = login.problem(parsed)
    if problem then usage.error("oracle 'nats_kv': %s", problem) end
  end)
end

--- TTL and campaign interval, three quarters of the TTL, as Choria has it; and the cool-down.
-- @tparam table opts `ttl`, `refresh`, `cool_down`, `bucket`, `url`
-- @treturn number seconds
-- @treturn number seconds
-- @treturn number seconds
function settings.timing(opts)
  local bucket = bucket_of(opts)
  local ttl = tonumber(opts.ttl) or (bucket == settings.CHORIAS and CHORIAS_TTL or DEFAULT_TTL)
  return ttl, tonumber(opts.refresh) or ttl * settings.INTERVAL, settings.cool_down(tonumber(opts.cool_down), bucket, ttl)
end

--- Checks an election's options.
-- @tparam table opts
-- @treturn table those that count, with what the URL says; `bucket` is always there
-- @raise a usage error
function settings.check(opts)
  refuse_token(opts)
  local checked = store_options.check("nats_kv", opts, RULES, CLIENTS)
  local in_url = bucket_of { url = checked.url }
  if checked.bucket and in_url ~= settings.CHORIAS and in_url ~= checked.bucket then
    usage.error("oracle 'nats_kv': the bucket %s of the URL has no effect beside bucket = %s: give one of them", in_url,
      checked.bucket)
  end
  checked.bucket = bucket_of(checked)
  local rule = RULES.bucket
  if checked.bucket:find("@", 1, true) then usage.error("oracle 'nats_kv': %s", url.UNENCODED) end
  if not checked.bucket:match(rule.match) then
    usage.error("oracle 'nats_kv': the URL's bucket '%s' is not possible: %s", checked.bucket, rule.match_words)
  end
  local long = length_problem(checked.bucket)
  if long then usage.error("oracle 'nats_kv': the URL's bucket %s", long) end
  check_login(checked.url)
  local key = checked.lock or opts.crown_name
  if key then check_key(tostring(key)) end
  if checked.bucket ~= settings.CHORIAS then checked.replicas = checked.replicas or 1 end
  return checked
end

local ANOTHER = "mend it (nats stream edit), or name another bucket in the URL, which the first candidate makes"

--- What a bucket must be for elections.
-- @string name of the bucket
-- @tparam table info of Bucket:info
-- @treturn boolean true; or nil and a message
function settings.check_bucket(name, info)
  local problem
  if info.history ~= 1 then
    problem = "keeps history: elections need 1 value a key"
  elseif info.drops then
    problem = ("drops %s: elections need each until its TTL"):format(info.drops)
  elseif info.refuses then
    problem = info.refuses .. ": nobody can hold an election there"
  elseif info.ttl < LEAST_TTL or info.ttl > MOST_TTL then
    problem = ("has a TTL of %s s: elections need %d s to %d s"):format(figure.exact(info.ttl), LEAST_TTL, MOST_TTL)
  end
  if problem then return nil, ("the bucket %s %s; %s"):format(name, problem, ANOTHER) end
  return true
end

return settings
