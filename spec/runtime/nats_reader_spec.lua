-- What cuts into messages what a NATS server says.
local nats = require "crown.core.nats"

local HEAD = "NATS/1.0\r\nCrown-Token: me\r\nNo-Value:\r\nCrown-Token: \t you\r\n\r\n"
local DELIVERED = "$JS.ACK.KV_B.consumer.1.77.3.1700000000123456789.12"

local function hmsg(head, data, reply)
  return ("HMSG $KV.B.key 9 %s%d %d\r\n%s%s\r\n"):format(reply and reply .. " " or "", #head, #head + #data, head, data)
end

local function msg(data, subject)
  return ("MSG %s 1 %d\r\n%s\r\n"):format(subject or "a", #data, data)
end

describe("the reader of what NATS says", function()
  local reader

  before_each(function() reader = nats.reader() end)

  local function heard(bytes)
    reader:feed(bytes)
    return reader:next()
  end

  local function all_of(feed)
    local found = {}
    for piece in feed do
      reader:feed(piece)
      for what, text in reader.next, reader do
        found[#found + 1] = { what, text, reader:subject(), reader:data(), reader:header "crown-token" }
      end
    end
    return found
  end

  local TALK = "PING\r\n" .. msg "abc" .. hmsg(HEAD, "one\r\nMSG") .. "+OK\n" .. msg "" .. "-ERR 'x'\r\n"
  local TOLD = { { "line", "PING" }, { "message", "1", "a", "abc" }, { "message", "9", "$KV.B.key", "one\r\nMSG", "you" },
    { "line", "+OK" }, { "message", "1", "a", "" }, { "line", "-ERR 'x'" } }

  it("tells lines and messages in their order, however they are cut", function()
    for _, size in ipairs { 1, 2, 7, #TALK } do
      reader = nats.reader()
      local at = 1 - size
      assert.same(TOLD, all_of(function()
        at = at + size
        return at <= #TALK and TALK:sub(at, at + size - 1) or nil
      end))
    end
  end)

  it("has a message's parts, of each header the last one in any case", function()
    assert.same({ "message", "9" }, { heard(hmsg(HEAD, "one", DELIVERED)) })
    assert.same({ "$KV.B.key", "key", DELIVERED, "one" }, { reader:subject(), reader:subject(6), reader:reply(), reader:data() })
    assert.same({ "you", "you", "" }, { reader:header "Crown-Token", reader:header "crown-TOKEN", reader:header "no-value" })
    assert.is_nil(reader:header "crown")
    assert.same({ ["crown-token"] = "you", ["no-value"] = "" }, reader:headers())
    assert.same({ 77, "1700000000123456789", 12 }, { reader:delivered() })
    assert.is_nil(reader:status())
    heard(hmsg(HEAD, "one", "$JS.ACK.KV_B.consumer.1.9007199254740992.3.1700000000123456789.12"))
    assert.equal(2 ^ 53, (reader:delivered()))
  end)

  it("has nothing of a message when that is over", function()
    heard(hmsg(HEAD, "one", DELIVERED))
    assert.is_nil(reader:next())
    assert.same({}, { reader:subject(), reader:reply(), reader:data(), reader:header "crown-token", reader:delivered() })
  end)

  it("has the status that a message is of, and of none that only begins so", function()
    for head, status in pairs { ["NATS/1.0 100 Idle Heartbeat\r\n\r\n"] = "100", ["NATS/1.0 503\r\n\r\n"] = "503",
      ["NATS/1.0\r\nStatus: 503\r\n\r\n"] = false, ["NATS/1.0 x\r\n\r\n"] = false, ["NATS/1.1 503\r\n\r\n"] = false } do
      reader = nats.reader()
      heard(hmsg(head, ""))
      assert.equal(status, reader:status() or false)
    end
  end)

  it("takes for an acknowledgement what is one and nothing else, and for a place plain digits alone", function()
    for data, sequence in pairs { ['{"stream":"KV_B","seq":5}'] = 5, ['{"stream":"KV_B", "seq":123456789012}'] = 123456789012,
      ['{"stream":"KV_B","seq":0}'] = false, ['{"stream":"KV_B","seq":5,"duplicate":true}'] = false, ['{"seq":5}'] = false,
      ['{"error":{"code":400},"stream":"KV_B","seq":5}'] = false, ['{"stream":"KV_B","seq":5}}'] = false,
      ['{"stream":"KV_B","seq":-5}'] = false, ['{"stream":"KV\\"B","seq":5}'] = false, ["5"] = false, [""] = false,
      ['{"stream":"KV_B","seq":5e3}'] = false, ['{"stream":"KV_B","seq":9999999999999999}'] = false } do
      reader = nats.reader()
      heard(msg(data))
      assert.equal(sequence, reader:acknowledged() or false, data)
    end
    for subject, place in pairs { ["_INBOX.x.17"] = 17, ["_INBOX.x.w17"] = false, ["_INBOX.x."] = false, ["_INBOX.x.-1"] = false,
      ["_IN"] = false, ["_INBOX.x.1e3"] = false } do
      reader = nats.reader()
      heard(msg("", subject))
      assert.equal(place, reader:place(9) or false, subject)
    end
  end)

  it("takes nothing for delivered that has no place in a stream", function()
    for _, reply in ipairs { "_INBOX.x", "$JS.ACK.KV_B.consumer.1.77.3.1700000000123456789", DELIVERED .. ".1",
      "$JS.ACK.KV_B.consumer.1.x.3.1700000000123456789.12", "$JS.NAK.KV_B.consumer.1.77.3.1700000000123456789.12" } do
      reader = nats.reader()
      heard(hmsg(HEAD, "", reply))
      assert.is_nil(reader:delivered())
    end
  end)

  it("refuses what is no message of NATS, and what is too long", function()
    for _, text in ipairs { "MSG a 1\r\n", "MSG a 1 r s 3\r\n", "MSG a 1 x\r\n", "MSG a 1 99999999999\r\n", "MSG a 1 nan\r\n",
      "HMSG a 1 3\r\n", "HMSG a 1 50 10\r\n", "HMSG a 1 -1 10\r\n", "MSG a 1 1048575\r\n" } do
      reader = nats.reader()
      assert.same({ nil, "not a message of NATS" }, { heard(text) })
    end
    reader = nats.reader()
    assert.same({ nil, "a line of more than 1048576 bytes" }, { heard(("x"):rep(1048577)) })
  end)
end)
