-- A name server that misbehaves as it is told: luajit name_server.lua [HERE:]PORT HOW [ADDRESS…]. HERE is an IPv4 address
-- (127.0.0.1). HOW is "silent", "slow" (answers after 0.7 s), "wrong" (answers nonsense), "empty" (no such record), "half" (tells
-- addresses of IPv4, and is silent when asked for others), "answers", or "at ADDRESS" (which is then the only one), or
-- the path of a file that holds one of these, read at each question; what it is asked goes to standard output.
local ffi = require "ffi"
local bit = require "bit"

ffi.cdef [[
struct sockaddr_in { uint16_t family; uint16_t port; uint8_t address[4]; uint8_t zero[8]; };
int socket(int domain, int type, int protocol); int bind(int fd, const void *address, unsigned size);
long recvfrom(int fd, void *bytes, size_t size, int flags, void *from, unsigned *length);
long sendto(int fd, const void *bytes, size_t size, int flags, const void *to, unsigned length);
int inet_pton(int family, const char *text, void *address); int usleep(unsigned us);
]]

local AF_INET, AF_INET6, SOCK_DGRAM = 2, 10, 2
local AAAA = 28

local place, port = arg[1]:match "^(.-):?(%d+)$"
local fd = ffi.C.socket(AF_INET, SOCK_DGRAM, 0)
local here = ffi.new("struct sockaddr_in", { AF_INET, bit.bor(bit.lshift(port % 256, 8), math.floor(port / 256)) })
assert(ffi.C.inet_pton(AF_INET, place == "" and "127.0.0.1" or place, here.address) == 1, place)
assert(ffi.C.bind(fd, here, ffi.sizeof(here)) == 0, "bind")
io.stdout:setvbuf "no"
print "ready"

local function manner()
  if not arg[2]:find("/", 1, true) then return arg[2] end
  local file = assert(io.open(arg[2]))
  local word = file:read "*l"
  file:close()
  return word
end

-- Addresses of one family, as the wire has them.
local function addresses(kind, how)
  local found = {}
  local known = how:find "^at " and { how:sub(4) } or { unpack(arg, 3) }
  for _, address in ipairs(known) do
    local six = address:find(":", 1, true) ~= nil
    if six == (kind == AAAA) then
      local bytes = ffi.new "uint8_t[16]"
      assert(ffi.C.inet_pton(six and AF_INET6 or AF_INET, address, bytes) == 1, address)
      found[#found + 1] = ffi.string(bytes, six and 16 or 4)
    end
  end
  return found
end

local function name_of(question)
  local words, at = {}, 1
  while question:byte(at) ~= 0 do
    local size = question:byte(at)
    words[#words + 1] = question:sub(at + 1, at + size)
    at = at + size + 1
  end
  return table.concat(words, "."), at
end

local function kind_of(query)
  local _, last = name_of(query:sub(13))
  return query:byte(12 + last + 1) * 256 + query:byte(12 + last + 2), last
end

local function answer(query, how)
  local name = name_of(query:sub(13))
  local kind, last = kind_of(query)
  local question = query:sub(13, 12 + last + 4)
  print(("%s %d"):format(name, kind))
  local found = how == "empty" and {} or addresses(kind, how)
  local out = { query:sub(1, 2), "\129\128\0\1\0", string.char(#found), "\0\0\0\0", question }
  for _, bytes in ipairs(found) do
    out[#out + 1] = ("\192\12\0%s\0\1\0\0\0\30\0%s%s"):format(string.char(kind), string.char(#bytes), bytes)
  end
  return table.concat(out)
end

local buffer, from = ffi.new "uint8_t[2048]", ffi.new "struct sockaddr_in"
local length = ffi.new "unsigned[1]"
while true do
  length[0] = ffi.sizeof(from)
  local got = ffi.C.recvfrom(fd, buffer, 2048, 0, from, length)
  local query = got > 12 and ffi.string(buffer, got)
  local how = manner()
  if query and how ~= "silent" and not (how == "half" and kind_of(query) == AAAA) then
    local reply = answer(query, how)
    if how == "slow" then ffi.C.usleep(700000) end
    if how == "wrong" then reply = query:sub(1, 2) .. ("\255"):rep(40) end
    ffi.C.sendto(fd, reply, #reply, 0, from, length[0])
  end
end
