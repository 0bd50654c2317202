-- What a node does about the names that it was told are its own: pure, each effect by hand.
local OwnNames = require "crown.registry.own_names"
local Replica = require "crown.registry.replica"

describe("a node's own names", function()
  local sent, later, member, own

  before_each(function()
    sent, later = {}, {}
    member = { id = "r@b", token = "t1", joined = true, linked = { ["r@a"] = true }, replica = Replica.new(),
      options = { ttl = 5 }, view = { leader = "r@a", epoch = 1, assumed = 1 },
      effects = { now = function() return 0 end, fresh = function() return "s" .. math.random() end, emit = function() end,
        soon = function(fn) fn() end, after = function(_, fn) later[#later + 1] = fn end,
        send = function(_, message)
          for _, write in ipairs(message.writes) do sent[#sent + 1] = write end
        end } }
    own = OwnNames.new(member)
  end)

  local function write(what, value)
    local told = {}
    own:write({ what = what, name = "n", value = what == "register" and (value or "1") or nil }, 2,
      function(fine) told[1] = fine end)
    return told
  end

  local function answer(result) own.writes:answered(sent[#sent].request, result) end

  -- A pause, and the turn in which is done what was put off after it.
  local function pass()
    for _ = 1, 2 do
      local now = later
      later = {}
      for _, fn in ipairs(now) do fn() end
    end
  end

  it("are registered again until a leader has answered", function()
    write "register"
    answer { ok = true }
    own:restore()
    pass()
    assert.equal(2, #sent)
    for count = 3, 5 do
      answer { error = "too few", code = "uncertain" }
      pass()
      assert.equal(count, #sent)
      assert.equal("register", sent[count].op.what)
    end
  end)

  it("do not come back once they were given up, in whatever order they are answered", function()
    write "register"
    write "unregister"
    answer { ok = true }
    assert.equal("unregister", sent[2].op.what)
    answer { ok = true }
    own:restore()
    pass()
    assert.equal(2, #sent)
  end)

  it("are not theirs by an answer to what was asked in an earlier membership", function()
    local told = write "register"
    local old = sent[1].request
    member.token = "t2"
    own.writes:renew()
    own.writes:again()
    own.writes:answered(old, { ok = true })
    assert.is_nil(told[1])
    pass()
    assert.equal("t2", sent[2].op.token)
    assert.not_equal(old, sent[2].request)
  end)

  it("are registered again where an older copy has come back, with an older value", function()
    write "register"
    answer { ok = true }
    write("register", "2")
    answer { ok = true }
    member.replica:apply { "+", "n", "r@b", "t1", "1" }
    own:restore()
    pass()
    assert.equal(3, #sent)
    assert.equal("2", sent[3].op.value)
  end)

  it("are not registered again behind a newer write", function()
    write "register"
    answer { ok = true }
    write("register", "2")
    own:restore()
    pass()
    answer { ok = true }
    assert.equal(2, #sent)
    pass()
    assert.equal("2", sent[#sent].op.value)
  end)

  it("keep a value that may have come to count", function()
    write "register"
    answer { ok = true }
    write("register", "2")
    answer { error = "too few", code = "uncertain" }
    member.replica:apply { "+", "n", "r@b", "t1", "2" }
    own:restore()
    pass()
    assert.equal(2, #sent)
  end)

  it("are given up again where an older copy has brought them back, until a leader has answered", function()
    write "register"
    answer { ok = true }
    write "unregister"
    answer { ok = true }
    member.replica:apply { "+", "n", "r@b", "t1", "1" }
    member.replica:apply { "+", "of another", "r@c", "t1", "1" }
    member.replica:apply { "+", "of an earlier membership", "r@b", "t0", "1" }
    own:restore()
    pass()
    for count = 3, 5 do
      pass()
      assert.equal(count, #sent)
      assert.same({ what = "unregister", name = "n", token = "t1" }, sent[count].op)
      answer { error = "too few", code = "uncertain" }
    end
  end)

  it("are left alone where it is not known whether they came to count, or is about to be", function()
    write "register"
    member.replica:apply { "+", "n", "r@b", "t1", "1" }
    own:restore()
    pass()
    assert.equal(1, #sent)
    answer { error = "too few", code = "uncertain" }
    own:restore()
    pass()
    assert.equal(1, #sent)
    write "unregister"
    answer { error = "too few", code = "uncertain" }
    own:restore()
    pass()
    assert.equal(3, #sent)
    assert.equal("unregister", sent[3].op.what)
  end)
end)
