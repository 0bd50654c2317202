--- Whether this host has a program.
-- @internal crown.command.is_program

local files = require "crown.core.files"

--- Whether the system would find a program: by its path, or in one of PATH's directories.
-- @string program
-- @string[opt] path in place of this process's PATH
-- @string[opt] cwd in place of this process's directory
-- @treturn boolean
local function is_program(program, path, cwd)
  if program:sub(1, 1) == "/" then return files.executable(program) end
  if program:find("/", 1, true) then return files.executable((cwd or ".") .. "/" .. program) end
  for directory in ((path or os.getenv "PATH" or "/usr/bin:/bin") .. ":"):gmatch "(.-):" do
    if files.executable((directory == "" and "." or directory) .. "/" .. program) then return true end
  end
  return false
end

return is_program
