--- Real Postgres servers of the spec's own: a cluster in a directory of its own, on a free loopback port.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local port = require "support.port"
local signals = require "support.signals"
local tempdir = require "support.tempdir"

local Postgres = {}
Postgres.__index = Postgres

-- Postgres refuses to run as root. setpriv becomes what it starts, and leaves no process between.
local AS_USER = is_root
  and { "/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--" } or {}

local function bin(name)
  for version = 30, 12, -1 do
    local path = ("/usr/lib/postgresql/%d/bin/%s"):format(version, name)
    local file = io.open(path)
    if file then
      file:close()
      return path
    end
  end
  error("no Postgres server is installed: make packages-test")
end

local function run(...)
  local words = {}
  for _, word in ipairs(AS_USER) do words[#words + 1] = word end
  for _, word in ipairs { ... } do words[#words + 1] = word end
  local result = assert(crown.exec(words, { timeout = 60, cwd = "/" }))
  assert(result.code == 0, table.concat(words, " ") .. ": " .. result.stdout .. result.stderr)
  return result.stdout
end

local function append(path, text)
  local file = assert(io.open(path, "a"))
  file:write(text)
  file:close()
end

local function open_to_all(clock)
  if clock then assert(crown.exec { "/bin/chmod", "-R", "a+rX", (clock.path:gsub("/[^/]*$", "")) }) end
end

--- Starts a server with a database and a user named crown, who owns it.
-- @tparam[opt] table options `config`: lines for postgresql.conf; `hba`: for pg_hba.conf, instead of trust; `dir`: an
-- empty directory for it; `clock` of support.wrong_clock that it goes by
function Postgres.start(options)
  options = options or {}
  local self = setmetatable({ dir = options.dir or tempdir(), port = port.free(),
    env = options.clock and options.clock:environment() }, Postgres)
  if #AS_USER > 0 then assert(crown.exec { "/bin/chown", "postgres", self.dir }) end
  open_to_all(options.clock)
  self.data = self.dir .. "/data"
  run(bin "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8")
  append(self.data .. "/postgresql.conf", ([[
port = %d
listen_addresses = '127.0.0.1'
unix_socket_directories = '%s'
log_line_prefix = '%%m %%p '
%s
]]):format(self.port, self.dir, options.config or ""))
  self:up()
  local admin = self:admin "postgres"
  assert(admin:query "CREATE ROLE crown LOGIN PASSWORD 'secret'")
  assert(admin:query "CREATE DATABASE crown OWNER crown")
  admin:close()
  if options.hba then
    local file = assert(io.open(self.data .. "/pg_hba.conf", "w"))
    file:write(options.hba)
    file:close()
    run(bin "pg_ctl", "-D", self.data, "reload")
  end
  self.url = self:url_for "crown"
  return self
end

function Postgres:url_for(user, database, port_of)
  return ("postgres://%s@127.0.0.1:%d/%s"):format(user, port_of or self.port, database or "crown")
end

--- Starts the server process, ours alone; it is up when it answers.
function Postgres:up()
  local args = {}
  for i = 2, #AS_USER do args[#args + 1] = AS_USER[i] end
  if #AS_USER > 0 then args[#args + 1] = bin "postgres" end
  args[#args + 1], args[#args + 2] = "-D", self.data
  self.process = Candidate.start { program = AS_USER[1] or bin "postgres", args = args, node = "postgres", env = self.env,
    log = self.dir .. "/log" }
  eventually(function()
    local client = crown.postgres.connect(self:url_for("postgres", "postgres") .. "?target_session_attrs=any")
    if client then client:close() end
    return client
  end, 20)
end

--- Ends the server: "fast" (sessions are closed) or "immediate" (as a crash).
function Postgres:down(mode)
  run(bin "pg_ctl", "-D", self.data, "-m", mode or "fast", "-w", "stop")
  self.process:wait(20)
end

--- Stops every process of the server, or lets them go on.
function Postgres:freeze() signals.send_all(Candidate.tree(self.process.pid), "STOP") end
function Postgres:thaw() signals.send_all(Candidate.tree(self.process.pid), "CONT") end

--- A client of the superuser's, for the spec's own statements.
function Postgres:admin(database)
  return assert(crown.postgres.connect(self:url_for("postgres", database) .. "?target_session_attrs=any",
    { timeout = 60 })) -- a disk may be slow
end

--- Waits until a client's connection listens, from when on no notification passes it by. That it is connected is not enough.
-- @tparam function find returns the client, once there is one
function Postgres.await_listener(find)
  eventually(function()
    local client = find()
    return client and #assert(client:query "SELECT pg_listening_channels()") > 0
  end, 20)
end

--- Runs one statement as the superuser in the database crown.
function Postgres:sql(...)
  self.client = self.client or self:admin()
  local rows, problem = self.client:query(...)
  if not rows then -- the server may have been restarted
    self.client:close()
    self.client = self:admin()
    rows, problem = self.client:query(...)
  end
  return assert(rows, problem)
end

--- Removes all that the database has, as if nobody had ever been there.
function Postgres:empty()
  self:sql "DROP SCHEMA public CASCADE"
  self:sql "CREATE SCHEMA public AUTHORIZATION crown"
end

--- A streaming replica of this server.
-- @tparam[opt] table clock of support.wrong_clock that it goes by; else this server's
function Postgres:replica(clock)
  local self_of = setmetatable({ dir = tempdir(), port = port.free(), env = clock and clock:environment() or self.env }, Postgres)
  open_to_all(clock)
  if #AS_USER > 0 then assert(crown.exec { "/bin/chown", "postgres", self_of.dir }) end
  self_of.data = self_of.dir .. "/data"
  run(bin "pg_basebackup", "-h", "127.0.0.1", "-p", tostring(self.port), "-U", "postgres", "-D", self_of.data, "-R", "-X",
    "stream", "-c", "fast")
  append(self_of.data .. "/postgresql.conf", ("port = %d\nunix_socket_directories = '%s'\n")
    :format(self_of.port, self_of.dir))
  self_of:up()
  self_of.url = self_of:url_for "crown"
  return self_of
end

--- Confirms from now on only what its standbys have as well.
function Postgres:waits_for_standbys()
  self:sql "ALTER SYSTEM SET synchronous_standby_names = '*'"
  self:sql "SELECT pg_reload_conf()"
  eventually(function()
    local one = self:sql("SELECT sync_state FROM pg_stat_replication")[1]
    return one and one.sync_state == "sync"
  end, 20)
end

--- A copy of the server's files as they are now: a backup that can be put back.
function Postgres:backup()
  local copy = self.dir .. "/backup"
  run("/bin/rm", "-rf", copy)
  run("/bin/cp", "-a", self.data, copy)
  return function()
    run("/bin/rm", "-rf", self.data)
    run("/bin/cp", "-a", copy, self.data)
  end
end

function Postgres:promote()
  run(bin "pg_ctl", "-D", self.data, "-w", "promote")
end

function Postgres:destroy()
  if self.client then self.client:close() end
  if not self.process.code then pcall(self.down, self, "immediate") end
end

return Postgres
