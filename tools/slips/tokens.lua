--- The tokens of a C or Lua source, with their places. Comments are passed over, but for what they say behind `same`.
local BLANKS = {
  c = { "^%s+", "^/%*.-%*/", "^//[^\n]*" },
  lua = { "^%s+", "^%-%-%[(=*)%[.-%]%1%]", "^%-%-[^\n]*" },
}

-- The longest first.
local MARKS = {
  c = { "^<<=", "^>>=", "^%.%.%.", "^%->", "^%+%+", "^%-%-", "^<<", "^>>", "^&&", "^||", "^[<>=!+*/%%&|^-]=" },
  lua = { "^%.%.%.", "^%.%.", "^[<>=~]=", "^::" },
}

local OPENS = { ["("] = ")", ["["] = "]", ["{"] = "}" }
local CLOSES = { [")"] = true, ["]"] = true, ["}"] = true }

local function match_any(text, at, patterns)
  for _, pattern in ipairs(patterns) do
    local from, to = text:find(pattern, at)
    if from then return to end
  end
end

-- The preprocessor's line from `at` on, with those that it goes on in.
local function directive(text, at)
  if text:sub(at, at) ~= "#" or not text:sub(1, at - 1):find "\n[ \t]*$" and at > 1 then return nil end
  local to = at
  repeat
    to = text:find("\n", to + 1, true) or #text
  until to == #text or text:sub(to - 1, to - 1) ~= "\\"
  return to
end

local function quoted(text, at)
  local quote, to = text:sub(at, at), at
  repeat
    to = text:find("[\\" .. quote .. "]", to + 1)
    local escaped = to and text:sub(to, to) == "\\"
    if escaped then to = to + 1 end
  until not escaped
  return assert(to, "a string has no end")
end

local function number(text, at)
  local _, to = text:find("^0[xX]%x+[uUlL]*", at)
  if to then return to end
  _, to = text:find("^%d[%d']*", at)
  local _, part = text:find("^%.%d+", to + 1)
  to = part or to
  _, part = text:find("^[eE][+-]?%d+", to + 1)
  to = part or to
  return select(2, text:find("^%a*", to + 1))
end

-- @return the last place of the token that begins at `at`, and its kind
local function token_at(text, at, language)
  local first = text:sub(at, at)
  if first:find "[%a_]" then return select(2, text:find("^[%w_]+", at)), "name" end
  if first:find "%d" then return number(text, at), "number" end
  if first == '"' or first == "'" then return quoted(text, at), "string" end
  local _, long = text:find("^%[(=*)%[.-%]%1%]", at)
  if language == "lua" and long then return long, "string" end
  return match_any(text, at, MARKS[language]) or at, "mark"
end

local function pair_up(list)
  local open = {}
  for i, token in ipairs(list) do
    if token.kind == "mark" and OPENS[token.word] then
      open[#open + 1] = i
    elseif token.kind == "mark" and CLOSES[token.word] then
      local other = table.remove(open)
      assert(other and OPENS[list[other].word] == token.word, "brackets do not match")
      token.mate, list[other].mate = other, i
    end
  end
end

-- A comment on a line of its own speaks of the next line.
local function by_line(said, list)
  local found, at = {}, 1
  for _, one in ipairs(said) do
    while list[at] and list[at].line < one.line do at = at + 1 end
    if list[at] then found[list[at].line] = one end
  end
  return found
end

--- Reads a source.
-- @string text
-- @string language `c` or `lua`
-- @treturn table tokens: `{ word, at, to, line, kind }`, `kind` being name, number, string or mark; a bracket has the place of
-- its other one in `mate`
-- @treturn table by line: what a comment says of slips in it that change nothing, `{ operators, why }`: `same: why` speaks of
-- all of them, `same (swap number): why` of those of two operators; on a line of its own, of those in the next line
return function(text, language)
  local list, same, at, line = {}, {}, 1, 1
  while at <= #text do
    local blank = match_any(text, at, BLANKS[language]) or language == "c" and directive(text, at)
    local to, kind = blank, nil
    if not blank then to, kind = token_at(text, at, language) end
    local word = text:sub(at, to)
    if kind then
      list[#list + 1] = { word = word, at = at, to = to, line = line, kind = kind }
    else
      local operators, why = word:match "^[/*-]+ same ?(%(?[%l ]*%)?): ([^\n]*)"
      if why then same[#same + 1] = { line = line, operators = operators:match "[%l ]+", why = (why:gsub("%s*%*/$", "")) } end
    end
    line = line + select(2, word:gsub("\n", ""))
    at = to + 1
  end
  pair_up(list)
  return list, by_line(same, list)
end
