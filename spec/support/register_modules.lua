--- The modules of lua/crown/register, loaded apart from those in use, so that one of them may be broken on purpose.
local list = dofile "tools/mutants/list.lua"
local ordered = require "support.ordered_pairs"

local FOLDER = "lua/crown/register/"
-- Each requires only those before it.
local NAMES = { "balance", "orders", "ranks", "levels", "runs", "record", "rule", "seen", "joined", "limits", "place", "obey",
  "duties", "claims", "ending", "confirming", "terms", "session", "watch", "several" }

--- @tparam[opt] table mutant of tools/mutants/list.lua
-- @treturn table the modules by name, and `random`: the dice of the world that uses them, set by its maker
return function(mutant)
  local loaded = {}
  local function pairs(all) return loaded.random and ordered.shuffled(all, loaded.random) or ordered.pairs(all) end
  local function find(name)
    local own = name:match "^crown%.register%.(%w+)$"
    return own and loaded[own] or require(name)
  end
  for _, name in ipairs(NAMES) do
    local path = (name == "balance" and "lua/crown/election/" or FOLDER) .. name .. ".lua"
    local source = assert(list.read(path))
    if mutant and mutant.file == path then source = assert(list.apply(mutant, source), mutant.id) end
    local chunk = assert(loadstring(source, "@" .. path))
    loaded[name] = setfenv(chunk, setmetatable({ require = find, pairs = pairs }, { __index = _G }))()
  end
  return loaded
end
