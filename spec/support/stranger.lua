--- A process that has abstract sockets of its own: of another user, where this one may become that.
local eventually = require "crown.testing.eventually"
local ffi = require "ffi"
local read_file = require "crown.text.read_file"
local signals = require "support.signals"

ffi.cdef [[
int fork(void); int setgid(unsigned id); int setgroups(size_t count, const unsigned *groups); int setuid(unsigned id);
int socket(int domain, int type, int protocol); int bind(int fd, const void *name, unsigned size);
int listen(int fd, int waiting); int connect(int fd, const void *name, unsigned size); int pause(void); void _exit(int code);
int waitpid(int pid, int *status, int options);
]]

local AF_UNIX, SOCK_STREAM, SOCK_NONBLOCK = 1, 1, 2048

local Stranger = {}
Stranger.__index = Stranger

local function address(name)
  local bytes = ffi.new("uint8_t[?]", 3 + #name)
  ffi.cast("uint16_t *", bytes)[0] = AF_UNIX
  ffi.copy(bytes + 3, name, #name)
  return bytes, 3 + #name
end

local function serve(name, size, is_full)
  local fd = ffi.C.socket(AF_UNIX, SOCK_STREAM, 0)
  if ffi.C.bind(fd, name, size) ~= 0 or ffi.C.listen(fd, is_full and 0 or 9) ~= 0 then ffi.C._exit(1) end
  for _ = 1, is_full and 2 or 0 do
    ffi.C.connect(ffi.C.socket(AF_UNIX, SOCK_STREAM + SOCK_NONBLOCK, 0), name, size)
  end
end

--- Starts it, and waits until all its sockets are there.
-- @tparam table names of the sockets
-- @tparam table options `uid`, `gid`; `is_full`: nobody else can wait there
function Stranger.new(names, options)
  local places = {}
  for i, name in ipairs(names) do places[i] = { address(name) } end
  local pid = ffi.C.fork()
  if pid == 0 then
    ffi.C.setgroups(0, nil)
    if ffi.C.setgid(options.gid or 0) ~= 0 or ffi.C.setuid(options.uid or 0) ~= 0 then ffi.C._exit(1) end
    for _, place in ipairs(places) do serve(place[1], place[2], options.is_full) end
    ffi.C.pause()
    ffi.C._exit(0)
  end
  local last = "@" .. names[#names]
  eventually(function() return Stranger.sockets(last)[1] end, 5)
  return setmetatable({ pid = pid }, Stranger)
end

--- @string beginning of names, with an @ in front
-- @treturn table the names of all abstract sockets that are listened to
function Stranger.sockets(beginning)
  local found = {}
  for flags, name in (read_file "/proc/net/unix" or ""):gmatch "%x+: %x+ %x+ (%x+) %d+ %d+ +%d+ (@%S+)\n" do
    if flags == "00010000" and name:sub(1, #beginning) == beginning then found[#found + 1] = name end
  end
  return found
end

function Stranger:stop()
  signals.send(self.pid, "KILL")
  ffi.C.waitpid(self.pid, ffi.new "int[1]", 0)
end

return Stranger
