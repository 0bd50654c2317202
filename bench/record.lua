--- A file of figures: lines of "NAME<tab>VALUE", for bench/plot.lua. What is measured anew takes the place of what was there.
local read_file = require "crown.text.read_file"

local Record = {}
Record.__index = Record

--- Reads a file.
-- @string path
-- @treturn table an array of `{ name =, values = }`, in the order of the file; empty where there is none
function Record.read(path)
  local rows, by_name = {}, {}
  for name, value in (read_file(path) or ""):gmatch "([^\t\n]+)\t([^\t\n]+)\n" do
    if not by_name[name] then
      by_name[name] = { name = name, values = {} }
      rows[#rows + 1] = by_name[name]
    end
    table.insert(by_name[name].values, tonumber(value))
  end
  return rows
end

--- Opens a file to add to.
-- @string path "" for none
-- @treturn Record
function Record.open(path)
  local self = setmetatable({ path = path, rows = {}, by_name = {} }, Record)
  for _, row in ipairs(path ~= "" and Record.read(path) or {}) do
    self.rows[#self.rows + 1], self.by_name[row.name] = row, row
    row.old = true
  end
  return self
end

--- Adds a figure, and writes the file.
-- @string name
-- @number value
function Record:add(name, value)
  if self.path == "" then return end
  local row = self.by_name[name]
  if not row then
    row = { name = name }
    self.rows[#self.rows + 1], self.by_name[name] = row, row
  end
  if row.old or not row.values then row.old, row.values = false, {} end
  table.insert(row.values, value)
  local file = assert(io.open(self.path, "w"))
  for _, one in ipairs(self.rows) do
    for _, figure in ipairs(one.values) do file:write(("%s\t%.3f\n"):format(one.name, figure)) end
  end
  file:close()
end

return Record
