-- What a page points to is there, in the sources and where it is installed.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"

local function pages(root)
  local found = {}
  local pipe = assert(io.popen(("cd '%s' && find README.md CONTRIBUTING.md docs -name '*.md' | sort"):format(root)))
  for path in pipe:lines() do found[#found + 1] = path end
  pipe:close()
  return found
end

-- The headings of a page, as a link names them. Left out are those that GitHub and the site name differently.
local function headings(text)
  local found = {}
  for line in text:gsub("\n```.-\n```", ""):gmatch "\n#+ ([^\n]+)" do
    local slug = line:lower():gsub("[^%w%s_\128-\255-]", ""):gsub("%s", "-")
    if not slug:find "%-%-" and not slug:find "^%-" and not slug:find "%-$" then found[slug] = true end
  end
  return found
end

local function is_there(path) return crown.exec({ "test", "-e", path }).code == 0 end

-- Whether a link of a page leads to a file, and to a heading of it where it names one.
local function leads_somewhere(root, page, target)
  local path, heading = target:match "^([^#]*)#?(.*)$"
  if path:match "^%a+:" then return true end
  local file = root .. "/" .. (path == "" and page or (page:match "^(.*/)" or "") .. path)
  if not is_there(file) then return false end
  return heading == "" or headings("\n" .. read_file(file))[heading] == true
end

-- What pages below a directory point to and is not there.
local function dead_links(root)
  local dead = {}
  for _, page in ipairs(pages(root)) do
    for target in read_file(root .. "/" .. page):gmatch "%]%(([^)%s]+)%)" do
      if not leads_somewhere(root, page, target) then dead[#dead + 1] = page .. " → " .. target end
    end
  end
  return dead
end

describe("the documentation's links", function()
  it("lead somewhere", function() assert.same({}, dead_links ".") end)

  it("lead somewhere where it is installed", function()
    local root = tempdir()
    local result = assert(crown.exec({ "make", "-s", "install", "DESTDIR=" .. root, "PREFIX=/usr" }, { timeout = 120 }))
    assert.equal(0, result.code, result.stderr)
    assert.same({}, dead_links(root .. "/usr/share/doc/crown-lua"))
  end)
end)
