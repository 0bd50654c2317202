--- The socket by which `crown-lua status`, `abdicate` and `log-level` talk to a runtime of the same user: a line of JSON
-- asks, a line answers.
-- @internal crown.control

local conditions = require "crown.link.conditions"
local core = require "crown.core"
local crypto = require "crown.core.crypto"
local directory = require "crown.control.directory"
local elections = require "crown.core.election"
local files = require "crown.core.files"
local json = require "crown.text.json"
local lockfile = require "crown.core.lockfile"
local own_rules = require "crown.text.own_rules"
local tcp = require "crown.core.tcp"
local usage = require "crown.check.usage"

local control = {}

local PAGE = 1000 -- elections, or connections, in one answer: a line has its bounds
local TIMEOUT = 1 -- seconds for a runtime on this host
local listener

local answers = {}

function answers.status(request)
  return { pid = core.pid, node = core.node(), version = core.version,
    elections = own_rules.add(elections.all(tonumber(request.skip) or 0, PAGE), elections.declared) }
end

function answers.stores(request)
  return { pid = core.pid, node = core.node(), version = core.version,
    stores = conditions.all(tonumber(request.skip) or 0, PAGE) }
end

function answers.abdicate(request)
  return { found = elections.abdicate(tostring(request.name)) }
end

answers["log-level"] = function(request)
  local set, problem = core.log_setup { level = tostring(request.level) }
  return { set = set or false, error = problem }
end

local function answer(connection)
  connection:set_timeout(TIMEOUT)
  local uid = connection:uid()
  local line = (uid == core.user_ids() or uid == 0) and connection:read "*l"
  local request = json.object(line or "")
  local fn = request and answers[request.ask]
  if fn then connection:write(json.encode(fn(request)) .. "\n") end
  connection:close()
end

-- Where the units of the service manager have their runtimes: tools/systemd. Root sees them too.
local UNITS = "/var/lib/private/crown-lua-units"

local function path_of(pid, dir)
  return ("%s/runtime-%d.sock"):format(dir, pid)
end

local LONGEST = 200 -- bytes of a file's name: the kernel takes 255

--- Where a command that lives from term to term reads its epoch (CROWN_EPOCH_FILE).
-- @string name of the election
-- @string[opt] node of the candidate, where it has one of its own
-- @treturn string the path
function control.epoch_file(name, node)
  local own = node and "@" .. node:gsub("[^%w._-]", function(byte) return ("%%%02x"):format(byte:byte()) end) or ""
  local file = ("epoch-%d-%s"):format(core.pid, name)
  if #file + #own > LONGEST then own = "@" .. crypto.digest(node) end
  return ("%s/%s%s"):format(directory(), file, own)
end

-- What runtimes that were killed have left behind.
local function sweep(dir)
  for _, name in ipairs(files.list(dir) or {}) do
    local pid = name:match "^runtime%-(%d+)%.sock$" or name:match "^epoch%-(%d+)%-"
    if pid and not files.kind("/proc/" .. pid) then os.remove(dir .. "/" .. name) end
  end
end

-- The file goes with the Lua state; a runtime that was killed leaves it to the sweep of the next one.
local function remove_at_end(path)
  local guard = newproxy(true)
  getmetatable(guard).__gc = function() os.remove(path) end
  control.guard = guard
end

-- Who names a directory wants it; the one of the user may well be missing, as in a container.
local function say_none(problem)
  local named = os.getenv "CROWN_DIRECTORY" or ""
  if named == "" then return core.log("debug", "no status socket: " .. problem) end
  core.log("warn", ("status, abdicate and log-level do not find this runtime, and history keeps nothing of it: %s; "
    .. "CROWN_DIRECTORY names a directory that it may write to"):format(problem))
end

--- Opens this runtime's socket, once. Without a place for it there is no status, and no error.
-- @treturn boolean whether there is one
function control.open()
  if listener ~= nil then return listener ~= false end
  listener = false
  local dir = directory()
  local path = path_of(core.pid, dir)
  local fit, problem = lockfile.directory(dir)
  if fit then
    sweep(dir)
    os.remove(path) -- of a process that bore this pid before
    listener, problem = tcp.listen("unix:" .. path, 0, answer, { background = true })
  end
  if listener then remove_at_end(path) end
  if not listener then say_none(problem) end
  listener = listener or false
  return listener ~= false
end

--- Where runtimes whose status this user may see keep their files.
-- @treturn table an array of directories
function control.places()
  local places = { directory() }
  if core.user_ids() == 0 and places[1] ~= UNITS then places[2] = UNITS end
  return places
end

local function ask(path, request)
  local connection, problem, code = tcp.connect("unix:" .. path, 0, { timeout = TIMEOUT })
  if not connection then return nil, problem, code end
  local uid, own = connection:uid(), core.user_ids()
  if uid ~= own and uid ~= 0 and own ~= 0 then
    connection:close()
    return nil, "the socket is another user's"
  end
  connection:set_timeout(TIMEOUT)
  connection:write(json.encode(request) .. "\n")
  local line
  line, problem, code = connection:read "*l"
  connection:close()
  if not line then return nil, problem, code end
  return core.json.decode(line)
end

-- The answers that are lists, of which a page comes at a time.
local LISTS = { status = "elections", stores = "stores" }

local function ask_whole(path, request)
  local reply, problem = ask(path, request)
  local list = LISTS[request.ask]
  local page = reply and list and reply[list]
  while page and #page == PAGE do
    local next_reply
    next_reply, problem = ask(path, { ask = request.ask, skip = #reply[list] })
    page = next_reply and next_reply[list]
    if not page then return nil, problem end
    for _, one in ipairs(page) do table.insert(reply[list], one) end
  end
  return reply, problem
end

-- Adds the answers of the runtimes that have their sockets in a directory. What one that was killed has left there is no
-- runtime; the next one that opens its own socket sweeps it away.
local function ask_in(dir, request, found)
  for _, name in ipairs(files.list(dir) or {}) do
    local pid = tonumber(name:match "^runtime%-(%d+)%.sock$")
    if pid and pid ~= core.pid then
      local reply, problem = ask_whole(path_of(pid, dir), request)
      if reply then
        reply.pid = pid
        found[#found + 1] = reply
      elseif files.kind("/proc/" .. pid) then
        found[#found + 1] = { pid = pid, error = problem }
      end
    end
  end
end

--- Asks every runtime of this user on this host; for root those of the service manager's units too.
-- @tparam table request `ask` ("status", "stores", "abdicate", "log-level") and what that takes
-- @treturn table an array of answers; of a runtime that does not answer `{ pid =, error = }`
-- @raise a usage error when the directory is not fit to be trusted
function control.ask_all(request)
  local found, dir = {}, directory()
  local fit, problem = true, nil
  if files.kind(dir) then fit, problem = lockfile.directory(dir, "read") end
  if not fit then usage.error("%s", problem) end
  ask_in(dir, request, found)
  if core.user_ids() == 0 and dir ~= UNITS then ask_in(UNITS, request, found) end
  table.sort(found, function(a, b) return a.pid < b.pid end)
  return found
end

return control
