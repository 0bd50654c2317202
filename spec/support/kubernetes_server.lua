--- A small API server of the spec's own (facade.lua), on a free loopback port.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local json = require "crown.text.json"
local OwnProgram = require "support.own_program"
local port = require "support.port"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local Server = setmetatable({}, OwnProgram)
Server.__index = Server

local GROUP = "/apis/coordination.k8s.io/v1/namespaces/spec/leases"

--- Starts one.
-- @string[opt] authority the directory of support.authority: then it speaks TLS
-- @treturn Server `port`, `base` (its URL), `token_file` of who may do all
function Server.start(authority)
  local self = setmetatable({ dir = tempdir(), port = port.free(), authority = authority }, Server)
  self.base = ("%s://127.0.0.1:%d"):format(authority and "https" or "http", self.port)
  self.data = self.dir .. "/leases.json"
  self.token_file = self:token "all"
  self.words = { "spec/support/kubernetes/facade.lua", self.port, self.data, authority }
  self:up()
  return self
end

--- Writes a token into a file.
-- @string token
-- @treturn string the file's path
function Server:token(token)
  return write_file(("%s/token-%s"):format(self.dir, token), token .. "\n")
end

--- The URL of an oracle there.
-- @string[opt] more options
-- @number[opt] at another port that leads there
-- @string[opt] token_file of another login
-- @treturn string
function Server:url(more, at, token_file)
  local base = at and self.base:gsub("%d+$", at) or self.base
  return ("k8s:spec?server=%s&token_file=%s%s"):format(base, token_file or self.token_file, more and "&" .. more or "")
end

--- The same as options beside a URL.
-- @tparam[opt] table more options
-- @treturn table
function Server:options(more)
  local options = { url = "k8s:spec", server = self.base, token_file = self.token_file,
    ca = self.authority and self.authority .. "/ca.crt" }
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

--- Asks it something by another way than the oracle's.
-- @string method
-- @string path behind the namespace's Leases, "/NAME"; or a whole one, "//…"
-- @tparam[opt] table body
-- @treturn number the status
-- @treturn table the object
function Server:ask(method, path, body)
  path = path:find "^//" and path:sub(2) or GROUP .. path
  local answer = assert(crown.http.request { method = method, url = self.base .. path, bearer = self.admin or "all", timeout = 20,
    body = body and json.encode(body), ca = self.authority and self.authority .. "/ca.crt" })
  return answer.status, json.object(answer.body)
end

--- A Lease as it is now.
-- @string name
-- @treturn table nil where there is none
function Server:lease(name)
  local code, found = self:ask("GET", "/" .. name)
  return code == 200 and found or nil
end

--- Changes a Lease as somebody with kubectl does, however often others write meanwhile.
-- @string name
-- @func fn changes the object
function Server:edit(name, fn)
  eventually(function()
    local found = self:lease(name)
    fn(found)
    return self:ask("PUT", "/" .. name, found) == 200
  end, 10)
end

--- Has something happen to the requests that follow; see facade.lua.
-- @tparam table what
function Server:trick(what)
  if what.token then self.admin = what.token end
  assert(self:ask("POST", "//trick", what) == 200)
end

return Server
