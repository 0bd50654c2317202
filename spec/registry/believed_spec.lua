-- Somebody who knows the secret is believed, but what he says has to make sense: otherwise his link ends, and nothing else does.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local messages = require "crown.registry.messages"
local Registry = require "support.registry"

local NO_JSON = { "no JSON", "", "{", '"x', "1 2", ("["):rep(1001) .. ("]"):rep(1001) }

describe("a member that says what makes no sense", function()
  local cluster, name
  Registry.around(function(...) cluster, name = ... end)

  -- A link to it, of somebody who knows the secret.
  local function link_to(member)
    local stream = assert(crown.tcp.connect("127.0.0.1", tonumber(member:ask("members")[1].address:match ":(%d+)$")))
    assert(handshake.dial(stream, { registry = name, id = name .. "@x", secret = "a secret of the specs", runtime = "x" },
      name .. "@" .. member.node, 5))
    return stream
  end

  local function cuts(member)
    return select(2, member.candidate:output():gsub("registry.link_cut", ""))
  end

  it("is cut with an event where a value is no JSON, and the names and who watches them go on", function()
    local a = cluster:join "a"
    local _, epoch = cluster:await { a }
    a:ask "changes"
    local owner, said = name .. "@x", {}
    for i, value in ipairs(NO_JSON) do
      said[#said + 1] = { kind = "snapshot", epoch = epoch, seq = 9, part = 1, last = true, names = { { "bad" .. i, owner, "t", value } } }
      said[#said + 1] = { kind = "append", epoch = epoch, first = 1, changes = { { "+", "bad" .. i, owner, "t", value } } }
      said[#said + 1] = { kind = "write", writes = { { request = "q:" .. i,
        op = { what = "register", name = "bad" .. i, token = "t", value = value } } } }
    end
    for _, message in ipairs(said) do
      local stream = link_to(a)
      stream:write(frames.encode(message))
      local _, _, code = stream:read(1, 10)
      assert.equal("closed", code, crown.json.encode(message):sub(1, 100))
      stream:close()
    end
    assert.is_true(cuts(a) >= 1)
    assert.is_true(a:ask("register", { name = "good", value = { port = 1 } }))
    local names = a:ask "names"
    assert.same({ port = 1 }, names.good.value)
    for i in ipairs(NO_JSON) do assert.is_nil(names["bad" .. i]) end
    local heard = {}
    eventually(function()
      for _, one in ipairs(a:ask "changes") do heard[one[1]] = one end
      return heard.good
    end, 10)
  end)
end)

describe("an answer to a write", function()
  local function is_one(result)
    return messages.check { kind = "written", answers = { { request = "q:1", result = result } } } == true
  end

  it("says yes, who has the name, or why not", function()
    for _, result in ipairs { { ok = true }, { ok = false, owner = "r@b", value = "1" }, { retry = "why" },
      { error = "why", code = "full" } } do
      assert.is_true(is_one(result))
    end
  end)

  it("that says nothing is none", function()
    for _, result in ipairs { {}, { ok = false }, { ok = false, owner = 7, value = "1" }, { ok = false, owner = "r@b" },
      { ok = false, owner = "r@b", value = "no JSON" }, { ok = "yes" }, { retry = {} }, { error = {} } } do
      assert.is_false(is_one(result))
    end
  end)
end)

describe("a value", function()
  local cluster
  Registry.around(function(...) cluster = ... end)

  it("that no member could read is refused where it is registered, and is no reason to cut a link", function()
    local a, b = cluster:join_all { "a", "b" }
    for _, member in ipairs { a, b } do
      assert.is_true(member:ask("register_nested", { name = "deep" .. member.node, depth = 900 }))
      assert.is_false((member:ask("register_nested", { name = "deeper" .. member.node, depth = 1001 })))
      assert.is_nil(member.candidate:output():find "link_cut")
    end
    assert.is_true(b:ask("register", { name = "one" }))
  end)
end)
