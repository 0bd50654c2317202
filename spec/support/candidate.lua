--- Real candidates: the program started as a user starts it, found and hurt from the outside.
local crown = require "crown"
local eventually = require "crown.testing.eventually"
local ffi = require "ffi"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local signals = require "support.signals"

ffi.cdef [[
extern char **environ;
int fork(void); int setpgid(int pid, int group); int execve(const char *path, char *const argv[], char *const envp[]);
int waitpid(int pid, int *status, int options); int open(const char *path, int flags, int mode); int dup2(int from, int to);
long signal(int signal, long handler); void _exit(int code); int setsid(void); int ioctl(int fd, unsigned long request, ...);
]]

local Candidate = {}
Candidate.__index = Candidate

local REJECTED = "leadership.rejected" -- which a follower's log tells, whatever its level
local WNOHANG = 1
local O_RDWR, O_CREATE_APPEND = 2, 2 + 64 + 1024
local TIOCSCTTY = 0x540E
local SIG_DFL, HIGHEST_SIGNAL = 0, 31

local function environment(extra)
  local list, at = {}, ffi.C.environ -- what /proc says of it, the process's title has written over
  while at[0] ~= nil do
    local line = ffi.string(at[0])
    at = at + 1
    local shared = line:match "^CROWN_DIRECTORY=" and not extra.CROWN_DIRECTORY or line:match "^CROWN_LOOP_HELD="
    if shared or not line:match "^CROWN_" then list[#list + 1] = line end
  end
  for key, value in pairs(extra) do list[#list + 1] = key .. "=" .. value end
  return list
end

local function c_array(list)
  local array = ffi.new("char *[?]", #list + 1)
  for i, text in ipairs(list) do array[i - 1] = ffi.cast("char *", text) end
  return array
end

-- As from a shell: this process ignores some of them, and what is ignored stays so over an exec.
local function take_signals_by_default()
  for signal = 1, HIGHEST_SIGNAL do ffi.C.signal(signal, SIG_DFL) end
end

-- In the forked process: nothing but plain C calls until the exec.
local function become_on_terminal(path, argv, env, terminal)
  take_signals_by_default()
  ffi.C.setsid()
  local fd = ffi.C.open(terminal, O_RDWR, 0)
  ffi.C.ioctl(fd, TIOCSCTTY, 0)
  for stream = 0, 2 do ffi.C.dup2(fd, stream) end
  ffi.C.execve(path, argv, env)
  ffi.C._exit(127)
end

local function become(path, argv, env, log)
  take_signals_by_default()
  ffi.C.setsid() -- with no terminal of whoever runs the tests
  local fd = ffi.C.open(log, O_CREATE_APPEND, 420)
  ffi.C.dup2(fd, 1)
  ffi.C.dup2(fd, 2)
  ffi.C.execve(path, argv, env)
  ffi.C._exit(127)
end

--- Starts the program with arguments, a node name and a log file.
-- @tparam table options `args` (array), `node`, `env`, `log`; `program`: another than crown-lua; `terminal`: the path of a
-- terminal to run on, instead of `log`
function Candidate.start(options)
  local path = options.program or program
  local words = { path }
  for _, word in ipairs(options.args) do words[#words + 1] = tostring(word) end
  local extra = { CROWN_NODE = options.node, CROWN_LOG_FILTER = REJECTED .. "=debug" }
  for key, value in pairs(options.env or {}) do extra[key] = value end
  local env_list = environment(extra)
  local argv, env = c_array(words), c_array(env_list)
  local pid = ffi.C.fork()
  if pid == 0 and options.terminal then become_on_terminal(path, argv, env, options.terminal) end
  if pid == 0 then become(path, argv, env, options.log) end
  return setmetatable({ pid = pid, node = options.node, log = options.log, anchored = { words, env_list } }, Candidate)
end

local function children_of(pid)
  local found = {}
  for child in (read_file(("/proc/%d/task/%d/children"):format(pid, pid)) or ""):gmatch "%d+" do
    found[#found + 1] = tonumber(child)
  end
  return found
end

local function comm(pid)
  return (read_file(("/proc/%d/comm"):format(pid)) or ""):gsub("\n", "")
end

--- Pids of the candidate's processes of one kind: "supervise", "runtime", "keeper", "warden", "child".
function Candidate:pids(kind)
  local found = {}
  local function visit(pid, parent_comm)
    local name = comm(pid)
    local is_child = parent_comm == "crown-warden"
    -- The pid that was forked bears its maker's name until it has become the program.
    local ours = not is_child and (pid == self.pid) == (kind == "supervise") and name == "crown-" .. kind
    if (kind == "child" and is_child) or ours then found[#found + 1] = pid end
    if not is_child then
      for _, child in ipairs(children_of(pid)) do visit(child, name) end
    end
  end
  visit(self.pid, "")
  return found
end

--- Whether it has been told that another one leads.
function Candidate:is_told() return self:output():find(REJECTED, 1, true) ~= nil end

--- Waits until it has been.
function Candidate:follows(seconds)
  eventually(function() return self:is_told() end, seconds or 10)
end

--- Sends a signal to every process of the kinds named, all in one go.
function Candidate:hurt(signal, ...)
  local pids = {}
  for _, kind in ipairs { ... } do
    for _, pid in ipairs(self:pids(kind)) do pids[#pids + 1] = pid end
  end
  assert(#pids > 0, "nobody to hurt")
  local at = crown.now()
  signals.send_all(pids, signal)
  return at
end

--- Sends a signal to the supervisor, as a user does.
function Candidate:signal(signal)
  local at = crown.now()
  signals.send(self.pid, signal)
  return at
end

--- Sends a signal to its whole process group, as a terminal does.
function Candidate:signal_group(signal)
  signals.send(-self.pid, signal)
end

--- Sends a signal to the process that was started, whatever it is.
function Candidate:hurt_self(signal)
  signals.send(self.pid, signal)
end

-- A thread on another core goes on until it has noticed.
local function is_stopped(pid)
  local tasks = io.popen(("cat /proc/%d/task/*/stat"):format(pid))
  local states = tasks:read "*a"
  tasks:close()
  for state in states:gmatch "%) (%a) [%d-]+" do
    if state ~= "T" then return false end
  end
  return true
end

--- Pids of a process and of all that it has started.
-- @number pid
-- @treturn table parents first
function Candidate.tree(pid)
  local found = { pid }
  for _, child in ipairs(children_of(pid)) do
    for _, one in ipairs(Candidate.tree(child)) do found[#found + 1] = one end
  end
  return found
end

--- Stops the process that was started, and waits until none of its threads runs.
function Candidate:freeze()
  self:hurt_self "STOP"
  eventually(function() return is_stopped(self.pid) end, 5)
end

--- Lets it go on.
function Candidate:thaw()
  self:hurt_self "CONT"
end

--- Waits for the exit. @return the exit code, or 128 + the signal
function Candidate:wait(seconds)
  local status = ffi.new "int[1]"
  return eventually(function()
    if self.code == nil and ffi.C.waitpid(self.pid, status, WNOHANG) == self.pid then
      local raw = status[0]
      self.code = bit.band(raw, 127) == 0 and bit.rshift(bit.band(raw, 0xff00), 8) or 128 + bit.band(raw, 127)
    end
    return self.code
  end, seconds or 10)
end

--- Ends it for good, whatever state it is in.
-- @treturn bool whether it had to be killed: then its keepers end what it has started, in their time
function Candidate:destroy()
  if self.code then return false end
  for _, kind in ipairs { "runtime", "keeper", "warden", "child" } do
    signals.send_all(self:pids(kind), "CONT")
  end
  signals.send(self.pid, "CONT")
  signals.send(self.pid, "TERM")
  local fine = pcall(self.wait, self, 5)
  if not fine then
    signals.send(self.pid, "KILL")
    self:wait(20)
  end
  return not fine
end

--- What it has written so far.
function Candidate:output()
  return read_file(self.log) or ""
end

return Candidate
