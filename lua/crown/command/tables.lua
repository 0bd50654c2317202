--- Tables for people: lines by the locale, as wide as the terminal allows; plain columns where there is none.
-- @internal crown.command.tables

local printable = require "crown.text.printable"

local tables = {}

local LEAST = 4 -- characters that a column keeps however narrow the terminal is

local LINES = {
  utf8 = { "┌", "┬", "┐", "├", "┼", "┤", "└", "┴", "┘", "─", "│", "…" },
  ascii = { "+", "+", "+", "+", "+", "+", "+", "+", "+", "-", "|", "..." },
}

local function charset()
  local locale = os.getenv "LC_ALL" or os.getenv "LC_CTYPE" or os.getenv "LANG" or ""
  return locale:upper():find "UTF%-?8" and LINES.utf8 or LINES.ascii
end

-- Characters, not bytes.
local function width(text)
  return select(2, text:gsub("[^\128-\191]", ""))
end

local function rule(widths, lines, left, middle, right)
  local parts = {}
  for i, wide in ipairs(widths) do parts[i] = lines[10]:rep(wide + 2) end
  return lines[left] .. table.concat(parts, lines[middle]) .. lines[right]
end

local function row_text(cells, widths, lines)
  local parts = {}
  for i, cell in ipairs(cells) do parts[i] = " " .. cell .. (" "):rep(widths[i] - width(cell) + 1) end
  return lines[11] .. table.concat(parts, lines[11]) .. lines[11]
end

local function measure(heading, rows)
  local widths = {}
  for i, cell in ipairs(heading) do widths[i] = width(cell) end
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i], width(cell)) end
  end
  return widths
end

local function sum_of(widths)
  local sum = 1
  for _, wide in ipairs(widths) do sum = sum + wide + 3 end
  return sum
end

-- Takes from the widest of those columns that have more than `least_of(column)`, while the table is too wide.
local function take(widths, room, least_of)
  local sum = sum_of(widths)
  while sum > room do
    local widest
    for i, wide in ipairs(widths) do
      if wide > least_of(i) and wide > (widest and widths[widest] or 0) then widest = i end
    end
    if not widest then break end
    widths[widest], sum = widths[widest] - 1, sum - 1
  end
end

-- Makes the table fit: long texts are cut first. @return whether anything was cut
local function fit(heading, widths, room, long)
  if sum_of(widths) <= room then return false end
  take(widths, room, function(i) return long[heading[i]] or math.huge end)
  take(widths, room, function() return LEAST end)
  return true
end

local function shorten(text, room, lines)
  if width(text) <= room then return text end
  local kept, count = "", 0
  for character in text:gmatch "[^\128-\191][\128-\191]*" do
    if count == room - width(lines[12]) then break end
    kept, count = kept .. character, count + 1
  end
  return kept .. lines[12]
end

local function shortened(cells, widths, lines)
  local short = {}
  for i, cell in ipairs(cells) do short[i] = shorten(cell, widths[i], lines) end
  return short
end

local function plain(heading, rows)
  local widths, text = measure(heading, rows), {}
  table.insert(rows, 1, heading)
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do cells[i] = cell .. (i < #row and (" "):rep(widths[i] - width(cell)) or "") end
    text[#text + 1] = table.concat(cells, "  ")
  end
  return table.concat(text, "\n") .. "\n"
end

local function without(cells, column)
  local kept = {}
  for i, cell in ipairs(cells) do
    if i ~= column then kept[#kept + 1] = cell end
  end
  return kept
end

-- How wide the table is with its long texts cut.
local function least_sum(heading, rows, long)
  local widths = measure(heading, rows)
  take(widths, 0, function(i) return long[heading[i]] or math.huge end)
  return sum_of(widths)
end

-- Leaves out columns, the most dispensable first, while the table is wider than the terminal.
local function leave_out(heading, rows, room, spare, long)
  for _, name in ipairs(spare or {}) do
    if least_sum(heading, rows, long) <= room then break end
    for column, title in ipairs(heading) do
      if title == name then
        heading = without(heading, column)
        for i, row in ipairs(rows) do rows[i] = without(row, column) end
        break
      end
    end
  end
  return heading
end

--- How wide a table with lines is.
-- @tparam table heading the columns' names
-- @tparam table rows arrays of strings
-- @treturn number characters
function tables.width(heading, rows)
  return sum_of(measure(heading, rows))
end

--- Lays out a table with a heading: with lines and as wide as the terminal where there is one, else plain columns.
-- @tparam table heading the columns' names
-- @tparam table rows arrays of strings; control characters in them are made visible
-- @tparam[opt] number columns of the terminal; nil: none
-- @tparam[opt] table layout for a narrow terminal: `spare`, headings of columns that it does without, the first ones first;
-- `long`, headings of columns whose texts are cut before that, with the characters that they keep
-- @treturn string the text
function tables.text(heading, rows, columns, layout)
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do row[i] = printable(cell) end
  end
  if not columns then return plain(heading, rows) end
  local long = layout and layout.long or {}
  heading = leave_out(heading, rows, columns, layout and layout.spare, long)
  local widths, lines = measure(heading, rows), charset()
  if fit(heading, widths, columns, long) then
    heading = shortened(heading, widths, lines)
    for i, row in ipairs(rows) do rows[i] = shortened(row, widths, lines) end
  end
  local text = { rule(widths, lines, 1, 2, 3), row_text(heading, widths, lines), rule(widths, lines, 4, 5, 6) }
  for _, row in ipairs(rows) do text[#text + 1] = row_text(row, widths, lines) end
  text[#text + 1] = rule(widths, lines, 7, 8, 9)
  return table.concat(text, "\n") .. "\n"
end

return tables
