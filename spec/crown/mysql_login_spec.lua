-- How a client of MySQL proves who it is, by answers of a server that a spec plays; and what it takes for no packet.
local crypto = require "crown.core.crypto"
local hex = require "crown.text.hex"
local login = require "crown.mysql.login"
local wire = require "crown.mysql.wire"

local SALT = "abcdefghijklmnopqrst"
local PARSED = { user = "joe", password = "secret", database = "db" }

local function xor(one, other)
  return (one:gsub("()(.)", function(at, byte) return string.char(bit.bxor(byte:byte(), other:byte(at))) end))
end

local function greeting(plugin, flags)
  return "\10" .. "8.0.36\0" .. "\1\2\0\0" .. SALT:sub(1, 8) .. "\0" .. "\0\10" .. "\45" .. "\2\0" .. (flags or "\8\0") .. "\21"
    .. ("\0"):rep(10) .. SALT:sub(9) .. "\0" .. plugin .. "\0"
end

-- What a login answers to the salt.
local function proof_of(plugin)
  local words = login.words(PARSED, assert(login.read_greeting(greeting(plugin))), false)
  local size = words:byte(33 + #"joe\0")
  return words:sub(34 + #"joe\0", 33 + #"joe\0" + size), words:sub(34 + #"joe\0" + size)
end

describe("the digests", function()
  it("are those of the standards", function()
    assert.equal("a9993e364706816aba3e25717850c26c9cd0d89d", hex(crypto.sha1 "abc"))
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", hex(crypto.sha256 "abc"))
    assert.equal("da39a3ee5e6b4b0d3255bfef95601890afd80709", hex(crypto.sha1 ""))
  end)
end)

describe("a login to MySQL", function()
  it("reads who greets", function()
    local found = assert(login.read_greeting(greeting "caching_sha2_password"))
    assert.same({ "8.0.36", 513, SALT, "caching_sha2_password", true, false },
      { found.version, found.thread, found.salt, found.plugin, found.tls, found.old })
    assert.is_true(assert(login.read_greeting(greeting("mysql_native_password", "\0\0"))).old)
    assert.equal("no more", select(2, login.read_greeting "\255\16\4#08004no more"))
    assert.is_nil((login.read_greeting "\10"))
    assert.is_nil((login.read_greeting "\9abc\0"))
  end)

  -- As the server checks it: from the proof comes the digest whose digest it keeps.
  it("proves a password as the server checks it", function()
    local proof, rest = proof_of "mysql_native_password"
    local kept = crypto.sha1(crypto.sha1 "secret")
    assert.equal(kept, crypto.sha1(xor(proof, crypto.sha1(SALT .. kept))))
    assert.equal("db\0mysql_native_password\0", rest)
    proof, rest = proof_of "caching_sha2_password"
    kept = crypto.sha256(crypto.sha256 "secret")
    assert.equal(kept, crypto.sha256(xor(proof, crypto.sha256(kept .. SALT))))
    assert.equal("db\0caching_sha2_password\0", rest)
    assert.equal("db\0mysql_native_password\0", select(2, proof_of "client_ed25519"))
  end)

  it("tells a password itself only where nobody else can read it", function()
    for _, asked in ipairs { "\1\4", "\254mysql_clear_password\0" } do
      assert.equal("secret\0", login.answer(asked, PARSED, true))
      local answer, problem, code = login.answer(asked, PARSED, false)
      assert.same({ nil, "usage" }, { answer, code })
      assert.matches("mysqls://", problem)
    end
  end)

  it("goes on as the server says", function()
    assert.is_true(login.answer("\0\0\0\2\0\0\0", PARSED, false))
    assert.is_false(login.answer("\1\3", PARSED, false))
    assert.equal(20, #login.answer("\254mysql_native_password\0" .. SALT .. "\0", PARSED, false))
    assert.equal("Access denied", select(2, login.answer("\255\21\4#28000Access denied", PARSED, false)))
    for _, asked in ipairs { "\254client_ed25519\0" .. SALT, "\254" } do
      assert.equal("usage", select(3, login.answer(asked, PARSED, true)))
    end
    for _, asked in ipairs { "\1\9", "\7", "" } do assert.equal("protocol", select(3, login.answer(asked, PARSED, true))) end
  end)
end)

describe("a packet of MySQL", function()
  it("is there when all of it has come", function()
    local packets = wire.packets()
    local text = wire.packet(0, "one") .. wire.packet(1, "") .. wire.packet(258, ("x"):rep(300))
    local found = {}
    for i = 1, #text do
      packets:feed(text:sub(i, i))
      for body, serial in function() return packets:next() end do found[#found + 1] = { #body, serial } end
    end
    assert.same({ { 3, 0 }, { 0, 1 }, { 300, 2 } }, found)
    assert.is_false(packets:is_within())
    packets:feed "\1"
    assert.is_true(packets:is_within())
    packets:feed "\255\255\0"
    assert.is_false((packets:next()))
  end)

  it("has a row of just so many texts", function()
    assert.same({ "ab", false, "" }, wire.read_row("\2ab\251\0", 3))
    assert.same({ ("x"):rep(300) }, wire.read_row("\252\44\1" .. ("x"):rep(300), 1))
    for _, body in ipairs { "\2a", "\2ab\0", "", "\255", "\252\1", "\254\255\255\255\255\255\255\255\255" } do
      assert.is_nil(wire.read_row(body, 1))
    end
  end)
end)
