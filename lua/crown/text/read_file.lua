--- Reads a whole file.
-- @internal crown.text.read_file

--- Reads.
-- @string path
-- @treturn string its bytes, or nil and a message
local function read_file(path)
  local file, problem = io.open(path, "rb")
  if not file then return nil, problem end
  local text = file:read "*a"
  file:close()
  return text
end

return read_file
