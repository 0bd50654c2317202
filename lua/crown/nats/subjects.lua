--- Which subjects the stream of a bucket takes.
-- @internal crown.nats.subjects

local subjects = {}

local function takes(pattern, subject)
  pattern = pattern:gsub("[^%w*>]", "%%%0"):gsub("%*", "[^.]+"):gsub(">$", ".+")
  return subject:find("^" .. pattern .. "$") ~= nil
end

--- Why a bucket does not take a write.
-- @string name of the bucket
-- @tparam table patterns of its stream
-- @string subject of the write
-- @treturn string words; nil where it takes it
function subjects.problem(name, patterns, subject)
  for _, pattern in ipairs(patterns) do
    if takes(pattern, subject) then return nil end
  end
  return ("the bucket %s does not take %s: its subjects are %s"):format(name, subject, table.concat(patterns, ", "))
end

return subjects
