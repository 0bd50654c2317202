-- What the register's rule says to each kind of record, at the instants at which that changes: docs/safety.md, S1 to S13.
local record = require "crown.register.record"
local rule = require "crown.register.rule"

local TTL, TIME = 12, 5000000
local STANDS = TTL + (TTL / 100 + 0.25)      -- a session, until it is over
local DOUBT = 2 * TTL                        -- seconds of a doubt
local DOUBTED = DOUBT + (DOUBT / 100 + 0.25) -- until one has stood

local function with(base, more)
  local all = {}
  for key, value in pairs(base) do all[key] = value end
  for key, value in pairs(more or {}) do all[key] = value end
  return all
end

local function me(more)
  return with({ session = "@me-12", at = 50, node = "here", time = TIME, longest = TTL, floor = 0 }, more)
end

local function held(more)
  return with({ v = 1, serial = 7, memory = "m", epoch = 3, by = "@other-12", at = 40, node = "there" }, more)
end

local function free(more)
  return with({ v = 1, serial = 7, memory = "m", epoch = 3 }, more)
end

local function holder(more)
  return with({ v = 1, serial = 9, memory = "m", ttl = TTL, at = 40, node = "there" }, more)
end

local function missing(more)
  return with({ record = false, memory = "m", stood = 0, serial = -1, epoch = 0 }, more)
end

local function found(one, more)
  return with({ record = one, memory = "m", stood = 0, serial = one.serial, epoch = one.epoch, version = 1 }, more)
end

local function denies(wait, more)
  return function(verdict, one)
    assert.equal("denied", verdict)
    assert.near(wait, one.wait, 1e-9)
    for _, key in ipairs { "node", "epoch", "doubted", "stands", "unsure" } do
      assert.equal((more or {})[key] or false, one[key] or false, key)
    end
  end
end

local function grants(epoch, more)
  return function(verdict, one)
    assert.equal("write", verdict)
    assert.same(with({ v = 1, epoch = epoch, memory = "m", by = "@me-12", at = 50, node = "here" }, more),
      with(one, { serial = more and more.serial }))
  end
end

local function doubts(epoch, seconds, serial)
  return function(verdict, one)
    assert.equal("doubt", verdict)
    assert.same({ v = 1, epoch = epoch, memory = "m", doubt = seconds or DOUBT, serial = serial or 8 }, one)
  end
end

local function says(word)
  return function(verdict) assert.equal(word, verdict) end
end

local function claims(cases)
  for _, case in ipairs(cases) do
    it(case[1], function() case[4](rule.claim(me(case[2]), case[3])) end)
  end
end

describe("a claim of an election that is missing", function()
  local marked = { marks = true, settled = "m" }
  claims {
    { "is doubted, in an epoch of the time of day", nil, missing(), doubts(TIME, DOUBT, 0) },
    { "is doubted in an epoch of the store's time, where that tells it", nil, missing { time = 7 }, doubts(7, DOUBT, 0) },
    { "is doubted above all that was seen", nil, missing { serial = 7, epoch = TIME + 5 }, doubts(TIME + 5, DOUBT, 8) },
    { "is doubted for twice what its operator says a TTL may be", { floor = 100 }, missing(), doubts(TIME, 200, 0) },
    { "is doubted for a second at least, by which epochs are told apart", { longest = 0.2 }, missing(), doubts(TIME, 1, 0) },
    { "is granted where nothing is ever lost", { remembers = true }, missing(), grants(1, { serial = 1 }) },
    { "is granted above the last epoch where nothing is ever lost", { remembers = true }, missing { serial = 7, epoch = 4 },
      grants(5, { serial = 1 }) },
    { "is granted where an operator trusts that nobody was there", { trusts = true }, missing(), grants(TIME, { serial = 1 }) },
    { "is granted above what a peer had, where an operator trusts", { trusts = true }, missing { epoch = TIME },
      grants(TIME + 1, { serial = 1 }) },
    { "is doubted where somebody was there, whoever trusts", { trusts = true }, missing { serial = 0 }, doubts(TIME, DOUBT, 1) },
    { "is granted where the place is known and nothing was deleted", marked, missing(), grants(TIME, { serial = 1 }) },
    { "is granted above what a peer had where the place is known", marked, missing { epoch = TIME }, grants(TIME + 1, { serial = 1 }) },
    { "asks for the place where that is not known", { marks = true }, missing(), says "place" },
    { "asks for the place where another memory is known", { marks = true, settled = "l" }, missing(), says "place" },
    { "is doubted where it was deleted", marked, missing { version = 3 }, doubts(TIME, DOUBT, 1) },
    { "is doubted where we saw it before", marked, missing { serial = 0 }, doubts(TIME, DOUBT, 1) },
    { "is granted where only a peer has been, that has gone", marked, missing { version = 3, peer = { wait = 0 } },
      grants(TIME, { serial = 1 }) },
    { "waits for a peer", marked, missing { version = 3, peer = { wait = 0.5, node = "peer", epoch = 2 } },
      denies(0.5, { node = "peer", epoch = 2 }) },
  }
end)

