--- A statement left out: `delete`, or `once` where it resets something for the next time.
local RESETS = { ["0"] = true, NULL = true, ["false"] = true, ["nil"] = true, TIME_NEVER = true, ["{}"] = true, ["-1"] = true }

local function resets(source, statement)
  local last = source.language == "c" and statement.last - 1 or statement.last
  for i = statement.first, last do
    if source.list[i].word == "=" then return i < last and RESETS[source.text_of(i + 1, last)] or false end
  end
  return false
end

return function(source, add)
  for _, statement in ipairs(source.tree.statements) do
    local operator = resets(source, statement) and "once" or "delete"
    -- A value has to come from somewhere.
    local returns = source.list[statement.first].word == "return" and statement.last > statement.first + 1
    if not returns then add(operator, statement.first, statement.last, source.language == "c" and ";" or "") end
  end
end
