--- The words of the tables in spec/stores/cases: each step of a case is one of them. spec/README.md lists them.
local crown = require "crown"

local words = {}

local PATIENCE = 60 -- seconds in which a step that waits has to come true
local DRIFT = 0.99 -- a leader acts until its TTL is over, less what its clock may run differently

-- Waits until something is so. Unlike `eventually` it lets an error through at once.
local function await(is_so)
  local until_then = crown.now() + PATIENCE
  while not is_so() do
    if crown.now() > until_then then error(("not so within %d s"):format(PATIENCE), 0) end
    crown.sleep(0.05)
  end
end

-- What a verdict is called in the tables.
local function outcome(verdict)
  if verdict[1] == "denied" and verdict[5] then return "doubted" end
  return verdict[1]
end

local ALSO = { refused = { denied = true, doubted = true, unknown = true }, held = { denied = true, doubted = true } }

-- Whether what came is one of what was wanted: "granted|doubted".
local function fits(came, wanted)
  for word in wanted:gmatch "[^|]+" do
    if came == word or ALSO[word] and ALSO[word][came] or word == "anything" then return true end
  end
  return false
end

-- Whoever holds a lease by its own clock, beside an actor.
local function holder_beside(play, actor, now)
  for other, lease in pairs(play.leases) do
    if other ~= actor and now < lease.ends then return other, lease end
  end
end

-- A grant: nobody else may hold the lease, and no epoch may come twice or go back.
local function is_granted(play, actor, verdict, sent)
  local other = holder_beside(play, actor, sent)
  if other then error(("two lead: %s was granted the lease while %s still acts by its own"):format(actor, other), 0) end
  local epoch = verdict[4]
  if epoch and epoch <= play.epoch then
    error(("%s was granted epoch %.0f after epoch %.0f"):format(actor, epoch, play.epoch), 0)
  end
  play.epoch = epoch or play.epoch
  play.leases[actor] = { ends = sent + (verdict[3] or math.huge) * DRIFT, epoch = epoch }
end

local function is_refreshed(play, actor, verdict, sent)
  local lease = play.leases[actor]
  if not lease then error(actor .. " was granted a refresh of a lease that it does not have", 0) end
  if lease.epoch ~= verdict[4] then error(("a refresh moved the epoch of %s"):format(actor), 0) end
  lease.ends = sent + (verdict[3] or math.huge) * DRIFT
end

-- A denial while somebody leads: it says who, and under which epoch; but not where the store has forgotten who does.
local function is_denied(play, actor, verdict, sent)
  local other, lease = holder_beside(play, actor, sent)
  if not other or crown.now() >= lease.ends or play.nameless then return end
  if verdict[3] ~= other then error(("%s was told that %s leads, not %s"):format(actor, tostring(verdict[3]), other), 0) end
  if verdict[4] ~= lease.epoch then
    error(("%s was told of epoch %s, and %s leads in %.0f"):format(actor, tostring(verdict[4]), other, lease.epoch), 0)
  end
end

-- Asks once, and keeps what came.
local function ask(play, actor, what)
  local sent = crown.now()
  local verdict = play:player(actor):call(what)
  local came = outcome(verdict)
  if came == "granted" then
    local note = what == "claim" and is_granted or is_refreshed
    note(play, actor, verdict, sent)
  elseif came == "denied" and what == "claim" then
    is_denied(play, actor, verdict, sent)
  elseif came ~= "unknown" and what == "refresh" then
    play.leases[actor] = nil
  end
  return came, verdict
end

-- A lease that is over by its holder's own clock, beside an actor.
local function lapsed_beside(play, actor, now)
  for other, lease in pairs(play.leases) do
    if other ~= actor and now >= lease.ends then return true end
  end
end

--- What a step ends with where a lease ran out before the step that counts on it: the machine was too slow, and the case has to
-- be played again.
words.TOO_SLOW = {}

local function check(play, actor, came, wanted, verdict, at)
  if fits(came, wanted) then return end
  if came == "granted" and lapsed_beside(play, actor, at) then error(words.TOO_SLOW, 0) end
  error(("wanted %s, got %s%s"):format(wanted, came, verdict[2] and (" (%s)"):format(tostring(verdict[2])) or ""), 0)
end

local function asks(what)
  return function(play, actor, wanted)
    local came, verdict = ask(play, actor, what)
    check(play, actor, came, wanted, verdict, crown.now())
  end
end

local function in_time(what)
  local once = asks(what)
  return function(play, actor, wanted)
    play:player(actor):in_time(function() once(play, actor, wanted) end)
  end
end

-- Asks until the store says something, or what is wanted.
local function asks_until(what, enough)
  return function(play, actor, wanted)
    local came, verdict
    await(function()
      came, verdict = ask(play, actor, what)
      return enough(came)
    end)
    check(play, actor, came, wanted or "granted", verdict, crown.now())
  end
end

local function is_known(came) return came ~= "unknown" end
local function is_grant(came) return came == "granted" end

local function leaves(play, actor)
  play:player(actor):abdicate()
  play.leases[actor] = nil
end

