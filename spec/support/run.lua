--- Runs the program to its end, as a user does, and returns what came of it.
local crown = require "crown"
local program = require "support.program"


--- @return `{ code =, stdout =, stderr = }`
local function run(args, options)
  options = options or {}
  local words = { program }
  for _, word in ipairs(args) do words[#words + 1] = word end
  return assert(crown.exec(words, { timeout = options.timeout or 60, env = options.env, stdin = options.stdin,
    cwd = options.cwd }))
end

return run
