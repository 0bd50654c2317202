-- What an oracle's answers come to, one after the other: crown.election.contract.
local contract = require "crown.election.contract"

local STATE = { ttl = 3600, epoch = 7, node = "ann", error = "none yet" }

describe("the oracle contract", function()
  local function verdict(...) return { contract.verdict("claim", STATE, ...) } end

  it("takes a delay and what a grant may say", function()
    assert.same({ "granted", 5 }, verdict(true, 5))
    assert.same({ "granted", 5, 15, 7 }, verdict(true, 5, { ttl = 15, epoch = 7 }))
    assert.same({ "granted", math.huge }, verdict(true, math.huge))
  end)

  it("takes what is left of a lease, and for how long it has counted", function()
    local found = verdict(true, 5, { ttl = 14, past = 1, epoch = 7 })
    assert.same({ 15, 1 }, { found[3], found[9] })
    local theirs = { contract.verdicts_of({}, "own") ("claim", STATE, true, 5, { ttl = 14, past = 1, refresher = io.stdout }) }
    assert.same({ 15, nil, 1 }, { theirs[3], theirs[8], theirs[9] })
  end)

  for what, results in pairs {
    ["a delay of nothing"] = { true },
    ["a delay of zero"] = { true, 0 },
    ["a delay before now"] = { true, -1 },
    ["a delay that is no number"] = { true, 0 / 0 },
    ["a TTL before now"] = { true, 5, { ttl = -1 } },
    ["a TTL of zero"] = { true, 5, { ttl = 0 } },
    ["a TTL that the clock rounds to zero"] = { true, 5, { ttl = 1e-12 } },
    ["a TTL that is no number"] = { true, 5, { ttl = 0 / 0 } },
    ["a TTL without end"] = { true, 5, { ttl = math.huge } },
    ["a TTL that the clock cannot count"] = { true, 5, { ttl = 1e300 } },
    ["a past that the clock cannot count"] = { true, 5, { ttl = 15, past = 1e300 } },
    ["nothing left of a lease"] = { true, 5, { ttl = 0, past = 15 } },
    ["a TTL in words"] = { true, 5, { ttl = "15" } },
    ["an epoch of zero"] = { true, 5, { epoch = 0 } },
    ["a past in words"] = { true, 5, { ttl = 15, past = "1" } },
    ["a past to come"] = { true, 5, { ttl = 15, past = -1 } },
    ["a past without end"] = { true, 5, { ttl = 15, past = math.huge } },
    ["a past of a lease whose time is not told"] = { true, 5, { past = 1 } },
    ["a grant in words"] = { true, 5, "15" },
    ["a truth that is not true"] = { 1, 5 },
    ["a denial in words"] = { false, "ann" },
    ["an expiry in words"] = { false, { expires_in = "soon" } },
    ["the state in place of a grant"] = { true, 5, STATE },
    ["the state in place of a holder"] = { false, STATE },
    ["a grant with an unknown field"] = { true, 5, { ttl = 15, lease = 15 } },
    ["a holder with an unknown field"] = { false, { holder = "ann" } },
  } do
    it("believes nothing of " .. what, function()
      local word, why = contract.verdict("claim", STATE, unpack(results, 1, 3))
      assert.equal("unknown", word)
      assert.matches("claim returned .*contract", why)
    end)
  end

  for said, results in pairs {
    ["a hold of the text 'x', not the descriptor of an open file, or an array of up to 3"] = { true, 5, { hold = "x" } },
    ["a hold of 9999, not the descriptor of an open file, or an array of up to 3"] = { true, 5, { hold = 9999 } },
    ["a hold of 1.5, not the descriptor of an open file, or an array of up to 3"] = { true, 5, { hold = { 1, 1.5 } } },
    ["a hold of 4 descriptors, not the descriptor of an open file, or an array of up to 3"] = { true, 5, { hold = { 0, 1, 2, 0 } } },
    ["true and a refresh delay of the text 'soon', not a number of seconds"] = { true, "soon" },
    ["true, a delay and the text '15' as the grant, not a table"] = { true, 5, "15" },
    ["a cool_down of the text '1', not a number of seconds from 0 to 1000000000"] = { true, 5, { cool_down = "1" } },
    ["a grant with the unknown field 'node', and not only ttl, epoch, past, hold, cool_down"] = { true, 5, { node = {} } },
    ["a holder whose node is a table, not a text"] = { false, { node = {} } },
    ["a holder whose error is a function, not a text"] = { false, { error = print } },
    ["a holder whose evicted is the text 'false', not true or false"] = { false, { evicted = "false" } },
    ["a holder whose amnesia is 1, not true or false"] = { false, { amnesia = 1 } },
    ["a holder whose epoch is a table, not a number"] = { false, { epoch = {} } },
    ["a holder whose expires_in is the text 'soon', not a number of seconds"] = { false, { expires_in = "soon" } },
    ["nil and a table, not nil and a reason in words"] = { nil, {} },
    ["the text 'true', not true, false or nil"] = { "true", 5 },
  } do
    it("names the oracle, its function, what came and what is wanted: " .. said, function()
      local word, why = contract.verdicts_of({}, "own") ("claim", STATE, unpack(results, 1, 3))
      assert.same({ "unknown", "oracle 'own': claim returned " .. said .. ": see the oracle contract" }, { word, why })
    end)
  end

  it("takes descriptors that are open, names and reasons", function()
    assert.same({ "granted", 0, 1, 2 }, (function(v) return { v[1], v[5], v[6], v[7] } end)(verdict(true, 5, { hold = { 0, 1, 2 } })))
    assert.same({ "denied", "7", "7" }, (function(v) return { v[1], v[3], v[7] } end)(verdict(false, { node = 7, error = 7 })))
    assert.same({ "unknown", "raised" }, verdict(nil, setmetatable({}, { __tostring = function() return "raised" end })))
  end)

  it("says what a grant and a holder may have", function()
    assert.same({ "unknown", "claim returned its own state as the grant, which is a table of its own with ttl, epoch, past, hold, "
      .. "cool_down: see the oracle contract" }, verdict(true, 5, STATE))
    assert.same({ "unknown", "claim returned a holder with the unknown field 'holder', and not only node, epoch, expires_in, "
      .. "retry_in, evicted, amnesia, hears, unsure, error: see the oracle contract" }, verdict(false, { holder = "ann" }))
  end)

  it("tells an answer of the store from silence by its code: a store's own is a number, or in capitals", function()
    for _, code in ipairs { "store", "53100", "42P01", "OOM", 10077 } do
      assert.same({ "unknown", "full", "store", 3 }, verdict(nil, "full", code, 3), code)
    end
    for _, code in ipairs { "timeout", "closed", "refused", "dns", "tls", "protocol", "unavailable", "" } do
      assert.same({ "unknown", "away" }, verdict(nil, "away", code, 3), code)
    end
    assert.same({ "unknown", "wrong", "usage" }, verdict(nil, "wrong", "usage", 3))
    for _, pause in ipairs { 0, -1, 0 / 0, math.huge, "3" } do
      assert.same({ "unknown", "full", "store" }, verdict(nil, "full", "store", pause))
    end
  end)

  it("knows nothing where nothing is said", function()
    assert.equal("unknown", contract.verdict("claim", STATE, nil))
    assert.same({ "unknown", "no route" }, verdict(nil, "no route"))
    assert.equal("nothing", contract.verdict("handle_info", STATE, nil))
    assert.same({ "unknown", "no route" }, { contract.verdict("handle_info", STATE, nil, "no route") })
  end)

  it("is for functions alone, those that may be missing too", function()
    local module = { init = print, claim = print, refresh = print }
    assert.equal(module, (contract.find("x", { module })))
    for _, name in ipairs { "abdicate", "handle_info", "list", "evict", "timing", "health", "warnings" } do
      for _, value in ipairs { "text", {}, 7 } do
        module[name] = value
        local fine, problem = pcall(contract.find, "x", { module })
        assert.is_false(fine)
        assert.matches(("%s must be a function, not a %s"):format(name, type(value)), tostring(problem), 1, true)
      end
      module[name] = nil
    end
  end)

  it("tells a denial from an eviction", function()
    assert.same({ "denied" }, verdict(false))
    assert.same({ "evicted" }, verdict(false, { evicted = true }))
    local word, expires, node, epoch, amnesia = contract.verdict("refresh", STATE, false,
      { node = "ann", epoch = 7, expires_in = -1, amnesia = true })
    assert.same({ "denied", 0, "ann", 7, true }, { word, expires, node, epoch, amnesia })
  end)
end)
