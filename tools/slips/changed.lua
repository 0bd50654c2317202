-- A base that is not known here, or that is what we are at, stands for the commit before ours.
local COMMAND = [[
from=$(git merge-base '%s' HEAD 2>/dev/null)
[ -n "$from" ] && [ "$from" != "$(git rev-parse HEAD)" ] || from=$(git rev-parse -q --verify HEAD^)
git diff -U0 --no-color "$from" -- runtime lua 2>/dev/null]]

--- The lines that differ from another commit: `{ [file] = { [line] = true } }`.
-- @string base a commit; what counts is where its history and ours part
return function(base)
  local changed, file = {}, nil
  local pipe = io.popen(COMMAND:format(base))
  for line in pipe:lines() do
    file = line:match "^%+%+%+ b/(.*)$" or file
    local from, count = line:match "^@@ %-%S+ %+(%d+),?(%d*) @@"
    if from then
      changed[file] = changed[file] or {}
      for at = tonumber(from), tonumber(from) + (tonumber(count) or 1) - 1 do changed[file][at] = true end
    end
  end
  pipe:close()
  return changed
end
