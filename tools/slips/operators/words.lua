--- One word for another: `swap` (an operator or a name for its kin), `turn` (a comparison for its opposite), `negation` (left
-- out) and `number` (one more).
local SWAP = { ["<"] = "<=", ["<="] = "<", [">"] = ">=", [">="] = ">", ["&&"] = "||", ["||"] = "&&", ["and"] = "or",
  ["or"] = "and", ["+"] = "-", ["-"] = "+", ["*"] = "/", ["/"] = "*" }
local TURN = { ["<"] = ">=", ["<="] = ">", [">"] = "<=", [">="] = "<", ["=="] = "!=", ["!="] = "==", ["~="] = "==" }
local MARKS = { ["+="] = "-=", ["-="] = "+=", ["++"] = "--", ["--"] = "++" }
local NAMES = { ["true"] = "false", ["false"] = "true", ["earlier"] = "later", ["later"] = "earlier" }
local MATH = { min = "max", max = "min" }

local function turned(word, language)
  local to = TURN[word]
  return language == "lua" and to == "!=" and "~=" or to
end

local function number_after(word)
  local whole, rest = word:match "^(%d+)(%.?%d*)$"
  return whole and ("%d%s"):format(tonumber(whole) + 1, rest)
end

-- The size of an array, or -1, which is as good as any that is less than zero.
local function is_no_count(binary, i, before, after)
  return before == "[" and after == "]" or before == "-" and not binary[i - 1]
end

-- A descriptor of C is never 0, which is the standard input: that is open in every process, whoever starts it.
local DESCRIPTORS = { signals = true, timer = true, held = true, journal = true, socket = true }

local function is_descriptor(source, at)
  local before, after = source.list[at - 1], source.list[at + 1]
  local is_one = before.kind == "name" and (before.word:find "fd$" or DESCRIPTORS[before.word])
  return source.language == "c" and is_one and after.word == "0"
end

return function(source, add)
  local list, binary = source.list, {}
  for _, operation in ipairs(source.tree.operations) do
    local at = operation.operator
    binary[at] = true
    local word = list[at].word
    if SWAP[word] and not is_descriptor(source, at) then add("swap", at, at, SWAP[word]) end
    if TURN[word] then add("turn", at, at, turned(word, source.language)) end
  end
  for i, token in ipairs(list) do
    local word = token.word
    local before, after = list[i - 1] and list[i - 1].word, list[i + 1] and list[i + 1].word
    if not source.inside[i] or token.kind == "string" then
      word = nil
    elseif token.kind == "number" then
      local more = number_after(word)
      local none = source.language == "c" and is_no_count(binary, i, before, after) or binary[i - 1] and is_descriptor(source, i - 1)
      if more and not none then add("number", i, i, more) end
    elseif MARKS[word] and source.language == "c" then
      add("swap", i, i, MARKS[word])
    elseif NAMES[word] and (word == "true" or word == "false" or after == "(") then
      add("swap", i, i, NAMES[word])
    elseif MATH[word] and before == "." then
      add("swap", i, i, MATH[word])
    end
    if word == "!" then add("negation", i, i, "!!") end
    if word == "not" then add("negation", i, i, "not not") end
  end
end
