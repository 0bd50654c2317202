--- What to do about a disk that takes nothing, for whoever reads the error.
-- @internal crown.text.full_disk

local full_disk = {}

-- What helps, by what the system says.
local ADVICE = {
  ["No space left on device"] = "make room on that file system (df -h and df -i show what is full)",
  ["Disk quota exceeded"] = "make room in this user's quota on that file system (quota -s shows it)",
  ["File too large"] = "let this process write larger ones",
  ["Read-only file system"] = "mount that file system for writing (findmnt shows how it is mounted)",
}

--- Adds what to do next.
-- @string[opt] problem of a change on a disk
-- @string[optchain=""] meanwhile what happens until then, as the end of the sentence
-- @treturn string the same, with advice where there is some; or nil
function full_disk.with_advice(problem, meanwhile)
  for words, advice in pairs(ADVICE) do
    local lacks = problem and problem:find(words, 1, true) and not problem:find(advice, 1, true)
    if lacks then return ("%s: %s%s"):format(problem, advice, meanwhile or "") end
  end
  return problem
end

--- Adds what to do next, and what happens meanwhile, to what a lock's directory refuses.
-- @string dir where the locks are
-- @string[opt] problem of a change in it
-- @treturn string the same, with advice where there is some; or nil
function full_disk.of_locks(dir, problem)
  return full_disk.with_advice(problem, ("; until then nobody begins to lead in %s, and who leads leads on"):format(dir))
end

return full_disk
