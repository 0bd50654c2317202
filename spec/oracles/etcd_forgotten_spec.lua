-- An etcd that may have forgotten leases is sat out by everybody, also by who never saw it before (R12).
local crown = require "crown"
local Etcd = require "support.etcd"
local etcd = require "crown.oracles.etcd"
local eventually = require("crown.testing").eventually
local Player = require "support.oracle_candidate"
local WrongClock = require "support.wrong_clock"

describe("an etcd that may have forgotten (R12)", function()
  local server, count, clock

  before_each(function()
    clock = WrongClock.new(0)
    server, count = Etcd.start(nil, nil, clock), 0
  end)
  after_each(function() server:destroy() end)

  -- As in a runtime of its own: by another URL it shares nothing with the others.
  local function newcomer(node, options)
    count = count + 1
    local given = { name = "forgotten", node = node, ttl = 2, timeout = 5,
      url = "etcd://" .. server.endpoint .. ("," .. server.endpoint):rep(count) }
    for key, value in pairs(options or {}) do given[key] = value end
    local one = Player.new(etcd, given)
    one.url = given.url
    return one
  end

  local function leader(options)
    options.trust_empty = true
    local one = newcomer("one", options)
    assert.equal("granted", one:claim()[1])
    return one
  end

  local function is_doubted(verdict, least)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] >= least, verdict[2])
  end

  it("is sat out where nobody has been before: it may have been emptied under a leader with a longer lease", function()
    is_doubted(newcomer("one"):claim(), 28)
    local at, short = crown.now(), newcomer("short", { amnesia_wait = 1, lock = "another", url = server.url .. "/another" })
    is_doubted(short:claim(), 1)
    short:win()
    assert.is_true(crown.now() - at >= 2) -- its own TTL
  end)

  -- By hand, or by `etcdctl make-mirror`, which copies keys without their leases.
  local function put_age(words, lease) server:ctl("put", lease and "--lease=" .. lease or "--ignore-lease=false", "crown.age", words) end

  local function age_lease()
    return crown.json.decode(server:ctl("get", "crown.age", "-w", "json")).kvs[1].lease or 0
  end

  for what, lease_of in pairs { ["no lease"] = function() end,
    ["a lease of somebody else"] = function() return server:ctl("lease", "grant", "60"):match "lease (%x+) granted" end } do
    it("is sat out where the key of its age has " .. what .. ", and the key is replaced", function()
      put_age("20", lease_of())
      is_doubted(newcomer("one", { trust_empty = true, amnesia_wait = 1 }):claim(), 18) -- the longest TTL that it told of
      assert.is_true(age_lease() >= 1e17 and age_lease() < 1e18) -- as crown-lua numbers them
      put_age("1", lease_of())
      is_doubted(newcomer("two"):claim(), 28)
    end)

    it("loses no leader where the key of its age is written over with " .. what, function()
      local one = leader { ttl = 4 }
      put_age("20", lease_of())
      local at = crown.now()
      while crown.now() - at < 6 do
        assert.equal("granted", one:refresh()[1])
        crown.sleep(0.3)
      end
      assert.is_true(age_lease() >= 1e17 and age_lease() < 1e18) -- as crown-lua numbers them
    end)
  end

  it("is told of once where the key of its age is replaced", function()
    local told = {}
    local subscription = crown.on("oracle.error", function(event) told[#told + 1] = event.error end)
    put_age "20"
    newcomer("one"):claim()
    eventually(function() return #told > 0 end, 5)
    assert.matches("crown.age.*no lease.*replaced", told[1])
    assert.equal(1, #told)
    if subscription then subscription:cancel() end
  end)

  it("is believed at once where nobody can have emptied it, and only then", function()
    local one = newcomer("one", { trust_empty = true })
    assert.equal("granted", one:claim()[1])
    one:abdicate()
    assert.equal("granted", one:claim()[1])
    server:down()
    server:wipe()
    server:up()
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end, 20)
    is_doubted(verdict, 1)
  end)

  it("is not believed on the word of one who says that it cannot have been emptied, once it was started again", function()
    local one = newcomer("one", { trust_empty = true })
    assert.equal("granted", one:claim()[1])
    one:abdicate()
    server:down()
    server:up()
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end, 20)
    is_doubted(verdict, 1)
  end)

  it("is sat out by a newcomer when it was restored from a snapshot", function()
    local one = leader { ttl = 20 }
    local epoch = one:claim()[4]
    one:abdicate()
    server:ctl("snapshot", "save", server.dir .. "/snapshot")
    assert.is_true(one:claim()[4] > epoch)
    server:down()
    server:wipe()
    server:restore(server.dir .. "/snapshot")
    server:up()
    for _ = 1, 10 do server:ctl("put", "something", "new") end -- further than it was before
    is_doubted(newcomer("two"):claim(), 15)
  end)

  it("is sat out, neither for less nor for hours more, when its wall clock is stepped (R14)", function()
    for _, hours in ipairs { 5, -5 } do
      local here = newcomer("one", { amnesia_wait = 20, lock = "step" .. hours })
      is_doubted(here:claim(), 1)
      clock:set(hours * 3600)
      local verdict = newcomer("two", { amnesia_wait = 20, lock = "step" .. hours }):claim()
      is_doubted(verdict, 1)
      assert.is_true(verdict[2] < 25)
      server:ctl("del", "crown.age")
    end
  end)

  it("is sat out from when it was found so, also by a runtime that was started again meanwhile", function()
    local one = newcomer("one", { amnesia_wait = 4 })
    local first = one:claim()
    is_doubted(first, 3)
    local last
    eventually(function()
      last = newcomer("again", { amnesia_wait = 4 }):claim()
      return last[1] == "granted" or last[2] < 2
    end, 20)
    is_doubted(last, 0)
    assert.equal("granted", (newcomer("again", { amnesia_wait = 4 }):win())[1])
  end)

  it("is sat out for the longest TTL that was ever asked for there", function()
    leader { ttl = 20 }:abdicate()
    server:down()
    server:up()
    is_doubted(newcomer("two", { amnesia_wait = 0 }):claim(), 15)
  end)

  it("is sat out for a day at most, whatever somebody has written there as the longest TTL", function()
    leader({ ttl = 2 }):abdicate()
    server:ctl("put", "--ignore-lease", "crown.age", "1000000000000000000 1000000000000000000")
    local verdict = newcomer("two", { amnesia_wait = 0 }):claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] <= 86401, verdict[2])
  end)

  it("is sat out as another cluster by who knew the one before, however much was written there", function()
    local options = { name = "x", node = "one", url = server.url, ttl = 30, timeout = 5, trust_empty = true }
    local known = Player.new(etcd, options)
    assert.equal("granted", known:claim()[1])
    known:abdicate()
    server:down()
    server:wipe()
    server.more = { "--initial-cluster-token", "another" }
    server:up()
    for _ = 1, known.state.session.trust.at do server:ctl("put", "something", "new") end
    local verdict = known:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
  end)

  it("is led on through a restart, by who still has its key", function()
    local one = leader { ttl = 10 }
    local epoch = one:refresh()[4]
    server:down()
    server:up()
    is_doubted(newcomer("two", { lock = "another" }):claim(), 5)
    local verdict
    eventually(function() verdict = one:refresh() return verdict[1] ~= "unknown" end, 20)
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
  end)

  it("loses a leader whose key a snapshot lacks, though it has the lease", function()
    local one = leader { ttl = 10, lock = "first", token = "same" }
    server:ctl("snapshot", "save", server.dir .. "/snapshot")
    local two = Player.new(etcd, { name = "forgotten", node = "one", token = "same", url = one.url, ttl = 10 })
    assert.equal("granted", two:claim()[1])
    server:down()
    server:wipe()
    server:restore(server.dir .. "/snapshot")
    server:up()
    for _ = 1, 20 do server:ctl("put", "something", "new") end
    local verdict
    eventually(function() verdict = two:refresh() return verdict[1] ~= "unknown" end, 20)
    assert.equal("denied", verdict[1])
  end)

  it("is sat out when its revision went back, though it does not count leases anew", function()
    local one = leader { ttl = 10 }
    one:abdicate()
    local client = one.state.session.client
    local ask = client.ask
    client.ask = function(self, path, body) -- as with checkpoints of leases
      local answer, problem, code = ask(self, path, body)
      if answer and path == "/v3/lease/timetolive" then answer.TTL = "900000000" end
      return answer, problem, code
    end
    assert.equal("granted", one:claim()[1])
    one:abdicate()
    server:ctl("snapshot", "save", server.dir .. "/snapshot")
    for _ = 1, 5 do server:ctl("put", "something", "new") end
    assert.equal("granted", one:claim()[1])
    server:down()
    server:wipe()
    server:restore(server.dir .. "/snapshot")
    server:up()
    local verdict
    eventually(function() verdict = one:refresh() return verdict[1] ~= "unknown" end, 20)
    assert.equal("denied", verdict[1])
    is_doubted(one:claim(), 5)
  end)

  it("is led on when the key that names its memory is deleted, and gives nothing more for a while", function()
    local one = leader { ttl = 10 }
    server:ctl("del", "crown.age")
    assert.equal("granted", one:refresh()[1])
    is_doubted(newcomer("two", { lock = "another" }):claim(), 20)
    local again = Player.new(etcd, { name = "again", node = "one", url = one.url, ttl = 10 })
    is_doubted(again:claim(), 5)
    assert.equal("granted", one:refresh()[1])
  end)
