--- A `pairs` whose order comes from a seed, for a simulation that plays the same way each time: LuaJIT's own order is another
-- one in each process.
local Dealt = {}
Dealt.__index = Dealt

--- @number seed decides how the orders to come are dealt
function Dealt.new(seed)
  return setmetatable({ state = seed % 2147483646 + 1 }, Dealt)
end

local function before(a, b)
  local kind, other = type(a), type(b)
  if kind ~= other then return kind < other end
  return a < b
end

local function shuffle(self, list)
  for i = #list, 2, -1 do
    self.state = self.state * 16807 % 2147483647
    local j = self.state % i + 1
    list[i], list[j] = list[j], list[i]
  end
end

-- The builtin order is quicker than a function of ours, and the same where all keys are of one kind.
local function sort(keys)
  local kind, mixed = type(keys[1]), false
  for i = 2, #keys do mixed = mixed or type(keys[i]) ~= kind end
  table.sort(keys, mixed and before or nil)
end

local function follow(walked)
  local key, value
  repeat
    walked.at = walked.at + 1
    key = walked.keys[walked.at]
    if key == nil then return nil end
    value = walked.map[key]
  until value ~= nil
  return key, value
end

-- The keys are strings or numbers; the table may be changed meanwhile.
local function walk(self, map)
  local keys, count = {}, 0
  for key in next, map do
    count = count + 1
    keys[count] = key
  end
  if count > 1 then
    sort(keys)
    shuffle(self, keys)
  end
  return follow, { map = map, keys = keys, at = 0 }
end

local function explain(problem)
  return tostring(problem):match "^seed" and problem or debug.traceback(problem)
end

--- Calls a function; whoever walks a table in there does so in an order of this seed's.
-- @tparam function fn
-- @return what it returns
-- @raise as it does; with a traceback unless it says at which seed
function Dealt:call(fn)
  local own = pairs
  rawset(_G, "pairs", function(map) return walk(self, map) end)
  local fine, result = xpcall(fn, explain)
  rawset(_G, "pairs", own)
  if not fine then error(result, 0) end
  return result
end

return Dealt
