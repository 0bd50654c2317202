--- Conditions that always or never hold (`always`, `never`), guards of a first time that hold each time (`once`), and an
-- operand left out (`term`).
local NOTHING = { NULL = true, ["nil"] = true, ["0"] = true }
local JOINS = { ["&&"] = true, ["||"] = true, ["and"] = true, ["or"] = true }
local SUMS = { ["+"] = true, ["-"] = true }

-- `not x`, `!x`, `x == nil`: asks whether something has not been yet.
local function asks_for_first_time(source, condition)
  local list = source.list
  local first, last = list[condition.first].word, condition.last
  if first == "!" or first == "not" then
    for i = condition.first + 1, last do
      if JOINS[list[i].word] then return false end
    end
    return true
  end
  return NOTHING[list[last].word] and list[last - 1].word == "=="
end

return function(source, add)
  for _, condition in ipairs(source.tree.conditions) do
    local keyword = condition.keyword
    if keyword == "if" or keyword == "?" then
      local operator = asks_for_first_time(source, condition) and "once" or "always"
      add(operator, condition.first, condition.last, "true")
    end
    if keyword ~= "until" then add("never", condition.first, condition.last, "false") end
  end
  for _, operation in ipairs(source.tree.operations) do
    local word = source.list[operation.operator].word
    if JOINS[word] then add("term", operation.first, operation.last, source.text_of(operation.operator + 1, operation.last)) end
    if JOINS[word] or SUMS[word] then
      add("term", operation.first, operation.last, source.text_of(operation.first, operation.operator - 1))
    end
  end
end
