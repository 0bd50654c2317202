--- Reads what the script of crown.redis.script answers.
-- @internal crown.redis.reading

local printable = require "crown.text.printable"

local reading = {}

local SHOWN = 40 -- bytes of what is no epoch

--- Whether it is what the script answers: an epoch, or who holds the lease and for how long, for each item; the longest TTL, the
-- time, and how often that was set back.
-- @param answers
-- @number count of items
-- @treturn boolean
function reading.fits(answers, count)
  if type(answers) ~= "table" or type(answers[count + 1]) ~= "number" or not tonumber(answers[count + 2])
    or type(answers[count + 3]) ~= "number" then return false end
  for i = 1, count do
    local one = answers[i]
    local is_table = type(one) == "table" and (one[1] == 1 or type(one[4]) == "number" and type(one[5]) == "number")
    if type(one) ~= "string" and not is_table then return false end
  end
  return true
end

--- Whether it gives any lease to who asked.
-- @tparam table answers
-- @number count of items
-- @treturn boolean
function reading.grants(answers, count)
  for i = 1, count do
    if type(answers[i]) == "string" then return true end
  end
  return false
end

--- Who holds a lease that is not ours.
-- @tparam table answer
-- @treturn table `{ node =, held =, left =, distrust =, empty = whether nothing was known when that began, mine = }`
function reading.denial(answer)
  local left, distrust = answer[4], answer[5]
  if left > 0 then left = left + 1 end -- it tells whole milliseconds, and who claims too early has to ask again
  return { node = answer[2] ~= "" and answer[2] or nil, held = tonumber(answer[3]), left = left >= 0 and left / 1000 or nil,
    distrust = distrust > 0 and distrust / 1000 or nil, empty = answer[7] == 1,
    mine = answer[6] ~= "" and answer[6] or nil }
end

--- The epoch of one's own lease.
-- @string text
-- @treturn number or nil, message, code
function reading.epoch(text)
  local epoch = tonumber(text)
  if not epoch then return nil, ("the lease's epoch is no number: '%s'"):format(printable(text:sub(1, SHOWN))), "store" end
  return epoch
end

--- The epochs of leases that are as they were.
-- @tparam table answers
-- @number count of items
-- @treturn table by the item's number, false where there is none
function reading.epochs(answers, count)
  local epochs = {}
  for i = 1, count do epochs[i] = type(answers[i]) == "string" and tonumber(answers[i]) end
  return epochs
end

return reading
