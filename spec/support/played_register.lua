--- A session and its elections over a store that a spec plays by hand. Every question takes `lasts` seconds of a clock that nothing
-- else moves. A store that is `deaf` answers no look.
local load = require "support.register_modules"
local Renewals = require "support.register_renewals"

local TTL = 12

--- @tparam[opt] boolean marks whether the store keeps a mark of what is deleted
return function(marks)
  local modules, now, rows, count = load(), 100, {}, 0
  local here = { lasts = 0, rows = rows, memory = "m", trusts = true, offset = 0 }
  local store = { marks = marks }
  function store.look(_, names)
    if here.deaf then return nil, "no answer", "timeout" end
    local answers = {}
    for _, name in ipairs(names) do
      local row = rows[name]
      answers[name] = { text = row and row.text or false, version = row and row.version or false, memory = here.memory,
        peer = row and row.peer, lost = here.lost }
    end
    now = now + here.lasts
    return answers
  end
  function store.swap(_, writes)
    local results = {}
    for i, one in ipairs(writes) do
      count = count + 1
      local stands = (rows[one.name] and rows[one.name].version or false) == one.version and one.memory == here.memory
      results[i] = stands and count
      if results[i] then rows[one.name] = { text = one.text, version = count } end
    end
    now = now + here.lasts
    return results
  end
  local function promise()
    local values
    return { resolve = function(_, ...) values = { ... } end, wait = function() return unpack(values, 1, 3) end }
  end
  local env = { now = function() return now end, time = function() return now * 1000 end, random = function() return 0.5 end,
    promise = promise, nonce = function() count = count + 1 return tostring(count) end, sleep = coroutine.yield,
    detach = function(fn, ...) coroutine.wrap(fn)(...) end, atomic = function(fn, ...) return fn(...) end,
    wall_offset = function() return here.offset end,
    renewals = Renewals.of(function() return now end, function() return 0.5 end) }
  local session
  -- Another runtime takes the place of the one before.
  function here.begin(token)
    session = modules.session.new(env, { token = token, node = "n", ttl = TTL, delay = TTL / 3, patience = TTL, floor = 0 })
  end
  here.begin "t"
  function here.pass(seconds) now = now + seconds end
  function here.member(name)
    local member = { slot = modules.terms.slot(session, name), store = store, trusts = here.trusts, tell = function() end,
      stand = function() end, deadline = function() end }
    for _, fn in ipairs { "claim", "refresh", "release" } do
      member[fn] = function() return modules.terms[fn](session, member) end
    end
    return member
  end
  function here.life() return modules.record.parse(rows["@t-12"].text, "@t-12").at end
  return here
end
