--- The list of mutants (spec/mutants): reading it, finding each one's place in the code, applying it.
local list = {}

list.PATH = "spec/mutants"

--- @return the file's text, or nil
function list.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

local function finish(record, records)
  if not record then return end
  record.before, record.after = table.concat(record.before, "\n"), table.concat(record.after, "\n")
  records[#records + 1] = record
end

--- Reads the list. Each record begins with `mutant NAME` and ends with the next one.
-- @return an array of `{ id, file, breaks = { RULE… }, equivalent, decides, sample, by, before, after, line }`
function list.load(path)
  local records, record, number = {}, nil, 0
  for line in io.lines(path or list.PATH) do
    number = number + 1
    local word, rest = line:match "^(%S+) ?(.*)$"
    if word == "mutant" then
      finish(record, records)
      record = { id = rest, line = number, breaks = {}, before = {}, after = {} }
    elseif word == "-" or word == "+" then
      local part = word == "-" and record.before or record.after
      part[#part + 1] = rest
    elseif word == "in" then
      record.file = rest
    elseif word == "breaks" then
      for rule in rest:gmatch "%S+" do record.breaks[#record.breaks + 1] = rule end
    elseif word == "equivalent:" then
      record.equivalent = rest
    elseif word == "by" then
      record.by = rest
    elseif word == "decides" or word == "sample" then
      record[word] = true
    elseif line:find "%S" and not line:find "^#" then
      error(("%s:%d: what is '%s'?"):format(path or list.PATH, number, word or line))
    end
  end
  finish(record, records)
  return records
end

-- Any run of white space stands for any other, so that a new layout of a file leaves its mutants alone.
local function pattern_of(text)
  return (text:gsub("^%s+", ""):gsub("%s+$", ""):gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0"):gsub("%s+", "%%s+"))
end

local function places(text, pattern)
  local found, from = {}, 1
  while true do
    local first, last = text:find(pattern, from)
    if not first then return found end
    found[#found + 1] = { first, last }
    from = last + 1
  end
end

--- How often what a mutant changes stands in a text.
function list.count(record, text)
  return #places(text, pattern_of(record.before))
end

--- Where it stands in a text: the first and the last place. @return nil where it does not stand exactly once
function list.place(record, text)
  local found = places(text, pattern_of(record.before))
  if #found ~= 1 then return nil end
  return found[1][1], found[1][2]
end

--- The text with the mutant in it. @return nil where it does not stand exactly once
function list.apply(record, text)
  local first, last = list.place(record, text)
  return first and text:sub(1, first - 1) .. record.after .. text:sub(last + 1)
end

--- The folder that a table groups a mutant under.
function list.folder(record)
  return record.file:match "^(.*)/[^/]+$"
end

return list
