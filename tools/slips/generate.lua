--- Every slip that the operators make of a source.
local passed_over = require "slips.passed_over"
local tokens = require "slips.tokens"

local OPERATORS = { require "slips.operators.words", require "slips.operators.conditions", require "slips.operators.statements",
  require "slips.operators.order" }
local TREES = { c = require "slips.c_tree", lua = require "slips.lua_tree" }

local function read(text, language)
  local list, same = tokens(text, language)
  local source = { text = text, language = language, list = list, same = same, tree = TREES[language](list), inside = {} }
  function source.text_of(first, last) return text:sub(list[first].at, list[last].to) end
  for i in ipairs(list) do source.inside[i] = language == "lua" end
  for _, body in ipairs(source.tree.functions) do
    for i = body.first, body.last do source.inside[i] = true end
  end
  return source
end

-- The outermost function around a token, as the line that it begins in; and in C its name. None outside of any.
local function functions_of(source)
  local outer, names, sizes = {}, {}, {}
  for _, body in ipairs(source.tree.functions) do
    for i = body.first, body.last do
      if not sizes[i] or body.last - body.first > sizes[i] then
        outer[i], sizes[i] = source.list[body.first].line, body.last - body.first
        names[i] = source.language == "c" and source.list[body.first].word or nil
      end
    end
  end
  return outer, names
end

local function marked(same, slip)
  for line = slip.line, slip.last_line do
    local said = same[line]
    if said and (not said.operators or (" " .. said.operators .. " "):find(" " .. slip.operator .. " ", 1, true)) then
      return said.why
    end
  end
end

--- @string text
-- @string language `c` or `lua`
-- @treturn table slips in the order of their places: `{ operator, at, length, to, line, last_line, func, name }`; `same`: why
-- a comment says that it changes nothing
-- @treturn table what comments say is the same, by line
local function generate(text, language)
  local source, slips, seen = read(text, language), {}, {}
  local list, passed = source.list, passed_over(source.list, language)
  local functions, names = functions_of(source)
  local function add(operator, first, last, to)
    local at, length = list[first].at, list[last].to - list[first].at + 1
    local key = ("%d %d %s"):format(at, length, to)
    if passed[first] or passed[last] or seen[key] or text:sub(at, at + length - 1) == to then return end
    seen[key] = true
    local slip = { operator = operator, at = at, length = length, to = to, line = list[first].line, last_line = list[last].line,
      func = functions[first] or 0, name = names[first] }
    slip.same = marked(source.same, slip)
    slips[#slips + 1] = slip
  end
  for _, operator in ipairs(OPERATORS) do operator(source, add) end
  table.sort(slips, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    if a.length ~= b.length then return a.length < b.length end
    return a.to < b.to
  end)
  return slips, source.same
end

return generate
