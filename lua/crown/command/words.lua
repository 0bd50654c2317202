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

local DENIED = "Permission denied"

--- What there is to say of runtimes that have given no answer.
-- @tparam table runtimes answers of crown.control
-- @string[opt] what_they_do the end of a clause about them
-- @treturn string; or nil: all have answered
function words.silent(runtimes, what_they_do)
  local pids, why = {}, "is it stopped?"
  for _, one in ipairs(runtimes) do
    if one.error then pids[#pids + 1] = ("%d"):format(one.pid) end
    if words.is_denied(one) then why = "its socket may not be opened by this user: ask as the one who runs it" end
  end
  return pids[1] and ("no answer from runtime %s%s: %s"):format(table.concat(pids, ", "), what_they_do or "", why) or nil
end

--- Whether a runtime is another user's, who lets nobody else ask it.
-- @tparam table runtime an answer of crown.control
-- @treturn boolean
function words.is_denied(runtime) return runtime.error ~= nil and runtime.error:find(DENIED, 1, true) ~= nil end

return words
