--- Figures, and what several verbs say, in words for people.
-- @internal crown.command.words

local directory = require "crown.control.directory"
local epochs = require "crown.check.epoch"
local span = require "crown.text.span"

local words = {}

--- A time span, to two figures: see crown.text.span.
words.span = span

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
