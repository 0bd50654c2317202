--- What a C source consists of, as far as slips need it: statements, conditions, operations, functions.
-- Types are not known here: an operation reaches as far as its neighbours of lower priority allow.
local HEADS = { ["if"] = true, ["while"] = true, ["for"] = true, ["switch"] = true }
local TYPES = { const = true, static = true, struct = true, enum = true, union = true, unsigned = true, signed = true, int = true,
  long = true, char = true, bool = true, double = true, float = true, short = true, void = true, extern = true,
  register = true, volatile = true, _Static_assert = true, static_assert = true, typedef = true }
local JUMPS = { ["return"] = true, ["break"] = true, ["continue"] = true, ["goto"] = true }

local PRIORITIES = { [","] = 0, ["="] = 1, ["+="] = 1, ["-="] = 1, ["*="] = 1, ["/="] = 1, ["|="] = 1, ["&="] = 1, ["%="] = 1,
  ["<<="] = 1, [">>="] = 1, ["?"] = 2, [":"] = 2, ["||"] = 3, ["&&"] = 4, ["|"] = 5, ["^"] = 6, ["&"] = 7, ["=="] = 8,
  ["!="] = 8, ["<"] = 9, [">"] = 9, ["<="] = 9, [">="] = 9, ["<<"] = 10, [">>"] = 10, ["+"] = 11, ["-"] = 11, ["*"] = 12,
  ["/"] = 12, ["%"] = 12 }
local ENDS = { [";"] = true, ["{"] = true, ["}"] = true, ["return"] = true, ["case"] = true, ["else"] = true }
local NOTED = { ["||"] = true, ["&&"] = true, ["+"] = true, ["-"] = true, ["*"] = true, ["/"] = true, ["<"] = true, [">"] = true,
  ["<="] = true, [">="] = true, ["=="] = true, ["!="] = true, ["%"] = true }

local Reader = {}
Reader.__index = Reader

function Reader:word(at)
  local token = self.list[at]
  return token and (token.kind == "mark" or token.kind == "name") and token.word or nil
end

-- An operator stands between two operands; else it is a sign, a pointer or an address.
local function is_binary(self, at)
  local before, after = self.list[at - 1], self.list[at + 1]
  if not before or not after then return false end
  local operand = before.kind == "number" or before.kind == "string" or before.word == ")" or before.word == "]"
    or before.kind == "name" and not JUMPS[before.word] and before.word ~= "case"
  local typed = TYPES[before.word] or self.list[at - 2] and TYPES[self.list[at - 2].word] or self.pointers[at]
  return operand and not typed and after.word ~= ")" and after.word ~= ","
end

-- From an operator outward, until what binds less tightly.
local function reach(self, at, step, priority)
  local list, i = self.list, at + step
  while list[i] do
    local token = list[i]
    local other = token.kind == "mark" and PRIORITIES[token.word]
    if token.mate and (token.mate - i) * step > 0 then
      if token.word == "{" and step > 0 and list[i - 1].word ~= ")" then break end
      i = token.mate
    elseif token.mate or ENDS[token.word] and token.kind ~= "string" then
      break
    elseif other and (other < priority or other == priority and step > 0) and (other < 5 or is_binary(self, i)) then
      break
    end
    i = i + step
  end
  return i - step
end

local function note_operations(self, first, last)
  for i = first, last do
    local word = self.list[i].kind == "mark" and self.list[i].word
    if word and NOTED[word] and is_binary(self, i) then
      local from, to = reach(self, i, -1, PRIORITIES[word]), reach(self, i, 1, PRIORITIES[word])
      if from < i and to > i then self.operations[#self.operations + 1] = { operator = i, first = from, last = to } end
    elseif word == "(" and self.list[i - 1].kind == "name" and not HEADS[self.list[i - 1].word]
      and not JUMPS[self.list[i - 1].word] and self.list[i - 1].word ~= "sizeof" then
      self.calls[#self.calls + 1] = i
    elseif word == "?" then
      local from = reach(self, i, -1, PRIORITIES["?"])
      if from < i then self.conditions[#self.conditions + 1] = { keyword = "?", first = from, last = i - 1 } end
    end
  end
end

-- `int64_t at_ns`, `lua_State *L`, `struct x y`: a name that follows a name, or a pointer to what begins with one.
local function is_declaration(self, at)
  local list = self.list
  if list[at].kind ~= "name" or JUMPS[list[at].word] then return false end
  if TYPES[list[at].word] then return true end
  local i = at + 1
  while list[i].word == "*" do i = i + 1 end
  if list[i].kind ~= "name" then return false end
  for pointer = at + 1, i - 1 do self.pointers[pointer] = true end
  return true
end

local function simple(self, at, block)
  local last = at
  while self.list[last].word ~= ";" do last = math.max(last, self.list[last].mate or last) + 1 end
  if not is_declaration(self, at) and last > at then
    block.size = block.size + 1
    self.statements[#self.statements + 1] = { first = at, last = last, block = block, order = block.size }
  else
    block.size = block.size + 1
  end
  return last + 1
end

local statement

local function compound(self, at)
  local close, block = self.list[at].mate, { size = 0 }
  at = at + 1
  while at < close do at = statement(self, at, block) end
  return close + 1
end

-- `list_each(node, list)`: a call that no semicolon follows.
local function is_loop(self, at)
  if self.list[at].kind ~= "name" or JUMPS[self.list[at].word] or self:word(at + 1) ~= "(" then return false end
  local after = self.list[self.list[at + 1].mate + 1]
  return after.word == "{" or after.kind == "name"
end

function statement(self, at, block)
  local word = self:word(at)
  if word == "{" then return compound(self, at) end
  if word == ";" then return at + 1 end
  if word == "case" or word == "default" then
    while self:word(at) ~= ":" do at = at + 1 end
    return at + 1
  end
  if self.list[at].kind == "name" and self:word(at + 1) == ":" then return at + 2 end
  if word == "else" then return statement(self, at + 1, { size = 0 }) end
  if word == "do" then return simple(self, statement(self, at + 1, { size = 0 }), { size = 0 }) end
  if HEADS[word] or is_loop(self, at) then
    local close = self.list[at + 1].mate
    if word == "if" or word == "while" then
      self.conditions[#self.conditions + 1] = { keyword = word, first = at + 2, last = close - 1 }
    end
    block.size = block.size + 1
    return statement(self, close + 1, { size = 0 })
  end
  return simple(self, at, block)
end

--- @tparam table list tokens
-- @treturn table as lua_tree gives it
return function(list)
  local self = setmetatable({ list = list, statements = {}, conditions = {}, operations = {}, functions = {}, calls = {},
    pointers = {} }, Reader)
  local at = 1
  while list[at] do
    local mate = list[at].mate
    if list[at].word == "{" and list[at].kind == "mark" and list[at - 1].word == ")" then
      compound(self, at)
      note_operations(self, at, mate)
      self.functions[#self.functions + 1] = { first = list[at - 1].mate - 1, last = mate }
    end
    at = (mate or at) + 1
  end
  return self
end
