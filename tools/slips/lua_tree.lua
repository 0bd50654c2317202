--- What a Lua source consists of, as far as slips need it: statements, conditions, operations, functions.
-- A parser that goes down from statements to operands and notes places, no more.
local PRIORITIES = { ["or"] = 1, ["and"] = 2, ["<"] = 3, [">"] = 3, ["<="] = 3, [">="] = 3, ["~="] = 3, ["=="] = 3, [".."] = 4,
  ["+"] = 5, ["-"] = 5, ["*"] = 6, ["/"] = 6, ["%"] = 6, ["^"] = 8 }
local UNARY = { ["not"] = true, ["-"] = true, ["#"] = true }
local UNARY_PRIORITY = 7
local BLOCK_ENDS = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true }

local Parser = {}
Parser.__index = Parser

function Parser:word(at)
  local token = self.list[at or self.at]
  return token and token.kind ~= "string" and token.word
end

function Parser:take(word)
  if self:word() ~= word then
    local token = self.list[self.at]
    error(("line %d: '%s' is expected"):format(token and token.line or 0, word))
  end
  self.at = self.at + 1
end

function Parser:takes(word)
  if self:word() ~= word then return false end
  self.at = self.at + 1
  return true
end

function Parser:body(first)
  self:take "("
  self.at = self.list[self.at - 1].mate + 1
  self:block()
  self:take "end"
  self.functions[#self.functions + 1] = { first = first, last = self.at - 1 }
end

-- Fields of a table or arguments of a call, up to the bracket that closes.
function Parser:inside()
  local close = self.list[self.at].mate
  self.at = self.at + 1
  while self.at < close do
    if self:word() == "[" then
      self:inside()
      self:take "="
    elseif self:word(self.at + 1) == "=" then
      self.at = self.at + 2
    end
    self:expression()
    if self.at < close and not self:takes ";" then self:take "," end
  end
  self.at = close + 1
end

function Parser:suffixes()
  while true do
    local token = self.list[self.at]
    local word = token and token.word
    if token and token.kind == "string" then
      self.at = self.at + 1
    elseif word == "." or word == ":" then
      self.at = self.at + 2
    elseif word == "(" or word == "{" or word == "[" then
      if word == "(" then self.calls[#self.calls + 1] = self.at end
      self:inside()
    else
      return
    end
  end
end

function Parser:operand()
  local token = self.list[self.at]
  if token.word == "function" and token.kind == "name" then
    local first = self.at
    self.at = first + 1
    self:body(first)
  elseif token.word == "(" then
    self:inside()
    self:suffixes()
  elseif token.word == "{" then
    self:inside()
  elseif token.kind == "name" then
    self.at = self.at + 1
    self:suffixes()
  else
    self.at = self.at + 1
    if token.kind == "string" then self:suffixes() end
  end
end

function Parser:expression(least)
  local first = self.at
  if UNARY[self:word()] then
    self.at = first + 1
    self:expression(UNARY_PRIORITY)
  else
    self:operand()
  end
  while true do
    local operator = self.at
    local priority = self.list[operator] and self.list[operator].kind ~= "string" and PRIORITIES[self:word()]
    if not priority or priority <= (least or 0) then return end
    self.at = operator + 1
    self:expression(self:word(operator) == ".." and priority - 1 or priority)
    self.operations[#self.operations + 1] = { operator = operator, first = first, last = self.at - 1 }
  end
end

function Parser:expressions()
  repeat self:expression() until not self:takes ","
end

function Parser:condition(keyword)
  local first = self.at
  self:expression()
  self.conditions[#self.conditions + 1] = { keyword = keyword, first = first, last = self.at - 1 }
end

local STATEMENTS = {
  ["if"] = function(self)
    self:condition "if"
    self:take "then"
    self:block()
    while self:takes "elseif" do
      self:condition "if"
      self:take "then"
      self:block()
    end
    if self:takes "else" then self:block() end
    self:take "end"
  end,
  ["while"] = function(self)
    self:condition "while"
    self:take "do"
    self:block()
    self:take "end"
  end,
  ["repeat"] = function(self)
    self:block()
    self:take "until"
    self:condition "until"
  end,
  ["for"] = function(self)
    while not (self:takes "=" or self:takes "in") do self.at = self.at + 1 end
    self:expressions()
    self:take "do"
    self:block()
    self:take "end"
  end,
  ["do"] = function(self)
    self:block()
    self:take "end"
  end,
  ["function"] = function(self)
    local first = self.at - 1
    while self:word() ~= "(" do self.at = self.at + 1 end
    self:body(first)
  end,
  ["local"] = function(self)
    local first = self.at - 1
    if self:takes "function" then
      self.at = self.at + 1
      return self:body(first)
    end
    repeat self.at = self.at + 1 until not self:takes ","
    if self:takes "=" then self:expressions() end
  end,
  ["return"] = function(self)
    if self.at <= #self.list and not BLOCK_ENDS[self:word()] then self:expressions() end
  end,
  ["goto"] = function(self) self.at = self.at + 1 end,
  ["::"] = function(self) self.at = self.at + 2 end,
}

function Parser:block()
  local block, order = {}, 0
  while self.at <= #self.list and not BLOCK_ENDS[self:word()] do
    local first, word = self.at, self:word()
    order = order + 1
    if self:takes ";" then
      order = order - 1
    elseif word and STATEMENTS[word] then
      self.at = first + 1
      STATEMENTS[word](self)
    else
      self:expressions()
      if self:takes "=" then self:expressions() end
      self.statements[#self.statements + 1] = { first = first, last = self.at - 1, block = block, order = order }
    end
  end
  block.size = order
end

--- @tparam table list tokens
-- @treturn table `statements` that can be left out, `{ first, last, block, order }`, by places of tokens; `conditions`,
-- `{ keyword, first, last }`; `operations`, `{ operator, first, last }`; `functions`, `{ first, last }`; `calls`: the opening
-- brackets of arguments
return function(list)
  local parser = setmetatable({ list = list, at = 1, statements = {}, conditions = {}, operations = {}, functions = {},
    calls = {} }, Parser)
  parser:block()
  assert(parser.at > #list, "a block has no beginning")
  return parser
end
