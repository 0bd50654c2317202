--- Two things in the other order: `order` (the sides of an `or`, neighbouring statements, neighbouring arguments) and `keys`
-- (what two neighbouring fields of a table, or two arguments of a format, show).
local OPENS = { ["("] = true, ["["] = true, ["{"] = true }
local COMMUTE = { max = true, min = true, earlier = true, later = true, smaller = true, higher = true, clock_add_ns = true,
  calloc = true }
local EITHER_WAY = { close = true, free = true, sigaddset = true } -- calls one after the other
local LINKS = { ["."] = true, [":"] = true, ["->"] = true, ["&"] = true, ["*"] = true }

local function exchange(source, add, operator, a, b)
  local between = source.text:sub(source.list[a.last].to + 1, source.list[b.first].at - 1)
  local first, second = source.text_of(a.first, a.last), source.text_of(b.first, b.last)
  if first ~= second then add(operator, a.first, b.last, second .. between .. first) end
end

-- What stands between two brackets, at its commas: an array of `{ first, last }`.
local function parts(list, open)
  local found, from, i, close = {}, open + 1, open + 1, list[open].mate
  while i <= close do
    if OPENS[list[i].word] and list[i].mate then
      i = list[i].mate
    elseif list[i].word == "," or i == close then
      if i > from then found[#found + 1] = { first = from, last = i - 1 } end
      from = i + 1
    end
    i = i + 1
  end
  return found
end

-- A name, a number, a string, or names that are linked.
local function is_plain(list, part)
  for i = part.first, part.last do
    if list[i].kind == "mark" and not LINKS[list[i].word] then return false end
    if list[i].word == "function" or list[i].word == "not" then return false end
  end
  return true
end

local function exchange_arguments(source, add)
  local list = source.list
  for _, open in ipairs(source.tree.calls) do
    local given, name = parts(list, open), list[open - 1].word
    local operator = (name == "format" or name:find "printf$") and "keys" or "order"
    for i = 2, COMMUTE[name] and 0 or #given do
      local a, b = given[i - 1], given[i]
      if is_plain(list, a) and is_plain(list, b) and list[a.first].kind ~= "string" then
        exchange(source, add, operator, a, b)
      end
    end
  end
end

-- `name = value`, or `.name = value` in C.
local function value_of(source, part)
  local at = part.first + (source.language == "c" and 1 or 0)
  if source.list[at].kind ~= "name" or at + 1 >= part.last or source.list[at + 1].word ~= "=" then return nil end
  return { first = at + 2, last = part.last }
end

local function exchange_fields(source, add)
  for open, token in ipairs(source.list) do
    if token.word == "{" and token.kind == "mark" and source.inside[open] then
      local fields = parts(source.list, open)
      for i = 2, #fields do
        local a, b = value_of(source, fields[i - 1]), value_of(source, fields[i])
        if a and b and is_plain(source.list, a) and is_plain(source.list, b) then exchange(source, add, "keys", a, b) end
      end
    end
  end
end

-- What a statement assigns to, as text; false for a call.
local function assigned(source, statement)
  for i = statement.first, statement.last do
    local word = source.list[i].word
    if word == "=" then return source.text_of(statement.first, i - 1) end
    if word == "(" then return false end
  end
  return nil
end

-- The function that a statement calls and no more.
local function called(source, statement)
  local list, at = source.list, statement.first
  if list[at].word == "(" and list[at + 1].word == "void" then at = at + 3 end
  return list[at].kind == "name" and list[at + 1].word == "(" and list[at].word or nil
end

-- Calls one after the other, or something that is read or written again in the next statement.
local function depend(source, a, b)
  local left, right = assigned(source, a), assigned(source, b)
  if left == false and right == false then
    local one, other = called(source, a) or "", called(source, b) or ""
    local is_said = one:find "^log_" or other:find "^log_" -- a line of the log may stand before or behind what it tells of
    return not is_said and not (EITHER_WAY[one] and other == one)
  end
  local first, second = source.text_of(a.first, a.last), source.text_of(b.first, b.last)
  return left and second:find(left, 1, true) or right and first:find(right, 1, true)
end

local function exchange_statements(source, add)
  local statements = {}
  for i, statement in ipairs(source.tree.statements) do statements[i] = statement end
  table.sort(statements, function(a, b) return a.first < b.first end)
  local before = {}
  for _, statement in ipairs(statements) do
    local last = before[statement.block]
    if last and last.order + 1 == statement.order and depend(source, last, statement) then
      exchange(source, add, "order", last, statement)
    end
    before[statement.block] = statement
  end
end

local function exchange_sides(source, add)
  local in_condition = {}
  for _, condition in ipairs(source.tree.conditions) do
    for i = condition.first, condition.last do in_condition[i] = true end
  end
  for _, operation in ipairs(source.tree.operations) do
    local at = operation.operator
    -- Before or behind `false` a value is the same, but for nil.
    if source.list[at].word == "or" and not in_condition[at] and source.text_of(at + 1, operation.last) ~= "false" then
      exchange(source, add, "order", { first = operation.first, last = at - 1 }, { first = at + 1, last = operation.last })
    end
  end
end

return function(source, add)
  exchange_arguments(source, add)
  exchange_fields(source, add)
  exchange_statements(source, add)
  if source.language == "lua" then exchange_sides(source, add) end
end
