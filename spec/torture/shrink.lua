--- Makes a failing schedule smaller: takes away halves, quarters, … of it for as long as what is left still fails.
local TRIES = 8 -- runs; each takes as long as its schedule

--- @tparam table list the schedule
-- @tparam function fails whether a part of it fails
-- @treturn table a part that failed, or the whole
return function(list, fails)
  local tries, size = 0, math.ceil(#list / 2)
  while size >= 1 and tries < TRIES do
    local from, smaller = 1, nil
    while from <= #list and not smaller and tries < TRIES do
      local part = {}
      for i, fault in ipairs(list) do
        if i < from or i >= from + size then part[#part + 1] = fault end
      end
      tries = tries + 1
      if #part > 0 and #part < #list and fails(part) then smaller = part end
      from = from + size
    end
    if smaller then
      list = smaller
      size = math.min(size, math.ceil(#list / 2))
    else
      size = size == 1 and 0 or math.ceil(size / 2)
    end
  end
  return list
end
