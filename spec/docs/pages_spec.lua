-- The pages that teach are played as their readers would.
local Page = require "support.page"

describe("the documentation", function()
  for _, path in ipairs(Page.all()) do
    if path:match "^docs/tutorial" or path:match "^docs/how%-to/" or path:match "^docs/moving/" then
      it("does what it says: " .. path, function() Page.play(path) end)
    end
  end
end)
