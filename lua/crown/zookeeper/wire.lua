--- Jute, the encoding of ZooKeeper's client protocol: numbers big-endian, texts and lists behind their lengths.
-- Session numbers and transaction numbers have 64 bits, more than a Lua number: they stay the 8 bytes that they came as, whose
-- order as text is theirs as numbers.
-- @internal crown.zookeeper.wire

local wire = {}

--- No session, no transaction.
wire.ZERO = ("\0"):rep(8)

wire.TYPES = { create = 15, delete = 2, exists = 3, get = 4, set = 5, get_acl = 6, children = 12, container = 19, auth = 100,
  close = -11 }
wire.EPHEMERAL_SEQUENTIAL, wire.PERSISTENT, wire.CONTAINER = 3, 0, 4
wire.EVENT, wire.AUTH = -1, -4 -- numbers of packets that answer no question
wire.CREATED, wire.DELETED, wire.CHANGED = 1, 2, 3 -- what an event says of a node
wire.RIGHTS = { READ = 1, WRITE = 2, CREATE = 4, DELETE = 8, ADMIN = 16 }

local LONGEST = 2 ^ 24 -- bytes of an answer, and the most that a list may have

-- What the server says with a number.
local ERRORS = { [-4] = "the server has lost the connection to its ensemble", [-6] = "the server does not know this request",
  [-8] = "the server takes a request for wrong", [-101] = "there is no such node", [-102] = "the ACL does not allow it",
  [-103] = "another version stands there", [-108] = "ephemeral nodes have no children", [-110] = "the node is there already",
  [-111] = "the node has children", [-112] = "the session has expired", [-114] = "the ACL is not valid",
  [-115] = "the login was refused", [-118] = "the session has moved to another connection", [-119] = "the server takes no writes",
  [-125] = "a quota is exceeded", [-127] = "too many requests are under way" }

wire.LOST, wire.UNKNOWN, wire.NO_NODE, wire.NO_AUTH, wire.BAD_VERSION, wire.EXISTS = -4, -6, -101, -102, -103, -110
wire.EXPIRED, wire.MOVED = -112, -118

--- What an error's number says.
-- @number code
-- @treturn string
function wire.words(code)
  return ERRORS[code] or ("ZooKeeper's error %d"):format(code)
end

-- --- writing

--- An int of 32 bits.
-- @number value
-- @treturn string
function wire.int(value)
  return string.char(bit.band(bit.rshift(value, 24), 255), bit.band(bit.rshift(value, 16), 255),
    bit.band(bit.rshift(value, 8), 255), bit.band(value, 255))
end

