--- What comments call the same: each says why, stands where a slip could be made, and they are few. And whether what the
-- generator makes of Lua is Lua.
local slip = require "slips.slip"
local sources = require "slips.sources"

local marks = {}

local MOST = 0.02 -- of all slips

--- @treturn boolean whether they are as they should be
function marks.check()
  local slips, all = sources.slips()
  local bad, excused, of_line, texts = {}, 0, {}, {}
  for _, one in ipairs(slips) do
    if sources.language(one.file) == "lua" then
      texts[one.file] = texts[one.file] or sources.read(one.file)
      if not loadstring(slip.apply(one, texts[one.file])) then bad[#bad + 1] = slip.name(one) .. ": is no Lua" end
    end
    if one.same then
      excused = excused + 1
      for line = one.line, one.last_line do of_line[one.file .. ":" .. line] = true end
    end
  end
  for _, mark in ipairs(all) do
    local place = mark.file .. ":" .. mark.line
    if not mark.why:find "%w" then bad[#bad + 1] = place .. ": same, but why?" end
    if not of_line[place] then bad[#bad + 1] = place .. ": same as what? No slip is made here" end
  end
  if excused > MOST * #slips then
    bad[#bad + 1] = ("%d of %d slips are marked as the same, at most %.0f %% may be"):format(excused, #slips, 100 * MOST)
  end
  print(#bad == 0 and ("slips: ok (%d, %d marked as the same)"):format(#slips, excused) or table.concat(bad, "\n"))
  return #bad == 0
end

return marks
