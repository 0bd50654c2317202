--- Mistakes of the user's: errors that print as one clear line and end the command with exit code 2.
-- @module crown.check.usage

local usage = {}
local Usage = {}
Usage.__index = Usage

function Usage.__tostring(self)
  return self.message
end

-- Where the user's own code called us: "app.lua:7: ", or "" when it did not. Our modules are embedded as crown/… and oracles/….
local function place()
  for level = 3, math.huge do
    local frame = debug.getinfo(level, "Sl")
    if not frame then return "" end
    if frame.source:match "^@" and not frame.source:match "^@crown/" and not frame.source:match "^@oracles/" then
      return ("%s:%d: "):format(frame.source:sub(2), frame.currentline)
    end
  end
end

--- Raises a usage error. Where the user's code is to blame, its file and line stand before the text.
-- @string format as string.format takes it; one line that names what is wrong and where
-- @param ... its values
function usage.error(format, ...)
  error(setmetatable({ usage = true, message = place() .. format:format(...) }, Usage), 0)
end

--- How many edits make one word into another (Levenshtein), for suggestions.
local function distance(a, b)
  local previous = {}
  for j = 0, #b do previous[j] = j end
  for i = 1, #a do
    local current = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      current[j] = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
    end
    previous = current
  end
  return previous[#b]
end

-- What other systems call it, in small letters: our word, where that is one of those known; and what to say elsewhere.
local OTHERS = {
  child_spec = { "child" }, follower_child_spec = { "follower_child" },
  repo = { "url", "here it is url = 'postgres://…'" },
  base_url = { "url" }, lock_name = { "lock" }, refresh_delay = { "refresh" },
  on_won = { "won", "handlers = { won = … }" }, onwon = { "won", "handlers = { won = … }" },
  on_lost = { "lost", "handlers = { lost = … }" }, onlost = { "lost", "handlers = { lost = … }" },
  on_campaign = { "campaign", "handlers = { campaign = … }" }, oncampaign = { "campaign", "handlers = { campaign = … }" },
  bucket = { "bucket", "the bucket is part of the URL: --oracle nats://HOST/BUCKET" },
  election = { "election", "here it is crown-lua run, file, info or evict" },
}

local function of_another_system(word, known)
  local other = OTHERS[(word:gsub("^%-+", ""):lower())]
  if not other then return nil end
  for _, ours in ipairs(known) do
    if ours == other[1] then return (" (did you mean '%s'?)"):format(ours) end
  end
  return other[2] and (" (%s)"):format(other[2])
end

--- What the user may have meant.
-- @string word what was written
-- @tparam table known an array of words
-- @treturn string " (did you mean 'x'?)", or ""
function usage.suggest(word, known)
  local meant = of_another_system(word, known)
  if meant then return meant end
  local best, least = nil, math.max(2, math.floor(#word / 3)) + 1
  for _, candidate in ipairs(known) do
    local far = distance(word, candidate)
    if far < least then best, least = candidate, far end
  end
  return best and (" (did you mean '%s'?)"):format(best) or ""
end

--- An error in one line, without what it lists or traces below. Where the first line only names the module that did not
-- load, the next one has the reason.
-- @param problem the error
-- @treturn string
function usage.one_line(problem)
  local first, second = tostring(problem):match "^([^\n]*)\n?%s*([^\n]*)"
  return first:sub(-1) == ":" and ("%s %s"):format(first, second) or first
end

--- The keys of a table, in order, for suggestions.
-- @tparam table known
-- @treturn table an array of names
function usage.names(known)
  local names = {}
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return usage
