--- Shows something again and again, in place.
-- @internal crown.command.watch

local console = require "crown.core.console"
local core = require "crown.core"
local output = require "crown.command.output"

local EVERY = 1 -- seconds

-- As many lines as fit, so that the top stays where it is; the last says how many are left out.
local function fitted(text)
  local _, most = console.columns(1)
  local lines = {}
  for line in text:gmatch "[^\n]*\n" do lines[#lines + 1] = line end
  if #lines < most then return text end
  return table.concat(lines, "", 1, most - 2) .. ("… and %d more lines: name a REGEX, or --sort\n"):format(#lines - most + 2)
end

--- Shows a text every second, in place on a terminal, one after the other elsewhere; ends with the first
-- failure, or with its reader.
-- @tparam function make → the text, or nil and an exit code
-- @treturn number the exit code
local function watch(make)
  while true do
    local text, code = make()
    if not text then return code end
    if console.columns(1) then output.write "\27[H" end
    -- Each line's rest is cleared, then all below: nothing flickers.
    output.write(console.columns(1) and fitted(text):gsub("\n", "\27[K\n") .. "\27[J" or text)
    local over
    code, over = output.finish(0)
    if over then return code end
    core.sleep(EVERY)
  end
end

return watch
