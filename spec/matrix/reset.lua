--- Ends a connection of crown.tcp with an RST, whatever was read of it.
local ffi = require "ffi"

ffi.cdef [[
struct matrix_address { uint16_t family; uint8_t port[2]; uint8_t rest[124]; };
struct matrix_linger { int on, seconds; };
int getpeername(int fd, struct matrix_address *address, unsigned *size);
int setsockopt(int fd, int level, int option, const void *value, unsigned size);
]]

local AF_INET, SOL_SOCKET, SO_LINGER = 2, 1, 13
local MOST = 4096 -- descriptors

local function port_at(fd)
  local address, size = ffi.new "struct matrix_address", ffi.new("unsigned[1]", 128)
  if ffi.C.getpeername(fd, address, size) ~= 0 or address.family ~= AF_INET then return nil end
  return address.port[0] * 256 + address.port[1]
end

--- @param connection of crown.tcp, with a peer on this host
return function(connection)
  local port = tonumber((connection:peer() or ""):match ":(%d+)$")
  local at_once = ffi.new("struct matrix_linger", { 1, 0 })
  for fd = 3, MOST do
    if port and port_at(fd) == port then ffi.C.setsockopt(fd, SOL_SOCKET, SO_LINGER, at_once, ffi.sizeof(at_once)) end
  end
  connection:close()
end
