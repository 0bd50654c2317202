--- Which epochs a candidate's runtimes had heard of when they won, by their own log.
local heard = {}

--- Terms under an epoch below one that the same runtime had heard of before.
-- @string log of a candidate, which may have been started more than once
-- @treturn table an array of what is wrong, in words
function heard.went_back(log)
  local found, most = {}, 0
  for event, rest in log:gmatch "[^\n]- (%l[%w_]*%.[%w_.]+) ([^\n]*)" do
    local epoch = tonumber(rest:match "%f[%w]epoch=(%d+)")
    if event == "process.initialized" then
      most = 0 -- another runtime, which knows nothing yet
    elseif epoch and event == "leadership.claimed" and epoch < most then
      found[#found + 1] = ("%s won epoch %.0f when it had heard of %.0f: the epoch went back"):format(rest:match "%f[%w]node=(%S+)",
        epoch, most)
    end
    most = math.max(most, epoch or 0)
  end
  return found
end

return heard
