--- A server of the specs' own that takes tricks (support.web), as a spec sees it.
local crown = require "crown"
local json = require "crown.text.json"
local OwnProgram = require "support.own_program"
local port = require "support.port"
local tempdir = require "support.tempdir"

local StandIn = setmetatable({}, OwnProgram)
StandIn.__index = StandIn

--- Makes one; `up` starts it.
-- @string program its file
-- @tparam table class
-- @string[opt] authority the directory of support.authority: then it speaks TLS
-- @treturn StandIn `port`, `base` (its URL), `data`: its file
function StandIn.make(program, class, authority)
  local self = setmetatable({ dir = tempdir(), port = port.free(), authority = authority }, class)
  self.base = ("%s://127.0.0.1:%d"):format(authority and "https" or "http", self.port)
  self.data = self.dir .. "/data.json"
  self.words = { program, self.port, self.data, authority }
  return self
end

--- Asks it, as another client.
-- @string method
-- @string path
-- @string[opt] body
-- @tparam[opt] table headers
-- @treturn table the answer
function StandIn:ask(method, path, body, headers)
  return assert(crown.http.request { method = method, url = self.base .. path, timeout = 20, body = body, headers = headers,
    ca = self.authority and self.authority .. "/ca.crt" })
end

--- Has something happen to the requests that follow; see the program.
-- @tparam table what
function StandIn:trick(what) assert(self:ask("POST", "/trick", json.encode(what)).status == 200) end

--- How many requests of each method there were.
-- @treturn table
function StandIn:counts() return json.object(self:ask("GET", "/counts").body) end

return StandIn