-- What a candidate writes that has seen nothing over nothing has the serial 0.
describe("a claim of an election that was doubted before anybody led it", function()
  local trusts = { trusts = true }
  local function doubted(more) return free(with({ serial = 0, epoch = 9, doubt = DOUBT }, more)) end
  claims {
    { "waits", nil, found(doubted()), denies(DOUBTED, { epoch = 9, doubted = true }) },
    { "is granted at once where an operator trusts that nobody was there", trusts, found(doubted()), grants(TIME, { serial = 1 }) },
    { "is granted at once there also over a longer doubt", trusts, found(doubted { doubt = 172800 }), grants(TIME, { serial = 1 }) },
    { "is granted at once there also over a shorter doubt", trusts, found(doubted { doubt = 1 }), grants(TIME, { serial = 1 }) },
    { "waits where the doubt is not the first record, whoever trusts", trusts, found(doubted { serial = 1 }),
      denies(DOUBTED, { epoch = 9, doubted = true }) },
    { "is doubted again where we saw another record, whoever trusts", trusts, found(doubted(), { back = true, serial = 3 }),
      doubts(TIME, DOUBT, 4) },
    { "is doubted again in another memory, whoever trusts", trusts, found(doubted { memory = "l" }, { stood = 1000 }),
      doubts(TIME, DOUBT, 1) },
    { "is doubted for longer where a TTL is longer, still before anybody led it", { longest = 13 }, found(doubted()),
      doubts(TIME, 26, 0) },
  }
end)

describe("a claim of an election that nobody leads", function()
  claims {
    { "raises the epoch over what was seen (S1)", nil, found(free()), grants(4, { serial = 8 }) },
    { "grants no lower epoch than is asked for", { least = 9 }, found(free()), grants(9, { serial = 8 }) },
    { "grants a higher epoch than is asked for", { least = 2 }, found(free()), grants(4, { serial = 8 }) },
    { "keeps fields that it does not know, and drops a wish to the last leader", nil,
      found(free { later = "x", directive = "evict" }), grants(4, { serial = 8, later = "x" }) },
    { "is doubted where the store went back (S8)", nil, found(free(), { back = true, serial = 20, epoch = TIME + 6 }),
      doubts(TIME + 6, DOUBT, 21) },
    { "is doubted above an epoch that only the record has", nil, found(free { epoch = TIME + 9 }, { back = true, epoch = 0 }),
      doubts(TIME + 9, DOUBT, 8) },
    { "is doubted at once in another memory", nil, found(free { memory = "l" }), doubts(TIME) },
    { "is its own again", nil, found(held { by = "@me-12", node = "here" }), grants(4, { serial = 8 }) },
  }
end)

