-- What a candidate answers its core, by what stands in a store that is a table.
local Oracle = require "crown.register.oracle"
local record = require "crown.register.record"

local TTL = 12
local STANDS = TTL * 1.01 + 0.25
local OTHER = "@other-12"

describe("a candidate on a register", function()
  local rows, store, kinds, sent

  before_each(function()
    rows, kinds, sent, store = {}, {}, {}, {}
    local count = 0
    function store.look(_, names)
      if store.down then return nil, "no answer", "timeout" end
      local answers = {}
      for _, name in ipairs(names) do
        local row = rows[name]
        answers[name] = { text = row and row.text or false, version = row and row.version or false, memory = "m" }
      end
      return answers
    end
    function store.swap(_, writes)
      local results = {}
      for i, one in ipairs(writes) do
        count = count + 1
        results[i] = (rows[one.name] and rows[one.name].version or false) == one.version and count
        if results[i] then rows[one.name] = { text = one.text, version = count } end
      end
      return results
    end
  end)

  local doubts = {}
  function doubts.denial(_, seconds, is_empty, holder)
    return false, { doubted_for = seconds, is_empty = is_empty, holder = holder }
  end

  local function join(more)
    local options = { name = "job", place = "p", token = "t", node = "here", ttl = TTL, delay = TTL / 3, timeout = 1, amnesia_wait = 0,
      trust_empty = true, doubts = doubts, election = { send = function(_, message) sent[#sent + 1] = message end } }
    for key, value in pairs(more or {}) do options[key] = value end
    return Oracle.join(kinds, store, options)
  end

  local function hear() function store.hear() end end

  -- Another runtime's session holds the election.
  local function strange()
    rows[OTHER] = { text = '{"v":1,"serial":1,"memory":"m","ttl":12,"at":1,"node":"o","nonce":"o"}', version = "o1" }
    rows.job = { text = ('{"v":1,"serial":1,"memory":"m","epoch":7,"by":"%s","at":1,"node":"there","nonce":"x"}'):format(OTHER),
      version = "x1" }
  end

  it("is refused under a name of a session", function()
    assert.same({ nil, "'@job' is no name for an election: one that begins with '@' is a session's" }, { join { name = "@job" } })
  end)

  it("shares a session with those that have the same times and place", function()
    local one = join()
    assert.equal(one.session, join { name = "other" }.session)
    for key, value in pairs { place = "q", token = "u", ttl = 13, delay = 3, timeout = 2, amnesia_wait = 5 } do
      assert.are_not.equal(one.session, join { [key] = value }.session, key)
    end
    function store.part_of(_, name) return name end
    assert.are_not.equal(join().session, join { name = "other" }.session)
  end)

  it("has what is its own where that differs from the others'", function()
    local one, two = join { retry = 2 }, join { retry = 3, trust_empty = false }
    assert.same({ 2, true, 3, false }, { one.retry, one.trusts, two.retry, two.trusts })
    assert.equal(one.session, two.session)
  end)

  it("gives its session the times that it needs", function()
    local session = join { amnesia_wait = 5, timeout = 2, remembers = true }.session
    assert.same({ TTL, 4, 8, 5, true, "here", "@t-12" },
      { session.ttl, session.delay, session.patience, session.floor, session.remembers, session.node, session.name })
  end)

  it("looks again each second while it hears of nothing", function()
    strange()
    assert.same({ false, { node = "there", epoch = 7, retry_in = 1, unsure = true } }, { join():claim() })
    hear()
    kinds, store.deaf = {}, true
    assert.equal(1, select(2, join():claim()).retry_in)
  end)

  it("looks again as often as its user says", function()
    strange()
    hear()
    local denial = select(2, join { retry = 0.5 }:claim())
    assert.same({ 0.5, nil }, { denial.retry_in, denial.expires_in })
  end)

  it("looks again when the holder's session is over where that is sooner", function()
    strange()
    local denial = select(2, join { retry = 30 }:claim())
    assert.is_nil(denial.retry_in)
    assert.is_true(denial.expires_in > TTL and denial.expires_in <= STANDS, denial.expires_in)
  end)

  it("has itself told where it hears of changes, and looks by itself after a minute or four TTLs", function()
    strange()
    hear()
    for ttl, most in pairs { [12] = 60, [20] = 80 } do
      local state, followed = join { ttl = ttl }, nil
      function state.watch.add(_, member, is_unsure) followed = { member, is_unsure } end
      local denial = select(2, state:claim())
      assert.is_true(denial.retry_in > 0.75 * most and denial.retry_in <= most, denial.retry_in)
      assert.same({ state, true }, followed)
    end
  end)

  it("says for how long a peer holds the election", function()
    strange()
    hear()
    local look = store.look
    function store.look(...)
      local answers = look(...)
      answers.job.peer = { node = "peer", epoch = 9, wait = 5 }
      return answers
    end
    local denial = select(2, join():claim())
    assert.same({ "peer", 9, nil }, { denial.node, denial.epoch, denial.retry_in })
    assert.near(5, denial.expires_in, 0.5)
  end)

  it("says why nobody claims in doubt", function()
    local granted, why = join { trust_empty = false }:claim()
    assert.is_false(granted)
    assert.is_true(why.is_empty)
    assert.near(2 * TTL * 1.01 + 0.25, why.doubted_for, 0.5)
    rows.job = { text = '{"v":1,"serial":1,"memory":"l","epoch":7,"nonce":"x"}', version = "x1" }
    assert.is_false(select(2, join { trust_empty = false, token = "u" }:claim()).is_empty)
  end)

  it("knows nothing where its store does not answer", function()
    store.down = true
    assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, join():claim() })
  end)

  it("writes what no other runtime writes, and nothing twice", function()
    local state = join()
    state:claim()
    local life, first = rows.job.text:match '"nonce":"(%x+)%-(%d+)"'
    assert.equal(16, #life)
    state:abdicate()
    local again, second = rows.job.text:match '"nonce":"(%x+)%-(%d+)"'
    assert.equal(life, again)
    assert.are_not.equal(first, second)
  end)

  it("leads until it gives back, or has lost its term", function()
    local state = join()
    assert.is_false((state:refresh()))
    local granted, _, grant = state:claim()
    assert.is_true(granted and state.leading)
    assert.equal(grant.epoch, record.parse(rows.job.text, "job").epoch)
    assert.is_true((state:refresh()))
    state:abdicate()
    assert.is_false(state.leading)
    assert.is_false((state:refresh()))
    assert.is_true((state:claim()))
    strange()
    rows.job.text = rows.job.text:gsub('"epoch":7', '"epoch":9000000000000'):gsub('"serial":1', '"serial":50')
    assert.same({ false, { node = "there", epoch = 9000000000000 } }, { state:handle_info "changed" })
    assert.same({ "changed" }, sent)
    assert.is_false(state.leading)
    assert.is_false((state:refresh()))
  end)

  it("leads on when it is asked to go, until it gives back", function()
    local state = join()
    state:claim()
    rows.job = { text = rows.job.text:gsub("^{", '{"directive":"evict",'), version = "e" }
    assert.same({ false, { evicted = true } }, { state:handle_info "changed" })
    assert.is_true(state.leading)
    assert.is_true((state:refresh()))
  end)

  it("claims when its record changes while another one leads, and does nothing at other messages", function()
    strange()
    local state = join()
    assert.is_nil(state:handle_info "another")
    assert.is_nil(rows["@t-12"])
    assert.is_false((state:handle_info "changed"))
    rows.job = { text = '{"v":1,"serial":5,"memory":"m","epoch":7,"nonce":"y"}', version = "x2" }
    assert.is_true((state:handle_info "changed"))
    assert.is_nil((state:handle_info "changed")) -- a leader looks, and has nothing to say
  end)

  it("tells its core whether a renewal refreshes its term, and asks for its deadline", function()
    local stood
    local handle = { stand = function(_, on) stood = on end, deadline = function() return 42 end }
    local state = join { election = { send = function() end, handle = handle } }
    state:claim()
    assert.is_true(stood)
    assert.equal(42, state:deadline())
    state:abdicate()
    assert.is_false(stood)
    Oracle.join_several({ state }, {})
    assert.is_falsy(state:deadline()) -- of several registers the core has the deadline of most of them
    stood = nil
    state:claim()
    assert.is_nil(stood)
    assert.is_nil((join { token = "v" }:deadline()))
  end)

  it("has what it is given where it asks several", function()
    local given = { ttl = TTL, retry = 2, election = {}, doubts = doubts }
    local both = Oracle.join_several({ join() }, given)
    for key, value in pairs(given) do assert.equal(value, both[key], key) end
    assert.is_false(both.leading)
    assert.is_false((both:refresh()))
  end)

  describe("on several of which one is deaf", function()
    it("looks again each second", function()
      hear()
      local parts = { join(), join { place = "q" } }
      local both = Oracle.join_several(parts, {})
      assert.is_falsy((both:is_deaf()))
      parts[2].store = setmetatable({ deaf = true }, { __index = store })
      assert.is_true(both:is_deaf())
    end)

    it("follows those that have a holder", function()
      hear()
      local parts, followed = { join(), join { place = "q" } }, {}
      for i, part in ipairs(parts) do
        function part.follow(_, is_unsure) followed[i] = is_unsure end
      end
      parts[2].slot.holder = {}
      Oracle.join_several(parts, {}):follow(true)
      assert.same({ [2] = true }, followed)
    end)
  end)
end)
