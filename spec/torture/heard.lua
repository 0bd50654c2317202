--- Which epochs a candidate's runtimes had heard of when they won, by their own log.
local heard = {}

--- Terms under an epoch below one that the same runtime had heard of before.
-- @string log of a candidate, which may have been started more than once
-- @treturn table an array of what is wrong, in words
function heard.went_back(log)
  local found, most = {}, {}
  for event, rest in log:gmatch "[^\n]- (%l[%w_]*%.[%w_.]+) ([^\n]*)" do
    local epoch, name = tonumber(rest:match "%f[%w]epoch=(%d+)"), rest:match "%f[%w]name=(%S+)" or ""
    if event == "process.initialized" then
      most[name] = 0 -- another runtime, which knows nothing yet
    elseif epoch and event == "leadership.claimed" and epoch < (most[name] or 0) then
      found[#found + 1] = ("%s won epoch %.0f when it had heard of %.0f: the epoch went back"):format(rest:match "%f[%w]node=(%S+)",
        epoch, most[name])
    end
    most[name] = math.max(most[name] or 0, epoch or 0)
  end
  return found
end

return heard
