-- The pages that teach are played as their readers would. All others are read: their code is what crown-lua takes.
local Page = require "support.page"
local read_file = require "crown.text.read_file"

local MOST = 100 -- characters in a line of prose

-- Tables and pictures cannot be broken; code is as long as it is.
local function long_lines(path)
  local found, code, number = {}, false, 0
  for line in read_file(path):gmatch "([^\n]*)\n" do
    number = number + 1
    if line:match "^%s*```" then code = not code end
    local length = select(2, line:gsub("[^\128-\191]", ""))
    if not code and length > MOST and not line:match "^[|!]" then found[#found + 1] = ("%s:%d"):format(path, number) end
  end
  return found
end

describe("the documentation", function()
  for _, path in ipairs(Page.all()) do
    if path:match "^docs/tutorial" or path:match "^docs/how%-to/" or path:match "^docs/moving/" then
      it("does what it says: " .. path, function() Page.play(path) end)
    end
  end

  it("is wrapped", function()
    local long = {}
    for _, path in ipairs { "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", unpack(Page.all()) } do
      for _, place in ipairs(long_lines(path)) do long[#long + 1] = place end
    end
    assert.same({}, long)
  end)
end)
