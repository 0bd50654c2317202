--- `pairs` in an order that is the same in each run: a virtual cluster that failed has to fail again by its seed.
-- LuaJIT walks over a table by addresses and by what was made before.

local RANK = { number = 1, string = 2, table = 3 }

-- What a slot or a member says of itself: names that are the same in each run.
local function name_of(one)
  local slot = type(one.slot) == "table" and one.slot or one
  return tostring(slot.name) .. " " .. tostring(one.serial or slot.serial or "")
end

local function before(a, b)
  local first, second = RANK[type(a)], RANK[type(b)]
  if first ~= second then return first < second end
  if first == 3 then return name_of(a) < name_of(b) end
  return a < b
end

local function keys_of(all)
  local keys = {}
  for key in next, all do keys[#keys + 1] = key end
  if #keys > 1 then table.sort(keys, before) end
  return keys
end

local function walk(all, keys)
  local i = 0
  return function()
    i = i + 1
    while keys[i] ~= nil and all[keys[i]] == nil do i = i + 1 end
    local key = keys[i]
    if key ~= nil then return key, all[key] end
  end
end

local ordered = {}

--- As pairs(), in order. A key that is a table is known by its `name`, or by that of its `slot`.
function ordered.pairs(all) return walk(all, keys_of(all)) end

--- As pairs(), in an order that the dice decide.
-- @tparam function random → from 1 to the number that it gets
function ordered.shuffled(all, random)
  local keys = keys_of(all)
  for i = #keys, 2, -1 do
    local j = random(i)
    keys[i], keys[j] = keys[j], keys[i]
  end
  return walk(all, keys)
end

return ordered
