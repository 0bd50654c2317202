--- Makes the current leader of an election step down.
-- @module crown.command.evict

local options = require "crown.options"
local store = require "crown.command.store"
local usage = require "crown.usage"

local evict = {
  summary = "make the current leader of an election step down",
  usage = "crown-lua evict [OPTIONS] NAME [--force]",
  options = {
    { name = "force", help = "do not ask" },
    { name = "wait", value = "SECONDS", number = true, help = "how long to wait for the leader to go (10)" },
  },
  help = [[
The leader stops its child, calls `lost` and releases, in this order; then somebody, perhaps
the same one, is elected. With the leader unreachable its lease runs out as usual. Eviction
never makes two leaders. Without a terminal to ask on, --force is needed.]],
}

local function agreed(name)
  io.stderr:write(("Evict the current leader of '%s'? [y/N] "):format(name))
  local answer = io.read "*l"
  if answer == nil then usage.error("evict: nobody answers here: use --force") end
  return answer:lower():match "^y" ~= nil
end

--- The verb.
function evict.run(opts, words)
  local name = words[1]
  if not name then usage.error("evict: name an election: %s", evict.usage) end
  if not name:match(options.NAME_PATTERN) then usage.error("evict: '%s' is no election's name", name) end
  local ask, oracle_options = store.find("evict", "evict")
  if not opts.force and not agreed(name) then return 1 end
  oracle_options.wait = opts.wait
  local evicted, problem = ask(oracle_options, name)
  if not evicted then return store.unreachable("evict", problem) end
  print(("evicted %s from '%s' (epoch %d)"):format(evicted.node or "the leader", name, evicted.epoch or 0))
  return 0
end

return evict
