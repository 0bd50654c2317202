--- Figures, and what several verbs say, in words for people.
-- @internal crown.command.words

local directory = require "crown.control.directory"
local epochs = require "crown.check.epoch"

local words = {}

--- A time span, to two figures.
-- @number seconds
-- @treturn string "0.4 s", "12 s", "3 min 5 s", "2 h 11 min", "5 d 3 h"
function words.span(seconds)
  if seconds < 10 then return ("%.1f s"):format(math.max(0, seconds)) end
  if seconds < 60 then return ("%d s"):format(seconds) end
  if seconds < 3600 then return ("%d min %d s"):format(seconds / 60, seconds % 60) end
  if seconds < 86400 then return ("%d h %d min"):format(seconds / 3600, seconds % 3600 / 60) end
  return ("%d d %d h"):format(seconds / 86400, seconds % 86400 / 3600)
end

--- An epoch, where one is known.
-- @number[opt] epoch 0 is none
-- @treturn string
function words.epoch(epoch)
  return epoch and epoch ~= 0 and epochs.text(epoch) or "-"
end

--- The phase of a candidate.
-- @tparam table one an election's status
-- @treturn string
function words.phase(one)
  if one.acts_in then return ("cooling down, acts in %s"):format(words.span(one.acts_in)) end
  local waits = one.amnesia and one.next_claim_in and not one.away and one.phase ~= "leading"
  return waits and "waiting " .. words.span(one.next_claim_in) or one.phase
end

--- What there is to say where no runtime answers.
-- @treturn string two lines
function words.no_runtime()
  return ("no runtime of yours runs here: none has a socket in %s\n"
    .. "Ask as the user who runs crown-lua, with the same CROWN_DIRECTORY, or as root for the units of the service manager.\n")
    :format(directory())
end

return words
