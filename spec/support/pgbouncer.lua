--- A connection pooler in transaction mode before a server of the specs: one server session, lent to whoever asks.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local port = require "support.port"
local tempdir = require "support.tempdir"

-- It refuses to run as root.
local AS_USER = is_root and { "-u", "postgres" } or {}

local Pgbouncer = {}
Pgbouncer.__index = Pgbouncer

local CONFIG = [[
[databases]
crown = host=127.0.0.1 port=%d dbname=crown user=crown
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
max_client_conn = 100
server_login_retry = 1
logfile =
pidfile =
]]

--- @tparam table server of support.postgres
function Pgbouncer.start(server)
  local self = setmetatable({ port = port.free(), dir = tempdir() }, Pgbouncer)
  self:write(server)
  self.url = ("postgres://crown@127.0.0.1:%d/crown"):format(self.port)
  self:up()
  return self
end

--- Starts the process.
function Pgbouncer:up()
  self.process = Candidate.start { program = "/usr/sbin/pgbouncer", node = "pgbouncer", log = self.dir .. "/log",
    args = { self.dir .. "/config.ini", unpack(AS_USER) } }
  eventually(function()
    local client = crown.postgres.connect(self.url)
    if client then client:close() end
    return client
  end, 20)
end

function Pgbouncer:write(server)
  local file = assert(io.open(self.dir .. "/config.ini", "w"))
  file:write(CONFIG:format(server.port, self.port)) -- auth_type = any: everybody is the user of the database's line
  file:close()
  assert(crown.exec { "/bin/chmod", "-R", "a+rX", self.dir }) -- it reads it again as another user
end

--- Has it lead to another server from now on; its clients keep their connections.
-- @tparam table server of support.postgres
function Pgbouncer:lead_to(server)
  self:write(server)
  self.process:signal "HUP"
end

--- Ends the process, as in a crash.
function Pgbouncer:down()
  self.process:signal "KILL"
  self.process:wait(20)
end

Pgbouncer.destroy = Pgbouncer.down

return Pgbouncer
