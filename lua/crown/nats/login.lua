--- What a NATS client says of itself: user and password, token, nkey, or a credentials file.
-- @internal crown.nats.login

local base64 = require "crown.text.base64"
local core = require "crown.core"
local crypto = require "crown.core.crypto"
local files = require "crown.core.files"
local read_file = require "crown.text.read_file"

local login = {}

local BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

local VALUES = {}
for i = 1, 32 do VALUES[BASE32:byte(i)] = i - 1 end

-- Whoever opens a pipe waits for somebody to write to it.
local function read_plain(path)
  if files.kind(path) == "other" then return nil, path .. " is no plain file" end
  return read_file(path)
end

local function decode_base32(text)
  return base64.decode_bits(text, VALUES, 5)
end

local function encode_base32(bytes)
  local out, bits, count = {}, 0, 0
  for i = 1, #bytes do
    bits, count = bits * 256 + bytes:byte(i), count + 8
    while count >= 5 do
      count = count - 5
      local value = math.floor(bits / 2 ^ count) % 32
      out[#out + 1] = BASE32:sub(value + 1, value + 1)
      bits = bits % 2 ^ count
    end
  end
  if count > 0 then
    local value = bits * 2 ^ (5 - count) % 32
    out[#out + 1] = BASE32:sub(value + 1, value + 1)
  end
  return table.concat(out)
end

-- CRC-16/XMODEM, which nkeys end with.
local function crc16(bytes)
  local crc = 0
  for i = 1, #bytes do
    crc = bit.bxor(crc, bit.lshift(bytes:byte(i), 8))
    for _ = 1, 8 do
      crc = bit.band(crc, 0x8000) ~= 0 and bit.bxor(bit.lshift(crc, 1), 0x1021) or bit.lshift(crc, 1)
      crc = bit.band(crc, 0xffff)
    end
  end
  return crc
end

-- A seed: two bytes of prefix, 32 of secret, two of checksum.
local function read_seed(text)
  local bytes = decode_base32(text:match "^%s*(%S*)" or "")
  if not bytes or #bytes ~= 36 then return nil, "this is no nkey seed: one begins with SU" end
  local body = bytes:sub(1, 34)
  if crc16(body) ~= bytes:byte(35) + bytes:byte(36) * 256 then return nil, "the nkey seed is damaged: its checksum is wrong" end
  return body:sub(3)
end

local USER_PREFIX = 20 * 8

local function public_key(secret)
  local body = string.char(USER_PREFIX) .. crypto.ed25519_public(secret)
  local crc = crc16(body)
  return encode_base32(body .. string.char(crc % 256, math.floor(crc / 256)))
end

local function sign(words, secret, nonce)
  words.sig = base64.encode(crypto.ed25519_sign(secret, nonce or "")):gsub("%+", "-"):gsub("/", "_"):gsub("=", "")
end

local function from_credentials(words, path, nonce)
  local text, problem = read_plain(path)
  if not text then return nil, "credentials: " .. problem end
  local jwt = text:match "BEGIN NATS USER JWT%-+%s+(%S+)"
  local seed = text:match "BEGIN USER NKEY SEED%-+%s+(%S+)"
  if not jwt or not seed then return nil, ("credentials: %s holds no JWT and seed"):format(path) end
  local secret
  secret, problem = read_seed(seed)
  if not secret then return nil, ("credentials: %s: %s"):format(path, problem) end
  words.jwt = jwt
  sign(words, secret, nonce)
  return words
end

local function from_seed(words, path, nonce)
  local text, problem = read_plain(path)
  if not text then return nil, "nkey: " .. problem end
  local secret
  secret, problem = read_seed(text)
  if not secret then return nil, ("nkey: %s: %s"):format(path, problem) end
  words.nkey = public_key(secret)
  sign(words, secret, nonce)
  return words
end

--- The words of CONNECT.
-- @tparam table parsed `user`, `password`, `token`, `nkey` (file with a seed), `credentials` (file)
-- @tparam table info what the server said; its `nonce` is signed
-- @treturn table or nil and a message
function login.words(parsed, info)
  local words = { verbose = false, pedantic = false, lang = "lua", version = core.version, name = "crown-lua " .. core.node(),
    protocol = 1, headers = true, no_responders = true, echo = true, tls_required = parsed.tls or info.tls_required or false }
  if parsed.credentials then return from_credentials(words, parsed.credentials, info.nonce) end
  if parsed.nkey then return from_seed(words, parsed.nkey, info.nonce) end
  if parsed.token then words.auth_token = parsed.token end
  words.user, words.pass = parsed.user, parsed.password
  return words
end

--- What is wrong with the files that it takes to log in.
-- @tparam table parsed as login.words takes it
-- @treturn string words; nil where nothing is
function login.problem(parsed)
  return select(2, login.words(parsed, {}))
end

return login