describe("a claim of an election in another memory (S9)", function()
  local other = held { memory = "l" }
  local left = { node = "there", epoch = 3, unsure = true }
  claims {
    { "is left to who holds it for one TTL", nil, found(other), denies(STANDS, left) },
    { "is left to who holds it until that is over", nil, found(other, { stood = STANDS - 0.001 }), denies(0.001, left) },
    { "is doubted then", nil, found(other, { stood = STANDS }), doubts(TIME) },
    { "is left to who holds it for as long as an operator says", { floor = 100 }, found(other, { stood = 20 }),
      denies(81.25, left) },
    { "is doubted at once where the session is our own", nil, found(held { memory = "l", by = "@me-12" }), doubts(TIME) },
    { "is granted then where all has one memory", { whole = true }, found(other, { stood = STANDS }), grants(TIME, { serial = 8 }) },
    { "is left to who holds it also there", { whole = true }, found(other, { stood = STANDS - 0.001 }), denies(0.001, left) },
    { "waits there as long for what nobody holds", { whole = true, floor = 100 }, found(free { memory = "l" }, { stood = 20 }),
      denies(81.25, { epoch = 3, doubted = true }) },
    { "is granted then in a higher epoch", { whole = true }, found(free { memory = "l", epoch = TIME + 5 }, { stood = STANDS }),
      grants(TIME + 6, { serial = 8 }) },
  }
end)

describe("a claim of an election that is doubted (S8)", function()
  local doubted = free { doubt = DOUBT }
  claims {
    { "waits", nil, found(doubted), denies(DOUBTED, { epoch = 3, doubted = true }) },
    { "waits until the doubt has stood", nil, found(doubted, { stood = DOUBTED - 0.001 }),
      denies(0.001, { epoch = 3, doubted = true }) },
    { "is granted then, in an epoch of the time of day", nil, found(doubted, { stood = DOUBTED }), grants(TIME, { serial = 8 }) },
    { "is granted then in an epoch of the store's time", nil, found(doubted, { stood = DOUBTED, time = TIME + 9 }),
      grants(TIME + 9, { serial = 8 }) },
    { "is granted then above the last epoch", nil, found(free { doubt = DOUBT, epoch = TIME + 4 }, { stood = DOUBTED }),
      grants(TIME + 5, { serial = 8 }) },
    { "lengthens a shorter doubt", { longest = 13 }, found(doubted, { stood = 1000 }), doubts(TIME, 26) },
    { "waits out a longer doubt", nil, found(free { doubt = 100 }, { stood = DOUBTED }),
      denies(101.25 - DOUBTED, { epoch = 3, doubted = true }) },
  }
end)

describe("a claim of an election that a session holds (S2)", function()
  local function by(one, seen) return found(held(), with({ holder = one, quiet = 0 }, seen)) end
  local lives, unsure = { node = "there", epoch = 3, stands = true }, { node = "there", epoch = 3, stands = true, unsure = true }
  claims {
    { "looks at the session first", nil, found(held()), says "look" },
    { "is doubted where the session is missing", nil, found(held(), { holder = false }), doubts(TIME) },
    { "waits, and does not know whether its holder lives", nil, by(holder()), denies(STANDS, unsure) },
    { "waits for one that lives", nil, by(holder(), { lives = true }), denies(STANDS, lives) },
    { "waits until the session has stood", nil, by(holder(), { quiet = STANDS - 0.001, lives = true }), denies(0.001, lives) },
    { "is granted then", nil, by(holder(), { quiet = STANDS }), grants(4, { serial = 8 }) },
    { "goes by the session's TTL", nil, by(holder { ttl = 100 }, { quiet = STANDS, lives = true }), denies(101.25 - STANDS, lives) },
    { "has a smaller margin with a short TTL", nil, by(holder { ttl = 0.8 }, { lives = true }), denies(0.8 + 0.008 + 0.1, lives) },
    { "is granted where the session is in a later life", nil, by(holder { at = 41 }), grants(4, { serial = 8 }) },
    { "is granted where that life is over", nil, by(holder { over = 40 }), grants(4, { serial = 8 }) },
    { "is granted where a later life is over", nil, by(holder { at = 40, over = 41 }), grants(4, { serial = 8 }) },
    { "waits where only an earlier life is over", nil, by(holder { over = 39 }, { lives = true }), denies(STANDS, lives) },
    { "waits where the session is in an earlier life, until both have stood", nil,
      by(holder { at = 39 }, { quiet = STANDS, stood = 2, lives = true }), denies(STANDS - 2, lives) },
    { "waits where the session is in an earlier life, however long the election has stood", nil,
      by(holder { at = 39 }, { quiet = 2, stood = STANDS, lives = true }), denies(STANDS - 2, lives) },
    { "is granted where both have stood", nil, by(holder { at = 39 }, { quiet = STANDS, stood = STANDS }),
      grants(4, { serial = 8 }) },
    { "does not ask how long the election has stood where the life is its own", nil, by(holder(), { quiet = STANDS, stood = 2 }),
      grants(4, { serial = 8 }) },
    { "waits for a peer that has written over it", nil, by(holder(), { quiet = STANDS, peer = { wait = 3, node = "peer", epoch = 9 } }),
      denies(3, { node = "peer", epoch = 9 }) },
    { "waits for a peer no longer than its lease", nil, by(holder(), { quiet = STANDS, peer = { wait = 0, node = "peer", epoch = 9 } }),
      grants(4, { serial = 8 }) },
  }
end)

