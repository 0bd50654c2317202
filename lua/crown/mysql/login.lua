--- How a client of MySQL says who it is, and proves it.
-- @internal crown.mysql.login

local crypto = require "crown.core.crypto"
local wire = require "crown.mysql.wire"

local login = {}

local NATIVE, SHA2, CLEAR = "mysql_native_password", "caching_sha2_password", "mysql_clear_password"

-- What a client can: LONG_PASSWORD, LONG_FLAG, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_STATEMENTS,
-- MULTI_RESULTS, PLUGIN_AUTH. Not FOUND_ROWS: a row counts where it was changed.
local CAPABILITIES = 0x1 + 0x4 + 0x8 + 0x200 + 0x2000 + 0x8000 + 0x10000 + 0x20000 + 0x80000
local SSL = 0x800
local UTF8 = 45 -- utf8mb4_general_ci, which all versions have
local SALT = 20 -- bytes

local function xor(one, other)
  local bytes = {}
  for i = 1, #one do bytes[i] = string.char(bit.bxor(one:byte(i), other:byte(i))) end
  return table.concat(bytes)
end

local function has(number, flag)
  return bit.band(number, flag) ~= 0
end

--- Reads what a server says first.
-- @string body of its packet
-- @treturn table `{ version =, thread =, salt =, plugin =, tls = }`; or nil and a message
function login.read_greeting(body)
  if body:byte(1) == 0xff then return nil, (wire.read_error(body)) end
  local version, at = wire.read_text(body, 2)
  if body:byte(1) ~= 10 or not version or #body < at + 30 then return nil, "unexpected reply from MySQL" end
  local low, high = wire.read_number(body, at + 13, 2), wire.read_number(body, at + 18, 2)
  local size = math.max(SALT, body:byte(at + 20) - 1)
  return { version = version, thread = wire.read_number(body, at, 4), tls = has(low, SSL), old = not has(high, 0x8),
    salt = body:sub(at + 4, at + 11) .. body:sub(at + 31, at + 30 + size - 8),
    plugin = wire.read_text(body, at + 31 + math.max(13, size - 7)) or NATIVE }
end

-- The proof of a password: for each way, as its plugin on the server checks it.
local PROOFS = {
  [NATIVE] = function(password, salt)
    local once = crypto.sha1(password)
    return xor(once, crypto.sha1(salt:sub(1, SALT) .. crypto.sha1(once)))
  end,
  [SHA2] = function(password, salt)
    local once = crypto.sha256(password)
    return xor(once, crypto.sha256(crypto.sha256(once) .. salt:sub(1, SALT)))
  end,
}

-- @return the proof, empty without a password; or nil and a message
local function proof(plugin, parsed, salt, is_secure)
  if plugin == CLEAR then
    if not is_secure then return nil, "this user's password would go unencrypted: have the URL begin with mysqls://" end
    return parsed.password .. "\0"
  end
  if not PROOFS[plugin] then
    return nil, ("this user logs in by %s, which crown-lua cannot: use %s or %s"):format(plugin, NATIVE, SHA2)
  end
  return parsed.password == "" and "" or PROOFS[plugin](parsed.password, salt)
end

local function head(is_secure)
  return wire.number(CAPABILITIES + (is_secure and SSL or 0), 4) .. wire.number(2 ^ 24, 4) .. string.char(UTF8) .. ("\0"):rep(23)
end

--- What asks for TLS, before anything is said of oneself.
-- @treturn string a packet's body
function login.tls_request()
  return head(true)
end

--- What says who we are.
-- @tparam table parsed of crown.mysql.url
-- @tparam table greeting as it was read
-- @bool is_secure whether TLS is spoken
-- @treturn string a packet's body
function login.words(parsed, greeting, is_secure)
  local plugin = PROOFS[greeting.plugin] and greeting.plugin or NATIVE
  local answer = proof(plugin, parsed, greeting.salt)
  return head(is_secure) .. parsed.user .. "\0" .. string.char(#answer) .. answer .. parsed.database .. "\0" .. plugin .. "\0"
end

local FAST, WHOLE = "\3", "\4" -- what a server says to a proof that it knows, and to one that it does not

-- The server has no proof of this password in memory, and wants the password itself.
local function whole_password(parsed, is_secure)
  if is_secure then return parsed.password .. "\0" end
  return nil, "the server wants this user's password itself, which would go unencrypted: have the URL begin with mysqls://"
end

--- What is answered to what a server says to a login.
-- @string body of its packet
-- @tparam table parsed of crown.mysql.url
-- @bool is_secure whether nobody else can read what is sent
-- @treturn string a packet's body; true: we are in; false: it says more; or nil, message, code
function login.answer(body, parsed, is_secure)
  local first = body:byte(1)
  if first == 0x00 then return true end
  if first == 0xff then return nil, (wire.read_error(body)) end
  local answer, problem
  if first == 0x01 then
    if body:sub(2) == FAST then return false end
    if body:sub(2) == WHOLE then answer, problem = whole_password(parsed, is_secure) end
  elseif first == 0xfe then
    local plugin, at = wire.read_text(body, 2)
    if not plugin then return nil, "the server wants a password as before MySQL 4.1: give the user another one", "usage" end
    answer, problem = proof(plugin, parsed, body:sub(at), is_secure)
  end
  if answer then return answer end
  return nil, problem or "unexpected reply from MySQL", problem and "usage" or "protocol"
end

return login
