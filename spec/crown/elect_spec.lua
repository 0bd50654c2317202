local crown = require "crown"
local elections = require "crown.core.election"
local Elections = require "support.elections"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"
local write_file = require "support.write_file"

local unique = Elections.unique

describe("crown.elect", function()
  local clock
  local mine = Elections.new()

  local function elect(options) return mine:elect(options) end

  after_each(function()
    if clock then clock:restore() end
    clock = nil
    mine:stop()
  end)

  it("leads, tells won with a term, and tells lost with the reason, once each, at shutdown too (R10)", function()
    local calls, last_term = {}, nil
    local election = elect { oracle = "memory:" .. unique(), handlers = {
      won = function(term) last_term, calls[#calls + 1] = term, ("won %d %s"):format(term.epoch, tostring(term:valid())) end,
      lost = function(reason) calls[#calls + 1] = "lost " .. reason end,
    } }
    testing.eventually(function() return #calls == 1 end)
    assert.equal("leading", election:status().phase)
    assert.is_true(election:is_leader())
    election:stop()
    testing.eventually(function() return election.handle:finished() end)
    assert.same({ "won 1 true", "lost shutdown" }, calls)
    assert.is_false(election:is_leader())
    assert.same({ false, 0 }, { last_term:valid(), last_term:remaining() })
    for _, name in ipairs { "valid", "remaining" } do -- as a function, it is not this term that is asked
      local fine, problem = pcall(function() return last_term[name]() end)
      assert.is_false(fine)
      assert.matches(("elect_spec.lua:%%d+: term.%s%%(%%) is a method: write term:%s%%(%%)"):format(name, name), tostring(problem))
    end
  end)

  it("tells lost of no term that was over before its won began (R10)", function()
    local calls, election = {}, nil
    local fake = testing.fake_oracle():answer("claim", {
      function() -- right after the grant, and before anything that the grant begins
        crown.spawn(function() election:abdicate() end)
        return true, 1
      end,
      function() return true, 1 end,
    })
    election = mine:elect { oracle = fake, retry = 0.05, handlers = {
      won = function(term) calls[#calls + 1] = "won " .. term.epoch end,
      lost = function(reason) calls[#calls + 1] = "lost " .. reason end,
    } }
    testing.eventually(function() return election:is_leader() and #calls > 0 end)
    assert.equal(1, fake:count "abdicate")
    mine:stop()
    assert.same({ "won 2", "lost shutdown" }, calls)
  end)

  it("gives handlers their state first when they have an init", function()
    local seen
    elect { oracle = "memory:" .. unique(), handlers = {
      init = function(opts) return { name = opts.crown_name } end,
      won = function(state, term) seen = state.name .. " " .. term.epoch end,
    } }
    testing.eventually(function() return seen end)
    assert.matches("^elect%-spec%-%d+ 1$", seen)
  end)

  it("cancels the tasks of a term at its end, and never resumes them (P1)", function()
    local beats, over = 0, false
    local election = elect { oracle = "memory:" .. unique(), handlers = {
      won = function()
        crown.spawn(function()
          while true do
            crown.sleep(0.005)
            beats = beats + 1
            assert(not over)
          end
        end)
      end,
      lost = function() over = true end,
    } }
    testing.eventually(function() return beats > 3 end)
    election:stop()
    testing.eventually(function() return election.handle:finished() end)
    local last, others = beats, 0
    crown.spawn(function()
      for _ = 1, 6 do
        crown.sleep(0.005)
        others = others + 1
      end
    end)
    testing.eventually(function() return others == 6 end) -- so often it would have gone on
    assert.equal(last, beats)
  end)

  for label, raise in pairs {
    ["a method that is called without a colon"] = { function(term) term.valid() end, "write term:valid%(%)" },
    ["a table"] = { function() error {} end, "an error that is no text" },
  } do
    it("says what was wrong in a handler: " .. label, function()
      local reported
      crown.on("handler.error", function(event) reported = reported or event end)
      elect { oracle = "memory:" .. unique(), handlers = { won = raise[1] } }
      testing.eventually(function() return reported end)
      assert.matches(raise[2], reported.error)
    end)
  end

  it("steps down when won raises, and reports it with a traceback", function()
    local reason, reported
    crown.on("handler.error", function(event) reported = event end)
    local election = elect { oracle = "memory:" .. unique(), handlers = {
      won = function() error "boom" end,
      lost = function(why) reason = why end,
    } }
    testing.eventually(function() return reason and reported end)
    assert.equal("handler_failed", reason)
    assert.matches("boom.*stack traceback", reported.error)
    assert.equal(election.name, reported.name)
  end)

  it("keeps leading while nothing is known, and steps down in time (R3)", function()
    local fake = testing.fake_oracle():grant(0.05, { ttl = 4, epoch = 7 })
    local reason
    local election = elect { oracle = fake, handlers = { won = function() end, lost = function(why) reason = why end } }
    testing.eventually(function() return election:is_leader() end)
    fake:fail "no answer"
    local asked = fake:count "refresh"
    testing.eventually(function() return fake:count "refresh" >= asked + 2 end)
    assert.is_true(election:is_leader())
    testing.eventually(function() return reason end, 10)
    assert.equal("expired", reason)
  end)

  it("tells of a command that had to end at the deadline as stopped, not as exited", function()
    local result = run({ write_file(tempdir() .. "/app.lua", [[
      local crown = require "crown"
      local Oracle = {}
      function Oracle.init() return setmetatable({}, { __index = Oracle }) end
      function Oracle:claim()
        if self.granted then return false end
        self.granted = true
        return true, 0.3, { ttl = 2, epoch = 1 }
      end
      function Oracle.refresh() return nil, "no answer" end
      local left = 10
      crown.on("child.exited", function() print "exited" end)
      crown.on("child.stopped", function()
        print "stopped"
        left = left - 1
        if left == 0 then os.exit(0) end
      end)
      for i = 1, 10 do
        crown.elect { name = "one" .. i, oracle = { Oracle }, stop_timeout = 0.5, child = { "sleep", "100" } }
      end
    ]]) }, { timeout = 60 })
    assert.equal(("stopped\n"):rep(10), result.stdout)
  end)

  it("gives up a call that never answers, releases what it may have got, and tries again (R5)", function()
    local fake = testing.fake_oracle()
    fake:answer("claim", { function() crown.sleep(math.huge) end, { true, 5, { ttl = 60, epoch = 1 }, n = 3 } })
    local election = elect { oracle = fake, call_timeout = 0.05, retry = 0.01 }
    testing.eventually(function() return election:is_leader() end)
    assert.same({ "claim", "abdicate", "claim" }, { fake.calls[1], fake.calls[2], fake.calls[3] })
  end)

  it("counts time on a clock that nobody sets and that runs through suspend (R14)", function()
    local function uptime() -- seconds since boot, suspend included: proc(5)
      return tonumber(read_file "/proc/uptime":match "^%S+")
    end
    local before = uptime()
    local app = write_file(tempdir() .. "/app.lua", 'print(("%.3f"):format(require("crown").now()))')
    local result = run { app } -- the clock of this process may be one that a test moved on
    local now = tonumber(result.stdout)
    assert.is_true(before <= now and now <= uptime() + 0.01, result.stdout) -- /proc tells hundredths
  end)

  it("stops at once when it is told that it lost, and claims again (R13)", function()
    local fake = testing.fake_oracle():grant(0.02, { ttl = 10, epoch = 1 })
    local reasons = {}
    local election = elect { oracle = fake, retry = 0.02, handlers = {
      lost = function(why) reasons[#reasons + 1] = why end } }
    testing.eventually(function() return election:is_leader() end)
    fake:deny { node = "other", epoch = 2, expires_in = 0.02 }
    testing.eventually(function() return reasons[1] == "denied" end)
    fake:grant(0.02, { ttl = 10, epoch = 3 })
    testing.eventually(function() return election:is_leader() end)
    assert.equal(3, election:status().epoch)
  end)

  it("reports an oracle that breaks the contract, by function and value, and goes on", function()
    local seen
    crown.on("oracle.error", function(event) seen = event end)
    elect { retry = 0.05, oracle = { init = function() return {} end, claim = function() return "maybe" end,
      refresh = print } }
    testing.eventually(function() return seen end)
    assert.equal("claim", seen["function"])
    assert.matches("claim returned the text 'maybe'", seen.error)
  end)

  for what, answer in pairs { grant = { true, 5 }, holder = { false } } do
    it("does not take the oracle's state for a " .. what, function()
      local state, told = { ttl = 3600, epoch = 7, node = "ann", expires_in = 3600 }, nil
      crown.on("oracle.error", function(event) told = told or event.error end)
      answer[#answer + 1] = state
      local election = elect { oracle = { init = function() return state end, refresh = print,
        claim = function() return unpack(answer) end } }
      testing.eventually(function() return told end)
      assert.matches("claim returned its own state as the " .. what, told, 1, true)
      assert.same({ false, 0 }, { election:is_leader(), election:status().epoch })
    end)
  end

  it("tells of an outage once, not at every try, and again when the reason changes", function()
    local told, calls, reason = {}, 0, "the store is on fire"
    crown.on("oracle.error", function(event) told[#told + 1] = event.error end)
    elect { retry = 0.01, oracle = { init = function() return {} end, refresh = print,
      claim = function() calls = calls + 1 return nil, reason end } }
    testing.eventually(function() return calls > 5 end)
    assert.same({ "the store is on fire" }, told)
    reason = "the store is flooded"
    testing.eventually(function() return told[2] == reason end)
  end)

  it("tells each reason of an outage once, though they alternate, and again in the next outage", function()
    local told, calls, is_there = {}, 0, false
    crown.on("oracle.error", function(event) told[#told + 1] = event.error end)
    elect { retry = 0.01, oracle = { init = function() return {} end,
      claim = function()
        calls = calls + 1
        if is_there then return true, 0.01, { ttl = 60 } end
        return nil, calls % 2 == 0 and "refused" or "timeout"
      end,
      refresh = function() return nil, "refused" end } }
    testing.eventually(function() return calls > 8 end)
    table.sort(told)
    assert.same({ "refused", "the store gave no answer in time" }, told)
    is_there = true
    testing.eventually(function() return told[3] == "refused" end)
  end)

  it("takes no part, without an error, when init returns crown.IGNORE", function()
    local election = elect { oracle = { init = function() return crown.IGNORE end, claim = error, refresh = error } }
    assert.equal("finishing", election:status().phase)
    assert.is_nil((election:send "hello"))
  end)

  it("hands messages to handle_info, whose verdict counts", function()
    local fake = testing.fake_oracle()
    fake:answer("handle_info", { { true, math.huge, { epoch = 5 } } })
    local election = elect { oracle = fake, monitor_leader = false }
    testing.eventually(function() return fake:count "claim" == 1 end)
    assert.is_true(election:send "you lead")
    testing.eventually(function() return election:is_leader() end)
    fake:answer("handle_info", { { false } })
    election:send "no more"
    testing.eventually(function() return fake:count "claim" == 2 end) -- once after a term of its own
    clock = testing.fake_clock()
    clock:advance(3600)
    assert.equal(2, fake:count "claim")
    assert.is_false(election:is_leader())
  end)

  describe("tells the leader handler and crown.on", function()
    local function follow(options)
      local told, events = {}, {}
      options.name = unique()
      options.handlers = { leader = function(name, epoch) told[#told + 1] = name .. " " .. epoch end }
      crown.on("leadership.changed", function(event)
        if event.name == options.name then events[#events + 1] = event.leader .. " " .. event.epoch end
      end)
      local election = elect(options)
      return function(...)
        local expected = { ... }
        testing.eventually(function() assert.same({ expected, expected }, { told, events }) return true end, 20)
      end, election
    end

    it("once of each leader, on followers too", function()
      local fake = testing.fake_oracle():deny { node = "ann", epoch = 3 }
      local tells, election = follow { oracle = fake, retry = 0.01 }
      tells "ann 3"
      testing.eventually(function() return fake:count "claim" > 3 end)
      tells "ann 3"
      fake:deny { node = "ann", epoch = 4 }
      tells("ann 3", "ann 4")
      fake:deny()
      testing.eventually(function() return election:status().leader == nil end)
      fake:grant(10, { epoch = 5 })
      tells("ann 3", "ann 4", crown.node .. " 5")
    end)

    it("not again when an epoch comes to be known later, and again after a term without epochs", function()
      local fake = testing.fake_oracle():deny { node = "ann" }
      local tells = follow { oracle = fake, retry = 0.01 }
      tells "ann 0"
      fake:deny { node = "ann", epoch = 4 }
      testing.eventually(function() return fake:count "claim" > 5 end)
      tells "ann 0"
      fake:deny { node = "ben" }
      tells("ann 0", "ben 0")
    end)
  end)

  it("names nobody as leader after a child that failed, and says how it ended", function()
    local election = elect { oracle = testing.fake_oracle():grant(10, { ttl = 30, epoch = 1 }), child = {
      command = { "sh", "-c", "exit 3" }, restart = { max = 0, within = 60 } } }
    testing.eventually(function() return election:status().child_code == 3 and election:status().phase == "following" end, 20)
    assert.is_nil(election:status().leader)
  end)

  it("says since when the store gives no answer, and why", function()
    local fake = testing.fake_oracle():fail "out of order"
    local election = elect { oracle = fake, retry = 0.01 }
    testing.eventually(function() return election:status().failure == "out of order" end)
    assert.is_true(election:status().away >= 0)
    assert.is_nil(election:status().answered)
    fake:deny()
    testing.eventually(function() return not election:status().failure end)
    assert.is_nil(election:status().away)
    assert.is_true(election:status().answered >= 0)
  end)

  it("says how long a store that forgot is sat out, and why", function()
    local said
    local name = unique()
    crown.on("oracle.amnesia", function(event) if event.name == name then said = said or event end end)
    elect { name = name, oracle = testing.fake_oracle():deny { amnesia = true, expires_in = 15 } }
    testing.eventually(function() return said end)
    assert.equal(15, said.wait)
    assert.matches("may have lost the record of who leads", said.error)
  end)

  it("counts its own terms where the oracle gives no epoch", function()
    local fake = testing.fake_oracle():grant(10)
    local election = elect { oracle = fake, retry = 0.01 }
    testing.eventually(function() return election:is_leader() end)
    assert.equal(1, election:status().epoch)
    election:abdicate()
    testing.eventually(function() return election:is_leader() and election:status().epoch == 2 end)
  end)

  for what, case in pairs {
    ["asks again within a minute, whatever an oracle says of the lease that runs"] = { { expires_in = 15000 }, 61, 2 },
    ["asks again within four TTLs where those are longer"] = { { expires_in = 15000 }, 61, 1, { ttl = 30 } },
    ["sits out all that a store which forgot asks for"] = { { expires_in = 15000, amnesia = true }, 14000, 1 },
    ["asks again within a minute, whatever an oracle says of its next question"] = { { retry_in = 1e7 }, 70, 2 },
    ["asks again before a pause that is longer than a minute, where four TTLs are longer"] = { { retry_in = 1e7 }, 61, 1,
      { ttl = 30 } },
  } do
    it(what, function()
      local errors, fake = 0, testing.fake_oracle():deny(case[1])
      local name = unique()
      crown.on("oracle.error", function(event) if event.name == name then errors = errors + 1 end end)
      if case[4] then fake.timing = function() return case[4].ttl, 1 end end
      elect { name = name, oracle = fake }
      testing.eventually(function() return fake:count "claim" == 1 end)
      clock = testing.fake_clock()
      clock:advance(case[2])
      assert.equal(case[3], fake:count "claim")
      assert.equal(case[1].amnesia and 0 or 1, errors)
    end)
  end

  for what, denial in pairs { ["ends at once, each time"] = { expires_in = 0 }, ["ends soon, each time"] = { expires_in = 0.05 },
    ["ended"] = { expires_in = -3 }, ["is to be asked for at once"] = { retry_in = 0.0001 },
    ["was forgotten just now"] = { expires_in = 0, amnesia = true } } do
    it("asks ever later for a lease that " .. what, function()
      local fake = testing.fake_oracle():deny(denial)
      elect { name = unique(), oracle = fake }
      testing.eventually(function() return fake:count "claim" >= 1 end)
      clock = testing.fake_clock()
      clock:advance(30)
      local asked = fake:count "claim"
      assert(asked >= 20 and asked <= 50, asked .. " questions in 30 s")
    end)
  end

  it("asks at once again where a lease that was long ends", function()
    local fake = testing.fake_oracle():deny { expires_in = 0 }
    elect { name = unique(), oracle = fake }
    testing.eventually(function() return fake:count "claim" >= 6 end)
    clock = testing.fake_clock()
    fake:deny { expires_in = 5 }
    clock:advance(5)
    fake:deny { expires_in = 0 }
    local before = fake:count "claim"
    clock:advance(2)
    assert(fake:count "claim" - before >= 8, fake:count "claim" - before .. " questions")
  end)

  it("follows a frozen clock: a lease that nobody extends runs out before its end, and not long before", function()
    local reason
    local fake = testing.fake_oracle():grant(10, { ttl = 30, epoch = 1 })
    local election = elect { oracle = fake, stop_timeout = 1, handlers = {
      won = function() end, lost = function(why) reason = why end } }
    testing.eventually(function() return election:is_leader() end)
    fake:fail "no answer"
    clock = testing.fake_clock()
    local at = clock.now()
    clock:advance(27)
    assert.is_true(math.abs(clock.now() - at - 27) < 0.001)
    assert.same({ true, nil }, { election:is_leader(), reason })
    clock:advance(2.7)
    assert.same({ false, "expired" }, { election:is_leader(), reason })
  end)

  it("waits for its cool-down between the grant and the term", function()
    local wins = 0
    local fake = testing.fake_oracle():grant(60, { ttl = 600, epoch = 1 })
    local election = elect { oracle = fake, cool_down = 30, handlers = { won = function() wins = wins + 1 end } }
    testing.eventually(function() return fake:count "claim" == 1 end)
    clock = testing.fake_clock()
    clock:advance(20)
    assert.same({ 0, false }, { wins, election:is_leader() })
    clock:advance(20)
    assert.same({ 1, true }, { wins, election:is_leader() })
  end)

  it("takes less time off a lease for a command's end in a PID namespace, which goes at once", function()
    local _, tree = elections.explain({ child = { isolation = "tree" } }, 60, 20)
    local _, namespace = elections.explain({ child = { isolation = "pidns" } }, 60, 20)
    assert.is_true(namespace.lead < tree.lead)
    assert.is_true(namespace.kill_at > tree.kill_at)
  end)

  it("adds what its child writes to the end of the file that is meant", function()
    local path = tempdir() .. "/output"
    write_file(path, "what stood there before\n")
    elect { oracle = "memory:", child = { command = { "echo", "more" }, stdout = path, restart = { policy = "transient" } } }
    testing.eventually(function() return read_file(path):find "more" end, 20)
    assert.equal("what stood there before\nmore\n", (read_file(path)))
  end)
end)
