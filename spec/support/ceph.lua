--- A real server that speaks S3: Ceph's radosgw over one monitor and one store in memory, on free loopback ports.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local files = require "crown.core.files"
local port = require "support.port"
local S3Server = require "support.s3_server"
local signature = require "crown.s3.signature"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local Ceph = {}
Ceph.__index = Ceph

local LOGIN = { id = "AKIACEPH", secret = "ceph-secret" }
local REGION = "default"
local GATEWAY = "/usr/bin/radosgw"

local CONFIG = [[
[global]
fsid = %(fsid)s
mon initial members = a
mon host = v1:127.0.0.1:%(mon)d
run dir = %(dir)s
admin socket = %(dir)s/$name.$pid.asok
log file = %(dir)s/$name.log
keyring = %(dir)s/keyring
ms bind msgr2 = false
public addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon max pg per osd = 1000
[mon.a]
host = localhost
mon addr = v1:127.0.0.1:%(mon)d
mon data = %(dir)s/mon
[osd]
osd objectstore = memstore
osd data = %(dir)s/osd
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:%(port)d
rgw data = %(dir)s/rgw
]]

--- Whether it is installed.
Ceph.is_there = files.executable(GATEWAY) and true or false

--- Why a test does not run.
Ceph.MISSING = "no radosgw here: make packages-test installs it"

local function run(self, ...)
  local result = assert(crown.exec({ ... }, { timeout = 120, cwd = self.dir, env = { CEPH_CONF = self.dir .. "/ceph.conf" } }))
  assert(result.code == 0, table.concat({ ... }, " ") .. ": " .. result.stdout .. result.stderr)
  return result.stdout
end

local function launch(self, name, ...)
  self.processes[#self.processes + 1] = Candidate.start { program = "/usr/bin/" .. name, args = { "-f", ... }, node = name,
    env = { CEPH_CONF = self.dir .. "/ceph.conf" }, log = self.dir .. "/" .. name .. ".out" }
end

local function keys(self)
  run(self, "ceph-authtool", "--create-keyring", "keyring", "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
  run(self, "ceph-authtool", "keyring", "--gen-key", "-n", "client.admin", "--cap", "mon", "allow *", "--cap", "osd", "allow *")
  run(self, "ceph-authtool", "keyring", "--gen-key", "-n", "osd.0", "--cap", "mon", "allow profile osd", "--cap", "osd", "allow *")
  run(self, "ceph-authtool", "keyring", "--gen-key", "-n", "client.rgw", "--cap", "mon", "allow rw", "--cap", "osd", "allow rwx")
end

local function uuid() return (io.open "/proc/sys/kernel/random/uuid":read "*l") end

--- Starts one, with the bucket "spec"; it takes some 15 s.
-- @treturn Ceph `port`, `base` (its URL), `profiles`: the file of its login
function Ceph.start()
  local self = setmetatable({ dir = tempdir(), port = port.free(), mon = port.free(), fsid = uuid(), processes = {} }, Ceph)
  for _, folder in ipairs { "mon", "osd", "rgw" } do assert(os.execute(("mkdir %s/%s"):format(self.dir, folder)) == 0) end
  write_file(self.dir .. "/ceph.conf", (CONFIG:gsub("%%%((%w+)%)(.)", function(name, kind) return ("%" .. kind):format(self[name]) end)))
  keys(self)
  run(self, "monmaptool", "--create", "--fsid", self.fsid, "--addv", "a", ("[v1:127.0.0.1:%d]"):format(self.mon), "monmap")
  run(self, "ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring")
  launch(self, "ceph-mon", "-i", "a")
  local store = uuid()
  run(self, "ceph", "osd", "new", store)
  run(self, "ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", store)
  launch(self, "ceph-osd", "-i", "0")
  launch(self, "radosgw", "-n", "client.rgw")
  run(self, "radosgw-admin", "-n", "client.admin", "user", "create", "--uid", "spec", "--display-name", "spec", "--access-key", LOGIN.id,
    "--secret-key", LOGIN.secret)
  self.base = ("http://127.0.0.1:%d"):format(self.port)
  self.profiles = write_file(self.dir .. "/credentials", ("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n"):format(
    LOGIN.id, LOGIN.secret))
  S3Server.set("AWS_SHARED_CREDENTIALS_FILE", self.profiles)
  eventually(function() return self:ask("PUT", "/spec").status == 200 end, 60)
  return self
end

--- Asks it something.
-- @string method
-- @string path
-- @string[opt] body
-- @tparam[opt] table headers
-- @treturn table the answer; status 0: there is none
function Ceph:ask(method, path, body, headers)
  local all = { Host = self.base:match "//(.*)$", ["Content-Type"] = body and "text/plain" or nil }
  for name, value in pairs(headers or {}) do all[name] = value end
  local answer = crown.http.request { url = self.base .. path, method = method, body = body, timeout = 20,
    headers = signature.headers({ method = method, path = path, headers = all, body = body }, LOGIN, REGION, os.time()) }
  return answer or { status = 0 }
end

--- Does something with an object, as another client.
-- @string method
-- @string key without the prefix
-- @string[opt] body
-- @tparam[opt] table headers
-- @treturn table the answer
function Ceph:object(method, key, body, headers) return self:ask(method, "/spec/elections/" .. key, body, headers) end

--- The URL of an oracle there.
-- @string[opt] more options
-- @treturn string
function Ceph:url(more)
  return ("s3://spec/elections?endpoint=%s&region=%s%s"):format(self.base, REGION, more and "&" .. more or "")
end

--- The same as options beside a URL.
-- @tparam[opt] table more options
-- @treturn table
function Ceph:options(more)
  local options = { url = "s3://spec/elections", endpoint = self.base, region = REGION }
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

function Ceph:destroy()
  S3Server.set "AWS_SHARED_CREDENTIALS_FILE"
  for i = #self.processes, 1, -1 do
    self.processes[i]:hurt_self "KILL"
    self.processes[i]:wait(20)
  end
end

return Ceph
