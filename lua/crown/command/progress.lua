--- What `crown-lua run` says on standard error: who leads, at once and at each change.
-- @internal crown.command.progress

local console = require "crown.core.console"
local core = require "crown.core"
local events = require "crown.election.events"
local printable = require "crown.text.printable"
local settings = require "crown.election.settings"
local words = require "crown.command.words"

local LONGEST = 255 -- bytes of a leader's name that are shown
local PATIENCE = 1 -- seconds in which an oracle may still come to know who leads

local function say(format, ...)
  console.say("crown-lua: " .. printable(format:format(...)))
end

local function epoch_of(number)
  return number and number > 0 and (" (epoch %d)"):format(number) or ""
end

-- Other programs may write a leader's name into the store, of any length.
local function who(leader)
  if leader == "" then return "somebody without a name" end
  return #leader > LONGEST and leader:sub(1, LONGEST) .. "…" or leader
end

-- A candidate begins barred until its health is known: that is told only when it lasts.
local function tell_of_bars(election)
  local told = {} -- by the election's name: with slots there are several
  local function tell(name, reason, why)
    told[name] = true
    say("'%s' may not be led here: %s (%s)", name, reason, why)
  end
  events.listen({ "leadership.barred" }, function(event) tell(event.name, event.reason, event.error) end)
  events.listen({ "leadership.allowed" }, function(event)
    if told[event.name] then say("'%s' may be led here", event.name) end
    told[event.name] = nil
  end)
  core.detach(function()
    core.sleep(PATIENCE)
    local barred = next(told) == nil and election:status().barred
    if barred then tell(election.name, barred[1].reason, barred[1].why) end
  end)
end

--- Begins to say it.
-- @tparam Election election
local function progress(election)
  local name, shown, asked, cooling = election.name, false, false, false
  if not settings.named then say("no store is named by --oracle or CROWN_ORACLE: '%s' is elected on this host alone", name) end
  events.listen({ "leadership.changed" }, function(event)
    if election:is_leader() or event.phase == "leading" then return end -- what follows says so
    local ends = election:status().expires_in
    say("following '%s'; %s leads%s%s", event.name, who(event.leader), epoch_of(event.epoch),
      ends and (", its lease ends in %s"):format(words.span(ends)) or "")
    shown = true
  end)
  events.listen({ "leadership.claimed", "leadership.acting" }, function(event)
    cooling, shown = event.phase == "cooling", true
    if not cooling then return say("leading '%s'%s", event.name, epoch_of(event.epoch)) end
    say("'%s' is won%s: %s", event.name, epoch_of(event.epoch), words.phase(election:status()))
  end)
  tell_of_bars(election)
  events.listen({ "oracle.amnesia" }, function(event)
    say("%s", event.error)
    shown = true
  end)
  events.listen({ "leadership.rejected" }, function(event)
    if asked or event.leader then return end
    asked = true
    core.detach(function()
      core.sleep(PATIENCE)
      if not shown then say("following '%s'; %s", name, event.error or "the oracle does not say who leads") end
    end)
  end)
  events.listen({ "leadership.lost" }, function(event)
    if event.reason ~= "shutdown" then
      local cause = event.error and (" (%s)"):format(event.error) or ""
      local what = cooling and "'%s' is lost before its cool-down is over" or "no longer leading '%s'"
      local next_step = election:status().barred and "campaigning again when it may be led here" or "campaigning again"
      say(what .. ": %s%s; %s", event.name, event.reason, cause, next_step)
    end
  end)
end

return progress
