--- Free loopback ports.
local crown = require "crown"
local ffi = require "ffi"

ffi.cdef [[
struct port_address { unsigned short family; char name[108]; };
int socket(int domain, int type, int protocol); int bind(int fd, const void *address, unsigned length); int close(int fd);
]]

local port = {}

-- Below those that the kernel hands out to connections, or one of them might take it before its server does. From a place of
-- this process's own on, so that processes side by side seldom look at the same one.
local FIRST, COUNT = 12000, 20000
local AF_UNIX, SOCK_DGRAM_CLOEXEC = 1, 2 + 0x80000
local FAMILY_SIZE = 2

local random = assert(io.open("/dev/urandom", "rb"))
local high, low = random:read(2):byte(1, 2)
random:close()
local at = (high * 256 + low) % COUNT

--- Takes a port for this process, whoever listens there, until it ends: a name that no other process can have meanwhile. So nobody
-- is given the port of a server that is down for a moment.
-- @number number
-- @treturn bool whether no other process that uses this module has it, nor this one
function port.take(number)
  local name = "\0crown-spec-port-" .. number -- not in the file system, and of a network namespace, as ports are
  local address = ffi.new("struct port_address", AF_UNIX, name)
  local fd = ffi.C.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0)
  assert(fd >= 0, "no socket for the name of a port")
  local taken = ffi.C.bind(fd, address, FAMILY_SIZE + #name) == 0
  if not taken then ffi.C.close(fd) end
  return taken
end

--- A port that was free a moment ago, and that no other spec is given while this one runs.
function port.free()
  for _ = 1, COUNT do
    at = (at + 1) % COUNT
    local listener = crown.tcp.listen("127.0.0.1", FIRST + at, function(connection) connection:close() end)
    if listener then
      listener:close()
      if port.take(FIRST + at) then return FIRST + at end
    end
  end
  error "no port is free"
end

return port
