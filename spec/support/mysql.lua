--- Real MariaDB servers of the spec's own, on free loopback ports.
local Candidate = require "support.candidate"
local Connection = require "crown.mysql.connection"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local port = require "support.port"
local tempdir = require "support.tempdir"

local Mysql = {}
Mysql.__index = Mysql

local SERVER, INSTALLER = "/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db"
local SMALL = { "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M" }

local function run(...)
  local result = assert(crown.exec({ ... }, { timeout = 120, cwd = "/" }))
  assert(result.code == 0, table.concat({ ... }, " ") .. ": " .. result.stdout .. result.stderr)
end

local function add(words, more)
  for _, word in ipairs(more or {}) do words[#words + 1] = word end
  return words
end

--- Starts a server with a database and a user named crown, who may do everything there.
-- @tparam[opt] table options `args`: more words for its command line; `clock` of support.wrong_clock that it goes by
function Mysql.start(options)
  options = options or {}
  local self = setmetatable({ dir = tempdir(), port = port.free(), args = options.args,
    env = options.clock and options.clock:environment() }, Mysql)
  self.data, self.socket = self.dir .. "/data", self.dir .. "/socket"
  -- A folder of its own: servers that begin together name their temporary tables alike.
  run(unpack(add({ INSTALLER, "--no-defaults", "--datadir=" .. self.data, "--auth-root-authentication-method=normal",
    "--skip-test-db", "--tmpdir=" .. self.dir, is_root and "--user=root" or nil }, SMALL)))
  self:up()
  self:sql "CREATE DATABASE crown; CREATE USER crown@'%'; GRANT ALL ON crown.* TO crown@'%'"
  self.url = self:url_for "crown"
  return self
end

--- A URL of the database crown.
-- @string login a user, or with a password
-- @number[opt] port_of a way to the server
-- @treturn string
function Mysql:url_for(login, port_of)
  return ("mysql://%s@127.0.0.1:%d/crown"):format(login, port_of or self.port)
end

-- The superuser's connection, for the spec's own statements.
local function admin(self)
  if self.client and not self.client.closed then return self.client end
  local problem
  self.client, problem = Connection.open({ user = "root", password = "", database = "mysql" }, { host = "unix:" .. self.socket,
    port = 0 }, 60)
  return self.client, problem
end

--- Starts the server process, ours alone; it is up when it answers.
function Mysql:up()
  local args = add(add({ "--no-defaults", "--datadir=" .. self.data, "--socket=" .. self.socket, "--port=" .. self.port,
    "--bind-address=127.0.0.1", "--tmpdir=" .. self.dir, is_root and "--user=root" or nil }, SMALL), self.args)
  self.process = Candidate.start { program = SERVER, args = args, node = "mariadb", env = self.env, log = self.dir .. "/log" }
  eventually(function() return admin(self) end, 60)
end

--- Ends the server: "TERM" or, as a crash, "KILL".
function Mysql:down(signal)
  if self.client then self.client:close() end
  self.process:hurt_self(signal or "KILL")
  self.process:wait(60)
end

--- Stops the process, or lets it go on.
function Mysql:freeze() self.process:freeze() end
function Mysql:thaw() self.process:thaw() end

--- Runs statements as the superuser, in the database mysql.
-- @string text
-- @treturn table the rows of the last one
function Mysql:sql(text)
  local results = assert(assert(admin(self)):query(60, text))
  return results[#results].rows
end

--- Ends the sessions of the user crown.
function Mysql:end_sessions()
  for _, row in ipairs(self:sql "SELECT ID FROM information_schema.PROCESSLIST WHERE USER <> 'root'") do
    pcall(self.sql, self, "KILL CONNECTION " .. row[1]) -- it may have ended meanwhile
  end
end

--- Removes the register's tables.
function Mysql:drop()
  self:sql "DROP TABLE IF EXISTS crown.crown_register, crown.crown_register_mark"
end

function Mysql:destroy()
  if self.client then self.client:close() end
  if not self.process.code then
    self.process:hurt_self "KILL"
    self.process:wait(20)
  end
end

return Mysql
