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

-- What pages below a directory point to and is not there.
local function dead_links(root)
  local dead = {}
  for _, page in ipairs(pages(root)) do
    local folder = page:match "^(.*/)" or ""
    for target in read_file(root .. "/" .. page):gmatch "%]%(([^)%s]+)%)" do
      local path = target:gsub("#.*$", "")
      local is_file = path ~= "" and not path:match "^%a+:"
      if is_file and crown.exec({ "test", "-e", root .. "/" .. folder .. path }).code ~= 0 then
        dead[#dead + 1] = page .. " → " .. target
      end
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