describe("the record of a place (S13)", function()
  local function stored(more) return with({ v = 1, serial = 4, memory = "m", longest = TTL, node = "there" }, more) end
  local function seen(one, more)
    return with({ record = one, memory = "m", stood = 0, serial = one and one.serial or -1, epoch = 0, version = one and 1 }, more)
  end
  local function writes(serial, more)
    return function(verdict, one)
      assert.equal("write", verdict)
      assert.same(with({ v = 1, serial = serial, memory = "m", longest = TTL, node = "here" }, more), one)
    end
  end
  local function is(word, wait)
    return function(verdict, one)
      assert.equal(word, verdict)
      if wait then assert.near(wait, one, 1e-9) end
    end
  end
  local first, lost = { doubt = DOUBT }, { doubt = DOUBT, lost = true }
  for _, case in ipairs {
    { "is a doubt where there was none", nil, seen(false), writes(0, first) },
    { "is no doubt where an operator trusts that nobody was there", { trusts = true }, seen(false), writes(1) },
    { "is a doubt where one was deleted, whoever trusts", { trusts = true }, seen(false, { version = 3 }), writes(1, lost) },
    { "is a doubt where we saw one, whoever trusts", { trusts = true }, seen(false, { serial = 0 }), writes(1, lost) },
    { "is a doubt above the one that we saw", nil, seen(false, { serial = 9 }), writes(10, lost) },
    { "is a doubt where the store went back", nil, seen(stored(), { back = true, serial = 9 }), writes(10, lost) },
    { "is a doubt in another memory", nil, seen(stored { memory = "l" }), writes(5, lost) },
    { "is fine where it has been", nil, seen(stored()), is "fine" },
    { "is fine where longer TTLs have been", nil, seen(stored { longest = 100 }), is "fine" },
    { "gets a longer TTL", { longest = 13 }, seen(stored()), writes(5, { longest = 13 }) },
    { "keeps a longer TTL", nil, seen(stored { longest = 100, memory = "l" }), writes(5, { doubt = DOUBT, lost = true, longest = 100 }) },
    { "waits for a doubt", nil, seen(stored { doubt = DOUBT }), is("wait", DOUBTED) },
    { "waits until the doubt has stood", nil, seen(stored { doubt = DOUBT }, { stood = DOUBTED - 0.001 }), is("wait", 0.001) },
    { "is settled then", nil, seen(stored { doubt = DOUBT, lost = true }, { stood = DOUBTED }), writes(5) },
    { "waits for a doubt that was the first record", nil, seen(stored { serial = 0, doubt = DOUBT }), is("wait", DOUBTED) },
    { "is none any more where an operator trusts that nobody was there", { trusts = true }, seen(stored { serial = 0, doubt = DOUBT }),
      writes(1) },
    { "waits where the doubt is not the first record, whoever trusts", { trusts = true }, seen(stored { serial = 1, doubt = DOUBT }),
      is("wait", DOUBTED) },
    { "gets a longer doubt, still as the first record", { longest = 13 }, seen(stored { serial = 0, doubt = DOUBT }),
      writes(0, { doubt = 26, longest = 13 }) },
    { "gets a longer doubt", { longest = 13 }, seen(stored { doubt = DOUBT }, { stood = 1000 }),
      writes(5, { doubt = 26, longest = 13, lost = true }) },
  } do
    it(case[1], function() case[4](rule.place(me(case[2]), case[3])) end)
  end
end)