--- A text.
-- @string value
-- @treturn string
function wire.text(value)
  return wire.int(#value) .. value
end

--- A switch.
-- @bool value
-- @treturn string
function wire.switch(value)
  return value and "\1" or "\0"
end

--- A packet.
-- @string body
-- @treturn string with its length before it
wire.packet = wire.text

--- The first packet of a connection.
-- @tparam table session `id`, `password`, both empty for a new one; `ttl` in seconds
-- @treturn string
function wire.hello(session)
  return wire.int(0) .. wire.ZERO .. wire.int(math.floor(session.ttl * 1000 + 0.5)) .. (session.id or wire.ZERO)
    .. wire.text(session.password or ("\0"):rep(16)) .. wire.switch(false)
end

--- Bodies of requests.
wire.body = {
  create = function(path, data, acl, flags) return wire.text(path) .. wire.text(data) .. acl .. wire.int(flags) end,
  delete = function(path) return wire.text(path) .. wire.int(-1) end,
  exists = function(path, watched) return wire.text(path) .. wire.switch(watched) end,
  get = function(path, watched) return wire.text(path) .. wire.switch(watched) end,
  set = function(path, data, version) return wire.text(path) .. wire.text(data) .. wire.int(version) end,
  get_acl = function(path) return wire.text(path) end,
  children = function(path) return wire.text(path) .. wire.switch(false) end,
  auth = function(scheme, login) return wire.int(0) .. wire.text(scheme) .. wire.text(login) end,
  close = function() return "" end,
}
wire.body.container = wire.body.create

local function acl_of(scheme, id)
  return wire.int(1) .. wire.int(31) .. wire.text(scheme) .. wire.text(id)
end

--- Everybody may do all with a node that is made.
wire.OPEN = acl_of("world", "anyone")

--- Those with the login that made it may.
wire.CREATOR = acl_of("auth", "")

-- --- reading: each returns what stands at a place, and the place behind it; nil where the bytes are no such thing

--- @return an int
function wire.read_int(bytes, at)
  local a, b, c, d = bytes:byte(at, at + 3)
  if not d then return nil end
  return bit.tobit(a * 2 ^ 24 + b * 2 ^ 16 + c * 2 ^ 8 + d), at + 4
end

--- @return a text, "" for null
function wire.read_text(bytes, at)
  local size, from = wire.read_int(bytes, at)
  if not size or size > LONGEST or size < -1 then return nil end
  size = math.max(0, size)
  if from + size - 1 > #bytes then return nil end
  return bytes:sub(from, from + size - 1), from + size
end

--- @return a number of 64 bits, as 8 bytes
function wire.read_long(bytes, at)
  if at + 7 > #bytes then return nil end
  return bytes:sub(at, at + 7), at + 8
end

--- A number of 64 bits as a Lua number.
-- @string long 8 bytes
-- @treturn number exact up to 2^53: a transaction's number has the count of quorum leaders in its upper half, and 2^21 of
-- them are one each minute for four years
function wire.number(long)
  local high, low = wire.read_int(long, 1), wire.read_int(long, 5)
  return high % 2 ^ 32 * 2 ^ 32 + low % 2 ^ 32
end

local STAT = 68 -- bytes

--- What is known of a node.
-- @treturn table `czxid`, `owner` (8 bytes each), `version`, `children`; or nil
function wire.read_stat(bytes, at)
  if at + STAT - 1 > #bytes then return nil end
  return { czxid = bytes:sub(at, at + 7), version = wire.read_int(bytes, at + 32), owner = bytes:sub(at + 44, at + 51),
    children = wire.read_int(bytes, at + 56) }, at + STAT
end

--- @treturn table an array of texts
function wire.read_texts(bytes, at)
  local count, from = wire.read_int(bytes, at)
  if not count or count > LONGEST then return nil end
  local found = {}
  for i = 1, count do
    found[i], from = wire.read_text(bytes, from)
    if not from then return nil end
  end
  return found, from
end

--- The answer to the first packet.
-- @string bytes
-- @treturn table `ttl` in seconds, 0 where the session is over, `id`, `password`; or nil
function wire.read_welcome(bytes)
  local ttl = wire.read_int(bytes, 5)
  local id, at = wire.read_long(bytes, 9)
  local password = id and wire.read_text(bytes, at)
  return ttl and password and { ttl = ttl / 1000, id = id, password = password } or nil
end

--- An answer's head.
-- @string bytes
-- @treturn table `xid`, `zxid`, `code`, `at` = where the body begins; or nil
function wire.read_head(bytes)
  local xid = wire.read_int(bytes, 1)
  local zxid = wire.read_long(bytes, 5)
  local code, at = wire.read_int(bytes, 13)
  return code and { xid = xid, zxid = zxid, code = code, at = at } or nil
end

local function read_get(bytes, at)
  local data, from = wire.read_text(bytes, at)
  local stat = from and wire.read_stat(bytes, from)
  return stat and { data = data, stat = stat }
end

local function read_created(bytes, at)
  local path, from = wire.read_text(bytes, at)
  local stat = from and wire.read_stat(bytes, from)
  return stat and { path = path, stat = stat }
end

local function read_acl(bytes, at)
  local count, from = wire.read_int(bytes, at)
  if not count or count > LONGEST then return nil end
  local list = {}
  for i = 1, count do
    local one = {}
    one.rights, from = wire.read_int(bytes, from)
    if from then one.scheme, from = wire.read_text(bytes, from) end
    if from then one.id, from = wire.read_text(bytes, from) end
    if not from then return nil end
    list[i] = one
  end
  return list
end

local function nothing() return {} end

--- Bodies of answers, each from its bytes and where it begins: a table, or nil where it is none.
wire.answer = { create = read_created, container = read_created, delete = nothing, exists = nothing, get = read_get,
  set = nothing, auth = nothing, close = nothing, get_acl = read_acl,
  children = function(bytes, at) return (wire.read_texts(bytes, at)) end }

--- An event's body.
-- @treturn number what; nil where it is none
-- @treturn string the node's path
function wire.read_event(bytes, at)
  local what, from = wire.read_int(bytes, at)
  local path = what and wire.read_text(bytes, from + 4)
  if path then return what, path end
end

return wire
