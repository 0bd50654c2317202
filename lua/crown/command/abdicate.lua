--- Makes this host's candidate for an election step down.
-- @internal crown.command.abdicate

local control = require "crown.control"
local output = require "crown.command.output"
local store = require "crown.command.store"
local usage = require "crown.check.usage"
local words_for = require "crown.command.words"

local abdicate = {
  summary = "make this host's leader of an election step down and let the others try",
  usage = "crown-lua abdicate NAME",
  most_words = 1,
  help = [[
Talks to the runtimes of this user on this host, as status does; `crown-lua evict` talks to the
store instead. Exit code 1 when no runtime here takes part in NAME.]],
}

-- All that runtimes here take part in.
local function elections()
  local found = {}
  for _, runtime in ipairs(control.ask_all { ask = "status" }) do
    for _, one in ipairs(runtime.elections or {}) do found[#found + 1] = one end
  end
  return found
end

-- The runtimes that only follow, by their pids. One that has begun to lead since steps down all the same.
local function followers(name)
  local follows = {}
  for _, runtime in ipairs(control.ask_all { ask = "status" }) do
    for _, one in ipairs(runtime.elections or {}) do
      if one.name == name then follows[runtime.pid] = one.phase == "following" and follows[runtime.pid] ~= false end
    end
  end
  return follows
end

--- The verb.
function abdicate.run(_, words)
  if not words[1] then usage.error("abdicate: name an election: %s", abdicate.usage) end
  local follows = followers(words[1])
  local found, runtimes = false, control.ask_all { ask = "abdicate", name = words[1] }
  for _, runtime in ipairs(runtimes) do
    if runtime.found then
      found = true
      output.line((follows[runtime.pid] and "runtime %d follows in '%s': it has nothing to step down from"
        or "asked runtime %d to step down from '%s'"):format(runtime.pid, words[1]))
    end
  end
  if found then return 0 end
  local silent = words_for.silent(runtimes, (", which may take part in '%s'"):format(words[1]))
  if silent then
    output.say("abdicate", silent)
    return 1
  end
  output.say("abdicate", ("no runtime of yours here takes part in '%s'%s"):format(words[1], store.slots(elections(), words[1])))
  return 1
end

return abdicate
