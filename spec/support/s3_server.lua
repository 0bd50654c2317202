--- A stand-in for S3 of the spec's own (s3/stand_in.lua), on a free loopback port.
local crown = require "crown"
local ffi = require "ffi"
local json = require "crown.text.json"
local OwnProgram = require "support.own_program"
local port = require "support.port"
local signature = require "crown.s3.signature"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

ffi.cdef "int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char *name);"

local Server = setmetatable({}, OwnProgram)
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
  local self = setmetatable({ dir = tempdir(), port = port.free(), authority = authority }, Server)
  self.base = ("%s://127.0.0.1:%d"):format(authority and "https" or "http", self.port)
  self.data, self.profiles = self.dir .. "/objects.json", self.dir .. "/credentials"
  write_file(self.profiles, FILE)
  Server.set("AWS_SHARED_CREDENTIALS_FILE", self.profiles)
  self.words = { "spec/support/s3/stand_in.lua", self.port, self.data, authority }
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

local function ask(self, method, path, body, headers)
  return assert(crown.http.request { method = method, url = self.base .. path, timeout = 20, body = body, headers = headers,
    ca = self.authority and self.authority .. "/ca.crt" })
end

--- Has something happen to the requests that follow; see stand_in.lua.
-- @tparam table what
function Server:trick(what) assert(ask(self, "POST", "/trick", json.encode(what)).status == 200) end

--- How many requests of each method there were.
-- @treturn table
function Server:counts() return json.object(ask(self, "GET", "/counts").body) end

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
  return ask(self, method, path, body, signature.headers({ method = method, path = path, headers = all, body = body },
    { id = "AKIAALL", secret = "all/+secret" }, REGION, os.time()))
end

function Server:destroy()
  Server.set "AWS_SHARED_CREDENTIALS_FILE"
  OwnProgram.destroy(self)
end

return Server
