--- A session and its elections over a store that a spec plays by hand. Every question takes `lasts` seconds of a clock that
-- nothing else moves but `pass`, in which what sleeps goes on in time. A store that is `deaf` answers no look; one that is `mute`
-- carries writes out, and does not say so; one that is `closed` gets none; one that is `slow` takes so many seconds for each, in
-- which who can wait does. `on_look` and `on_swap` are called before a question is carried out.
local load = require "support.register_modules"
local Renewals = require "support.register_renewals"

local TTL = 12

--- @tparam[opt] boolean marks whether the store keeps a mark of what is deleted
-- @number[opt] many so many elections that end together are given back by one write
-- @tparam[opt] table clock of another one, with which this one's time passes
return function(marks, many, clock)
  clock = clock or { now = 100, sleepers = {} }
  clock.spec = coroutine.running()
  local modules, rows, count = load(), {}, 0
  local here = { lasts = 0, rows = rows, memory = "m", trusts = true, offset = 0, looks = 0, many = many }
  local store = { marks = marks }
  local sleepers = clock.sleepers
  local function sleep(seconds)
    sleepers[#sleepers + 1] = { thread = coroutine.running(), ends = clock.now + seconds }
    coroutine.yield()
  end
  local function wake_until(ends)
    table.sort(sleepers, function(a, b) return a.ends < b.ends end)
    local first = sleepers[1]
    if not first or first.ends > ends then return false end
    table.remove(sleepers, 1)
    clock.now = math.max(clock.now, first.ends)
    assert(coroutine.resume(first.thread))
    return true
  end
  function store.look(_, names)
    if here.slow then sleep(here.slow) end
    if here.on_look then here.on_look(names) end
    if here.deaf then return nil, "no answer", "timeout" end
    here.looks = here.looks + 1
    local answers = {}
    for _, name in ipairs(names) do
      local row = rows[name]
      answers[name] = { text = row and row.text or false, version = row and row.version or false, memory = here.memory,
        peer = row and row.peer, age = here.age }
    end
    clock.now = clock.now + here.lasts
    return answers
  end
  function store.swap(_, writes)
    if here.slow then sleep(here.slow) end
    if here.closed then return nil, "no answer", "timeout" end
    if here.on_swap then here.on_swap(writes) end
    local results = {}
    for i, one in ipairs(writes) do
      count = count + 1
      local stands = (rows[one.name] and rows[one.name].version or false) == one.version and one.memory == here.memory
      results[i] = stands and count
      if results[i] then rows[one.name] = one.text and { text = one.text, version = count } or nil end
    end
    clock.now = clock.now + here.lasts
    if here.mute then return nil, "no answer", "timeout" end
    return results
  end
  -- A task waits while others go on; the spec itself lets time pass meanwhile.
  local function promise()
    local values, waiting
    return { resolve = function(_, ...)
      values = { ... }
      if waiting then assert(coroutine.resume(waiting)) end
    end, wait = function()
      if not values and coroutine.running() ~= clock.spec then
        waiting = coroutine.running()
        coroutine.yield()
      end
      while not values do assert(wake_until(math.huge), "nobody answers") end
      return unpack(values, 1, 3)
    end }
  end
  local env = { now = function() return clock.now end, time = function() return clock.now * 1000 end, random = function() return 0.5 end,
    promise = promise, nonce = function() count = count + 1 return tostring(count) end, sleep = sleep,
    detach = function(fn, ...) coroutine.wrap(fn)(...) end, atomic = function(fn, ...) return fn(...) end,
    wall_offset = function() return here.offset end,
    renewals = Renewals.of(function() return clock.now end, function() return 0.5 end) }
  local session
  -- Another runtime takes the place of the one before.
  function here.begin(token)
    session = modules.session.new(env, { token = token, node = "n", ttl = TTL, delay = TTL / 3, patience = TTL, floor = 0,
      many = here.many })
    here.watch = modules.watch.new(session, 1)
  end
  here.begin "t"
  function here.pass(seconds)
    local ends = clock.now + seconds
    while wake_until(ends) do end
    clock.now = math.max(clock.now, ends)
  end
  function here.member(name)
    local member = { session = session, slot = modules.terms.slot(session, name), store = store, trusts = here.trusts, told = 0,
      deadline = function() end }
    function member.tell() member.told = member.told + 1 end
    function member.stand(_, on) member.stands = on end
    function member.obey(_, bar, why) member.barred = bar and bar .. ": " .. why end
    function member.remind(_, bar) member.reminded_of = bar end
    for _, fn in ipairs { "claim", "refresh", "release", "look" } do
      member[fn] = function() return modules.terms[fn](member.session, member) end
    end
    return member
  end
  here.env, here.modules, here.store = env, modules, store
  function here.now() return clock.now end
  function here.record(name) return modules.record.parse(rows[name].text, name) end
  function here.hear(name, text, version)
    modules.terms.slot(session, name).news = { text = text, version = version }
  end
  function here.life() return modules.record.parse(rows["@t-12"].text, "@t-12").at end
  return here
end
