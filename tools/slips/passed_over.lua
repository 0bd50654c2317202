--- Log lines and asserts: slips in them are of no interest.
local C = { assert = true, _Static_assert = true, static_assert = true, log_debug = true, log_info = true, log_warn = true,
  log_error = true, log_event = true, log_say = true, log_in = true }
local LUA = { assert = true, log = true }

-- The bracket that opens the arguments of a call to pass over, which begins at `at`.
local function opening(list, at, language)
  local word = list[at].word
  local after = list[at + 1]
  if list[at].kind ~= "name" or not after or not (language == "c" and C or LUA)[word] then return nil end
  if after.word == "(" then return at + 1 end
  if language == "lua" and word == "log" and after.word == "." and list[at + 3] and list[at + 3].word == "(" then return at + 3 end
end

--- @tparam table list tokens
-- @treturn table true for each place of a token to pass over
return function(list, language)
  local passed = {}
  for at in ipairs(list) do
    local open = opening(list, at, language)
    for i = at, open and list[open].mate or at - 1 do passed[i] = true end
  end
  return passed
end