describe("a record that is written over another one", function()
  it("is ours by session, life and epoch", function()
    local mine = held { by = "@me-12" }
    assert.is_true(rule.is_ours(me(), mine, 40, 3))
    assert.is_false(rule.is_ours(me(), held(), 40, 3))
    assert.is_false(rule.is_ours(me(), mine, 41, 3))
    assert.is_false(rule.is_ours(me(), mine, 40, 4))
    assert.is_false(rule.is_ours(me(), false, 40, 3))
  end)

  it("is nobody's with the epoch that it is given (S4, S5)", function()
    assert.same({ v = 1, serial = 8, memory = "l", epoch = 9, later = "x" },
      rule.free(held { later = "x", directive = "evict", nonce = "n" }, 9, "l"))
    assert.same({ v = 1, serial = 1, memory = "l", epoch = 9 }, rule.free(false, 9, "l"))
  end)

  it("is the same in another memory (S9)", function()
    assert.same(held { serial = 8, memory = "l", directive = "evict" }, rule.vouch(held { directive = "evict" }, "l"))
  end)

  it("has a wish, which changes nothing else (S10)", function()
    assert.same(held { serial = 8, directive = "evict" }, rule.direct(held(), "evict"))
  end)

  it("ends a session's lives up to this one (S5)", function()
    assert.same(holder { serial = 10, over = 40 }, rule.over(holder()))
  end)

  it("renews a session, which is not over (S3)", function()
    assert.same({ v = 1, serial = 10, memory = "l", ttl = 13, at = 50, node = "here" },
      rule.renewal(me { ttl = 13 }, holder { over = 40, nonce = "n" }, "l"))
    assert.same({ v = 1, serial = 1, memory = "l", ttl = 13, at = 50, node = "here" }, rule.renewal(me { ttl = 13 }, false, "l"))
  end)

  it("is looked at again before its term ends (S6)", function()
    assert.near(2 * TTL - 0.37, rule.patrol_time(TTL), 1e-9)
  end)
end)