-- As the core does it, which is told that it is to go.
local function is_to_go(play, actor)
  local player = play:player(actor)
  local message = player:message()
  return (message and player:call("handle_info", message) or player:call "refresh")[1] == "evicted"
end

local function goes(play, actor)
  await(function() return is_to_go(play, actor) end)
  leaves(play, actor)
end

local ASKS = 0.4 -- seconds after which a leader of a lower preference is asked to go

local function is_preferred(level, preempt)
  return function(play, actor) play:prefer(actor, { level = level, preempt = preempt }) end
end

-- Claims, and is denied, until the leader hears that it is to go.
local function sends_away(leader)
  return function(play, actor)
    await(function()
      check(play, actor, ask(play, actor, "claim"), "refused", {}, crown.now())
      return is_to_go(play, leader)
    end)
    leaves(play, leader)
  end
end

local function asks_nobody(play, actor)
  local until_then = crown.now() + 2 * ASKS
  repeat
    check(play, actor, ask(play, actor, "claim"), "refused", {}, crown.now())
    crown.sleep(ASKS / 4)
  until crown.now() > until_then
end

-- What an actor does: `(play, actor, wanted)`.
words.of_actors = {
  claims = asks "claim",
  refreshes = asks "refresh",
  ["claims until it is answered"] = asks_until("claim", is_known),
  ["refreshes until it is answered"] = asks_until("refresh", is_known),
  ["claims within its time-out"] = in_time "claim",
  ["refreshes within its time-out"] = in_time "refresh",
  wins = asks_until("claim", is_grant),
  leaves = leaves,
  ["is cut off"] = function(play, actor) play:way_of(actor, "hold") end,
  ["comes back"] = function(play, actor) play:way_of(actor, "free") end,
  ["asks for runs"] = function(play, actor) play:attend(actor) end,
  ["has run it and leaves"] = function(play, actor) play:end_run(actor, 0) end,
  ["has failed and leaves"] = function(play, actor) play:end_run(actor, 1) end,
  ["is preferred"] = is_preferred(7),
  ["is preferred a little"] = is_preferred(3),
  ["is preferred and asks for it"] = is_preferred(7, ASKS),
  ["is preferred a little and asks for it"] = is_preferred(3, ASKS),
  ["claims until one is to go and leaves"] = sends_away "one",
  ["claims for longer than it waits to ask"] = asks_nobody,
  ["hears the eviction and leaves"] = goes,
  ["hears that it is to go and leaves"] = goes,
}

-- What happens to the store: `(play, rest)`.
words.of_the_store = {
  clock = function(play, seconds) play.driver:clock(tonumber(seconds)) end,
  restart = function(play) play.driver.hurt.restart() play:forgot "restart" end,
  forget = function(play) play.driver.hurt.forget(play.name) play:forgot "forget" end,
  remember = function(play) play.older = play.driver.hurt.older() end,
  older = function(play) play.older() play.older = nil play:forgot "older" end,
  freeze = function(play) play.thaw = play.driver.hurt.freeze() end,
  thaw = function(play) play.thaw() play.thaw = nil end,
  sessions = function(play) play.driver.hurt.sessions() end,
  deny = function(play) play.allow = play.driver.hurt.deny() end,
  allow = function(play) play.allow() play.allow = nil end,
  delete = function(play) play.driver.hurt.delete(play.name) play.nameless = true end,
  promote = function(play) play.driver.hurt.promote() end,
  evict = function(play)
    play.evicted = nil
    crown.spawn(function()
      local found, problem = play:evict()
      play.evicted = found or problem
    end)
  end,
  pause = function(play, rest)
    local length = (rest or ""):match "for (%d+)"
    local fields = { pause = true, keep = (rest or ""):find "keep" and true or nil }
    if length then fields["until"] = os.time() + tonumber(length) end
    assert(play:order(fields))
  end,
  resume = function(play) assert(play:order(false)) end,
  hand = function(play, rest)
    local to, within = rest:match "^over to (%S+)", rest:match "within (%d+)$"
    assert(play:order { to = to, within = tonumber(within or PATIENCE) })
  end,
  ["the runs are forgotten"] = function(play) assert(play:forget_runs()) end,
  ["evict ends"] = function(play)
    await(function() return play.evicted end)
    assert(type(play.evicted) == "table", play.evicted)
  end,
}

--- Takes a case's line apart.
-- @string line steps with `;` between them: "ACTOR VERB: OUTCOME", "ACTOR VERB", or "WORD REST" of what happens to the store
-- @treturn table of `{ text =, run = function(play) }`
function words.parse(line)
  local steps = {}
  for text in (line .. ";"):gmatch "%s*(.-)%s*;" do
    local said, wanted = text:match "^(.-):%s*(%S+)$"
    said = said or text
    local actor, verb = said:match "^(%S+) (.+)$"
    local act = words.of_actors[verb]
    local happens = words.of_the_store[said] or words.of_the_store[actor]
    if act then
      steps[#steps + 1] = { text = text, run = function(play) act(play, actor, wanted) end }
    elseif happens then
      steps[#steps + 1] = { text = text, run = function(play) happens(play, verb) end }
    else
      error(("no step of a case: '%s'"):format(text), 0)
    end
  end
  return steps
end

return words
