--- Where a bucket is, and what the objects in it are called.
-- @internal crown.s3.place

local url = require "crown.text.url"

local place = {}

local KEPT = "@" -- of a name, besides letters, digits and "._~-"
local END = ".json" -- behind an election's name, so that no name is one of the dots that a path leaves out
local LONGEST = 1024 -- bytes of a key

local function first_of(...)
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    if value and value ~= "" then return value end
  end
end

-- @return scheme, host; or nil and a message
local function parse_endpoint(endpoint)
  local scheme, host = endpoint:match "^(https?)://([^/?#@]+)/?$"
  if not scheme then return nil, ("the endpoint is written https://host:port, not '%s'"):format(endpoint) end
  local bare = host:match(scheme == "https" and "^(.*):443$" or "^(.*):80$")
  return scheme, bare or host -- a Host header has no port where it is the scheme's own
end

local function of_aws(bucket, region)
  local domain = region:find "^cn%-" and "amazonaws.com.cn" or "amazonaws.com"
  -- The certificate of all buckets ends at the first dot.
  if bucket:find(".", 1, true) then return ("s3.%s.%s"):format(region, domain), "/" .. bucket end
  return ("%s.s3.%s.%s"):format(bucket, region, domain), ""
end

local function prefix_of(path)
  local prefix = url.decode(path):gsub("/+$", "")
  for part in (prefix == "" and "" or prefix .. "/"):gmatch "([^/]*)/" do
    if part == "" or part == "." or part == ".." then return nil end
  end
  return prefix == "" and "" or prefix .. "/"
end

--- Reads where the objects are.
-- @string text the URL: `s3://BUCKET/PREFIX`
-- @tparam table options `endpoint`, `region`, where the user gives them
-- @tparam table file what the profile's files say: `region`, `endpoint_url`
-- @treturn table `{ bucket =, prefix =, region =, scheme =, host =, path = }`, prefix with its "/"; or nil and a message
function place.find(text, options, file)
  local parts, problem = url.split(text)
  if not parts or parts.scheme ~= "s3" then return nil, problem or "the URL is written s3://BUCKET/PREFIX" end
  if parts.user then
    return nil, "a login is no part of the URL: it is read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the "
      .. "instance"
  end
  if not parts.hosts:find "^%w[%w._-]+$" then return nil, ("'%s' is no bucket's name: s3://BUCKET/PREFIX"):format(parts.hosts) end
  local prefix = prefix_of(parts.path)
  if not prefix then return nil, "the prefix must not have a part that is empty, '.' or '..'" end
  local found = { bucket = parts.hosts, prefix = prefix }
  local endpoint = first_of(options.endpoint, os.getenv "AWS_ENDPOINT_URL_S3", os.getenv "AWS_ENDPOINT_URL", file.endpoint_url)
  found.region = first_of(options.region, os.getenv "AWS_REGION", os.getenv "AWS_DEFAULT_REGION", file.region,
    endpoint and "us-east-1")
  if not found.region then return nil, "the bucket's region is not known: give region=NAME, or set AWS_REGION" end
  if endpoint then
    found.scheme, found.host = parse_endpoint(endpoint)
    if not found.scheme then return nil, found.host end
    found.path = "/" .. found.bucket
  else
    found.scheme, found.host, found.path = "https", of_aws(found.bucket, found.region)
  end
  return found
end

--- The key of a name's object, without the prefix.
-- @string name
-- @treturn string
function place.key(name)
  return url.encode(name, KEPT) .. END
end

--- The name that a key belongs to.
-- @string key without the prefix
-- @treturn string or nil: it is another one's
function place.name(key)
  local name = key:match("^([^/]*)%" .. END .. "$")
  return name and url.decode(name)
end

--- Whether S3 takes a name.
-- @tparam table found of place.find
-- @string name
-- @treturn boolean
function place.fits(found, name)
  return #found.prefix + #place.key(name) <= LONGEST
end

--- The path of an object.
-- @tparam table found of place.find
-- @string[opt] key without the prefix; none: the bucket itself
-- @treturn string encoded
function place.path(found, key)
  return found.path .. "/" .. (key and url.encode(found.prefix .. key, "/") or "")
end

return place
