-- Whether the sentences of the pages named are short: a reader keeps some thirty words in mind, and fewer in a cell of a table.
-- Code in backquotes counts as one word, a link as its text. A list item ends a sentence. In a manual page a macro does, too; lines
-- that are set in are examples, and a paragraph below .TP is a cell of its table.
--   luajit tools/check-sentences.lua PAGE...                 (PAGE.md, or PAGE.1 in roff)
local MOST, MOST_IN_A_CELL = 30, 25 -- words

local found = 0

--- Counts the words of a text.
local function words(text)
  local count = 0
  for word in text:gmatch "%S+" do
    if word:find "[%w\128-\255]" then count = count + 1 end
  end
  return count
end

--- Leaves of a line's markup only its words.
local function plain(line)
  return (line:gsub("``.-``", " code "):gsub("`[^`]*`", "code")
    :gsub("!%[[^%]]*%]%b()", " "):gsub("%[([^%]]*)%]%b()", "%1"):gsub("%[([^%]]*)%]%b[]", "%1"):gsub("[*_]+", ""))
end

local function judge(path, number, text, most, thing)
  local count = words(text)
  if count > most then
    print(("%s:%d: a %s of %d words, %d are the most: %s"):format(path, number, thing, count, most, text:gsub("^%s+", ""):sub(1, 60)))
    found = found + 1
  end
end

--- Judges each sentence of a paragraph that begins at a line.
local function paragraph(path, number, text)
  text = plain(text):gsub("%f[%w]e%.g%.", "eg"):gsub("%f[%w]i%.e%.", "ie")
  local from = 1
  for stop in (text .. " "):gmatch "()[.!?][\"')]*%s" do
    judge(path, number, text:sub(from, stop), MOST, "sentence")
    from = stop + 1
  end
  judge(path, number, text:sub(from), MOST, "sentence")
end

local function row(path, number, line)
  for cell in plain(line):gmatch "[^|]+" do judge(path, number, cell, MOST_IN_A_CELL, "cell") end
end

local function check_manual(path)
  local begun, gathered, in_table, number, heading = 0, {}, false, 0, ""
  local function flush()
    local text = table.concat(gathered, " ")
    if in_table then judge(path, begun, text, MOST_IN_A_CELL, "cell") else paragraph(path, begun, text) end
    gathered, in_table = {}, false
  end
  for line in assert(io.lines(path)) do
    number = number + 1
    local macro = line:match "^%.(%a+)"
    line = line:gsub("\\f%u", ""):gsub("\\([-e&])", { ["-"] = "-", e = "\\", ["&"] = "" })
    if macro == "SH" then heading = line:match "^%.SH (.*)$" end
    if macro == "B" then -- a word in bold: the head of a row, or the beginning of a sentence
      gathered[#gathered + 1] = not in_table and line:sub(4) or nil
    elseif macro or heading == "SYNOPSIS" or line:match "^%s" or line == "" then
      flush()
      in_table = macro == "TP"
    else
      if not gathered[1] then begun = number end
      gathered[#gathered + 1] = line
    end
  end
  flush()
end

local function check(path)
  local code, number, begun, gathered = false, 0, 0, {}
  local function flush()
    if gathered[1] then paragraph(path, begun, table.concat(gathered, " ")) end
    gathered = {}
  end
  for line in assert(io.lines(path)) do
    number = number + 1
    if line:match "^%s*```" then
      flush()
      code = not code
    elseif not code and line:match "^%s*|" then
      flush()
      row(path, number, line)
    elseif not code then
      local item = line:match "^%s*[-*+] " or line:match "^%s*%d+%. " or line:match "^#" or line:match "^>"
      if line:match "^%s*$" or item then flush() end
      if not gathered[1] then begun = number end
      if not line:match "^%s*$" then gathered[#gathered + 1] = item and line:gsub("^%s*[-*+#>%d.]+ ", "") or line end
    end
  end
  flush()
end

for _, path in ipairs(arg) do (path:find "%.%d$" and check_manual or check)(path) end
os.exit(found == 0 and 0 or 1)
