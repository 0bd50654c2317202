-- Each link of a page to a place in a page leads to a heading that is there: mkdocs looks at files alone.
local read_file = require "crown.text.read_file"

local function pages()
  local found, files = {}, assert(io.popen "find . -maxdepth 1 -name '*.md'; find docs -name '*.md'")
  for path in files:lines() do found[#found + 1] = (path:gsub("^%./", "")) end
  files:close()
  return found
end

-- A page without its blocks of code, which have links and headings of their own.
local function prose(path)
  return (("\n" .. read_file(path)):gsub("\n```.-\n```", "\n"))
end

-- The place of a heading, as the site names it.
local function place_of(heading)
  local words = heading:gsub("%[([^%]]*)%]%b()", "%1"):gsub("[^%w%s_-]", ""):lower()
  return (words:match("^%s*(.-)%s*$"):gsub("[%s-]+", "-"))
end

local function places(path)
  local found = {}
  for heading in prose(path):gmatch "\n#+ ([^\n]+)" do found[place_of(heading)] = true end
  return found
end

-- A path beside a page, without "..".
local function beside(path, link)
  local whole = ((path:match "^(.*/)" or "") .. link):gsub("^%./", "")
  local shorter, count = whole, 1
  while count > 0 do shorter, count = shorter:gsub("[^/]+/%.%./", "", 1) end
  return shorter
end

describe("a link of the documentation", function()
  it("to a place in a page leads to a heading", function()
    local list, wrong, count, known = pages(), {}, 0, {}
    for _, path in ipairs(list) do known[path] = places(path) end
    for _, path in ipairs(list) do
      for link, place in prose(path):gmatch "%]%(([^)%s#]*)#([^)%s]+)%)" do
        local target = link == "" and path or beside(path, link)
        if not link:find "^%a+:" and not (known[target] and known[target][place]) then
          wrong[#wrong + 1] = ("%s: %s#%s"):format(path, link, place)
        end
        count = count + 1
      end
    end
    assert.same({}, wrong)
    assert.is_true(count > 200, count)
  end)
end)
