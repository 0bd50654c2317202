--- Writes a file.
-- @string path
-- @string text all that it then holds
-- @treturn string the path
local function write_file(path, text)
  local file = assert(io.open(path, "w"))
  assert(file:write(text))
  assert(file:close())
  return path
end

return write_file
