--- What stands behind a tool's command word: `key=value` each.
-- @tparam table words the command line: the command word first
-- @treturn table values by key, without those that are empty, so that make may pass a variable that nobody has set
-- @raise where a word is none
return function(words)
  local found = {}
  for i = 2, #words do
    local key, value = words[i]:match "^(%w+)=(.*)$"
    assert(key, "what is '" .. words[i] .. "'?")
    if value ~= "" then found[key] = value end
  end
  return found
end
