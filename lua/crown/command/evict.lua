--- Makes the current leader of an election step down.
-- @internal crown.command.evict

local console = require "crown.core.console"
local core = require "crown.core"
local epochs = require "crown.check.epoch"
local ordering = require "crown.command.ordering"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local usage = require "crown.check.usage"

local evict = {
  summary = "make the current leader of an election step down",
  usage = "crown-lua evict [OPTIONS] NAME [--force]",
  most_words = 1,
  options = {
    { name = "force", help = "do not ask" },
    ordering.wait_option "the leader to go, and for the next",
  },
  help = [[
The leader stops its child, calls `lost` and releases, in this order; then somebody, perhaps
the same one, is elected. With the leader unreachable its lease runs out as usual. Eviction
never makes two leaders. Without a terminal to ask on, --force is needed.]],
}

local PAUSE = 0.05 -- seconds between two looks for an answer

local function agreed(name)
  if not console.columns(0) then usage.error("evict: there is no terminal to ask you on: use --force") end
  io.stderr:write(("Evict the current leader of '%s'? [y/N] "):format(name))
  while not console.has_come() do core.sleep(PAUSE) end -- a runtime that waited in a read would not hear of Ctrl-C
  local answer = io.read "*l"
  return answer ~= nil and answer:lower():match "^y" ~= nil
end

--- What is said of a leader that has gone.
-- @string name of the election
-- @tparam table evicted `node`, `epoch`
-- @treturn string
function evict.gone_text(name, evicted)
  local leader = printable(evicted.node or "the leader")
  return ("evicted %s from '%s' (epoch %s)"):format(leader, name, epochs.text(evicted.epoch or 0))
end

--- What is said of the next leader.
-- @string name of the election
-- @tparam[opt] table election `node`, `epoch`; nil: nobody leads
-- @treturn string
function evict.next_text(name, election)
  if not election then return ("nobody leads '%s' yet"):format(name) end
  return ("'%s' is led by %s now (epoch %s)"):format(name, printable(election.node), epochs.text(election.epoch))
end

-- Who leads now: somebody of a later epoch, or nobody yet.
local function say_who_leads(list, opts, name, epoch, seconds)
  local election = ordering.await(seconds, function() return ordering.look(list, opts, name) end, function(one)
    return one and one.node and epochs.counted(one.epoch) > epoch
  end)
  output.line(evict.next_text(name, election))
end

--- The verb.
function evict.run(opts, words)
  local name = ordering.word(evict, words)
  local ask, oracle_options, word, module = store.find("evict", "evict")
  name = store.election(oracle_options, name)
  if not opts.force and not agreed(name) then return 1 end
  oracle_options.wait = opts.wait
  local evicted, problem, code = ask(oracle_options, name)
  if code == "no_leader" then
    local more = store.yet(oracle_options, word, module, name)
    output.say("evict", ("%s in %s%s"):format(problem, store.named(oracle_options, word), more))
    return 1
  end
  if code == "stays" then
    output.say("evict", problem .. ": is its runtime stopped, or its command slow to end?")
    return 1
  end
  if not evicted then return store.unreachable("evict", problem, code) end
  output.line(evict.gone_text(name, evicted))
  local code_so_far, unread = output.finish(0) -- before the wait for the next one: that may be long
  if unread then return code_so_far end
  local list = store.caller(word, module, "list")
  if list then say_who_leads(list, oracle_options, name, epochs.counted(evicted.epoch), opts.wait or ordering.WAIT) end
  return 0
end

return evict
