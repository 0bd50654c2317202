--- The main function of a Lua module that runs as a child process: `{ lua = "module" }`.
-- @internal crown.election.child_main

local child_main = {}

--- Runs the module that the command line names. A module that returns a function has it called, as a task.
-- @tparam table argv "--lua-child", the module's name
function child_main.main(argv)
  local path = os.getenv "CROWN_LUA_PATH"
  if path then package.path = path end
  local loaded = require(argv[2])
  if type(loaded) == "function" then return loaded() end
end

return child_main