describe("a record", function()
  local function parse(text, name) return record.parse(text, name or "a") end

  for title, case in pairs {
    ["of an election"] = { '{"v":1,"serial":0,"epoch":3,"nonce":"n","memory":"m"}' },
    ["of an election that is held"] = { '{"v":1,"serial":1,"epoch":0,"by":"@o","at":4,"node":"n"}' },
    ["of an election that is doubted"] = { '{"v":1,"serial":1,"epoch":3,"doubt":94608000}' },
    ["of a session"] = { '{"v":1,"serial":1,"ttl":0.5,"at":3}', "@t" },
    ["of a session that is over, with the longest TTL"] = { '{"v":1,"serial":1,"ttl":31536000,"at":3,"over":0}', "@t" },
    ["of a session whose token begins like the store's name"] = { '{"v":1,"serial":1,"ttl":1,"at":3}', "@stored" },
    ["of a store"] = { '{"v":1,"serial":1,"longest":31536000}', "@store" },
    ["of a part of a store that is doubted"] = { '{"v":1,"serial":1,"longest":1,"doubt":94608000}', "@store@part" },
    ["with the highest count"] = { '{"v":1,"serial":9007199254740992,"epoch":9007199254740992}' },
    ["with a field that nobody knows"] = { '{"v":1,"serial":1,"epoch":3,"later":{"a":1}}' },
  } do
    it(title .. " is read", function()
      local one, problem = parse(case[1], case[2])
      assert.is_table(one, problem)
    end)
  end

  for title, case in pairs {
    ["that is no JSON"] = { "{" },
    ["that is no object"] = { "7" },
    ["without a version"] = { '{"serial":1,"epoch":3}' },
    ["of a version that never was"] = { '{"v":0,"serial":1,"epoch":3}' },
    ["without a serial"] = { '{"v":1,"epoch":3}' },
    ["whose serial is below nothing"] = { '{"v":1,"serial":-1,"epoch":3}' },
    ["whose serial is no whole number"] = { '{"v":1,"serial":1.5,"epoch":3}' },
    ["whose serial is a text"] = { '{"v":1,"serial":"1","epoch":3}' },
    ["whose epoch is above all numbers that are exact"] = { '{"v":1,"serial":1,"epoch":9007199254740994}' },
    ["without an epoch"] = { '{"v":1,"serial":1}' },
    ["that is held in no life"] = { '{"v":1,"serial":1,"epoch":3,"by":"@o"}' },
    ["that is held and doubted"] = { '{"v":1,"serial":1,"epoch":3,"by":"@o","at":1,"doubt":1}' },
    ["that is doubted for no time"] = { '{"v":1,"serial":1,"epoch":3,"doubt":0}' },
    ["that is doubted for too long"] = { '{"v":1,"serial":1,"epoch":3,"doubt":94608001}' },
    ["whose holder is a number"] = { '{"v":1,"serial":1,"epoch":3,"by":5,"at":1}' },
    ["whose node is a number"] = { '{"v":1,"serial":1,"epoch":3,"node":5}' },
    ["whose memory is a number"] = { '{"v":1,"serial":1,"epoch":3,"memory":5}' },
    ["whose nonce is a number"] = { '{"v":1,"serial":1,"epoch":3,"nonce":5}' },
    ["whose directive is a number"] = { '{"v":1,"serial":1,"epoch":3,"directive":5}' },
    ["of a session without a TTL"] = { '{"v":1,"serial":1,"at":3}', "@t" },
    ["of a session whose TTL is a text"] = { '{"v":1,"serial":1,"ttl":"1","at":3}', "@t" },
    ["of a session whose TTL is too long"] = { '{"v":1,"serial":1,"ttl":31536001,"at":3}', "@t" },
    ["of a session without a life"] = { '{"v":1,"serial":1,"ttl":1}', "@t" },
    ["of a session that is over at no number"] = { '{"v":1,"serial":1,"ttl":1,"at":3,"over":"3"}', "@t" },
    ["of a store without a TTL"] = { '{"v":1,"serial":1}', "@store" },
    ["of a store that is doubted for too long"] = { '{"v":1,"serial":1,"longest":1,"doubt":94608001}', "@store" },
    ["of a part of a store that looks like a session's"] = { '{"v":1,"serial":1,"ttl":1,"at":3}', "@store@part" },
  } do
    it(title .. " is refused", function()
      local one, problem = parse(case[1], case[2])
      assert.is_nil(one)
      assert.equal("the store's value is not a record of an election", problem)
    end)
  end

  it("of a later version is refused as such", function()
    local one, problem = parse '{"v":2,"anything":"else"}'
    assert.is_nil(one)
    assert.equal("a newer version of crown-lua wrote the record of 'a'", problem)
  end)

  it("that a peer has written over is held by nobody of ours", function()
    local text = '{"v":1,"serial":1,"epoch":3,"by":"@o","at":4,"node":"n","directive":"evict","memory":"m"}'
    assert.same({ v = 1, serial = 1, epoch = 3, memory = "m" }, record.read({ text = text, peer = { epoch = 2 } }, "a"))
    assert.equal(8, record.read({ text = text, peer = { epoch = 8 } }, "a").epoch)
    assert.equal("@o", record.read({ text = text }, "a").by)
    assert.is_false(record.read({ text = false, peer = { epoch = 8 } }, "a"))
    assert.is_nil((record.read({ text = "nonsense", peer = { epoch = 8 } }, "a")))
  end)

  it("has a serial above the one before, and the nonce that it is given", function()
    local before = { v = 1, serial = 4, nonce = "old", later = "x" }
    local one = record.after(before)
    assert.same({ v = 1, serial = 5, later = "x" }, one)
    assert.same({ v = 1, serial = 4, nonce = "old", later = "x" }, before)
    assert.matches('"nonce":"new"', record.text(one, "new"), 1, true)
    assert.equal("new", one.nonce)
  end)

  it("has a name of its own for a store, its parts and sessions, which no election has", function()
    assert.same({ "@store", "@store@p" }, { record.store_name(), record.store_name "p" })
    assert.same({ true, false }, { record.is_reserved "@a", record.is_reserved "a@" })
  end)
end)
