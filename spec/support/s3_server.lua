--- A stand-in for S3 of the spec's own (s3/stand_in.lua), on a free loopback port.
local ffi = require "ffi"
local signature = require "crown.s3.signature"
local StandIn = require "support.stand_in"
local write_file = require "support.write_file"

ffi.cdef "int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char *name);"

local Server = setmetatable({}, StandIn)
Server.__index = Server

local REGION = "eu-central-1"
local FILE = "[default]\naws_access_key_id = AKIAALL\naws_secret_access_key = all/+secret\n"

--- Sets a variable of this process's environment, and so of the programs that it starts.
-- @string name
-- @string[opt] value nil: there is none
function Server.set(name, value)
  if value then ffi.C.setenv(name, value, 1) else ffi.C.unsetenv(name) end
end

--- Starts one. Who logs in by nothing else does it by its file of profiles.
-- @string[opt] authority the directory of support.authority: then it speaks TLS
-- @treturn Server `port`, `base` (its URL), `profiles`, `data`: its file
function Server.start(authority)
  local self = StandIn.make("spec/support/s3/stand_in.lua", Server, authority)
  self.profiles = self.dir .. "/credentials"
  write_file(self.profiles, FILE)
  Server.set("AWS_SHARED_CREDENTIALS_FILE", self.profiles)
  self:up()
  return self
end

--- The URL of an oracle there.
-- @string[opt] more options
-- @number[opt] at another port that leads there
-- @treturn string
function Server:url(more, at)
  local base = at and self.base:gsub("%d+$", at) or self.base
  return ("s3://spec/elections?endpoint=%s&region=%s%s"):format(base, REGION, more and "&" .. more or "")
end

--- The same as options beside a URL.
-- @tparam[opt] table more options
-- @treturn table
function Server:options(more)
  local options = { url = "s3://spec/elections", endpoint = self.base, region = REGION,
    ca = self.authority and self.authority .. "/ca.crt" }
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

--- Does something with an object, as another client.
-- @string method
-- @string key without the prefix
-- @string[opt] body
-- @tparam[opt] table headers
-- @treturn table the answer
function Server:object(method, key, body, headers)
  local path = "/spec/elections/" .. key
  local all = { Host = self.base:match "//(.*)$", ["Content-Type"] = body and "text/plain" or nil }
  for name, value in pairs(headers or {}) do all[name] = value end
  return self:ask(method, path, body, signature.headers({ method = method, path = path, headers = all, body = body },
    { id = "AKIAALL", secret = "all/+secret" }, REGION, os.time()))
end

function Server:destroy()
  Server.set "AWS_SHARED_CREDENTIALS_FILE"
  StandIn.destroy(self)
end

return Server
