--- The sources that slips are made of, and all slips in them.
local generate = require "slips.generate"

local sources = {}

local KINDS = { { "^runtime/.*%.c$", "c" }, { "^lua/crown/.*%.lua$", "lua" }, { "^lua/oracles/.*%.lua$", "lua" },
  { "^lua/stores/.*%.lua$", "lua" } }

function sources.language(path)
  for _, kind in ipairs(KINDS) do
    if path:find(kind[1]) then return kind[2] end
  end
end

function sources.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

--- @string[opt] prefix of the files' paths
-- @treturn table slips, each with its `file`
-- @treturn table what comments say is the same: `{ file, line, why, operators }`
function sources.slips(prefix)
  local all, marks = {}, {}
  local pipe = io.popen "git ls-files -co --exclude-standard runtime lua | LC_ALL=C sort -u"
  for path in pipe:lines() do
    local language = path:sub(1, #(prefix or "")) == (prefix or "") and sources.language(path)
    local text = language and sources.read(path)
    if text then
      local slips, same = generate(text, language)
      for _, one in ipairs(slips) do
        one.file = path
        all[#all + 1] = one
      end
      for line, said in pairs(same) do
        marks[#marks + 1] = { file = path, line = line, why = said.why, operators = said.operators }
      end
    end
  end
  pipe:close()
  return all, marks
end

return sources
