--- Prints tables for people: columns as wide as their widest cell, lines by the locale.
-- @module crown.command.tables

local tables = {}

local LINES = {
  utf8 = { "┌", "┬", "┐", "├", "┼", "┤", "└", "┴", "┘", "─", "│" },
  ascii = { "+", "+", "+", "+", "+", "+", "+", "+", "+", "-", "|" },
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

--- Prints a table with a heading.
-- @tparam table heading the columns' names
-- @tparam table rows arrays of strings
function tables.print(heading, rows)
  local widths, lines = {}, charset()
  for i, cell in ipairs(heading) do widths[i] = width(cell) end
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i], width(cell)) end
  end
  print(rule(widths, lines, 1, 2, 3))
  print(row_text(heading, widths, lines))
  print(rule(widths, lines, 4, 5, 6))
  for _, row in ipairs(rows) do print(row_text(row, widths, lines)) end
  print(rule(widths, lines, 7, 8, 9))
end

return tables