end)

describe("an election on etcd", function()
  local server

  before_each(function()
    server = Etcd.start():trusted()
    server:trusted "a"
    server:trusted "a/b"
  end)
  after_each(function() server:destroy() end)

  local function candidate(prefix, lock, token)
    return Player.new(etcd, { name = "e", node = "one", url = server.url .. (prefix and "/" .. prefix or ""), lock = lock, ttl = 5,
      token = token })
  end

  it("is another one than that of a longer prefix and a shorter name", function()
    assert.equal("granted", candidate("a", "b/c"):claim()[1])
    assert.equal("granted", candidate("a/b", "c"):claim()[1])
    assert.equal("granted", candidate("a", "b%2Fc"):claim()[1])
    assert.equal("denied", candidate("a", "b/c"):claim()[1])
    local names = {}
    for i, one in ipairs(assert(etcd.list { url = server.url .. "/a" })) do names[i] = one.name end
    assert.same({ "b%2Fc", "b/c" }, names)
  end)

  it("is refused where its name is a part of another URL's prefix, of which an election is there", function()
    candidate("a/b", "c"):claim()
    local verdict = candidate("a", "b"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("below a/b/ are elections of another URL, whose prefix that is: use another name", verdict[2])
  end)

  it("is refused where its URL's prefix is an election of another URL, and leaves no key there", function()
    assert.equal("granted", candidate("a", "x"):claim()[1])
    local verdict = candidate("a/x", "c"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("a/x is an election of another URL: use another prefix", verdict[2])
    assert.equal("", server:ctl("get", "a/x/.age"))
  end)

  it("is not taken from a runtime whose token is much like one's own", function()
    local one = candidate(nil, "like", "token-Aa")
    assert.equal("granted", one:claim()[1])
    assert.equal("denied", candidate(nil, "like", "token-BB"):claim()[1]) -- a sum of their bytes times 31 is the same
    assert.equal("granted", one:refresh()[1])
  end)
end)
