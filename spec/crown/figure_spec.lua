-- Numbers in what people read: one formatter in Lua, one in C, and no other place that could print an exponent.
local elections = require "crown.core.election"
local figure = require "crown.check.figure"
local read_file = require "crown.text.read_file"

describe("a figure", function()
  for value, text in pairs { [30000] = "30000", [31536000] = "31536000", [10000 / 3] = "3333", [100 / 3] = "33.3", [2.3333] = "2.33",
    [0.25] = "0.25", [0.0123456] = "0.0123", [0.00001] = "0.00001", [1e15] = "1000000000000000", [999.7] = "1000" } do
    it("that is measured is at most three digits, or whole: " .. text, function() assert.equal(text, figure.about(value)) end)
  end

  for value, text in pairs { [1500.25] = "1500.25", [86400] = "86400", [0.5] = "0.5", [1e9] = "1000000000", [2 ^ 53] = "9007199254740992",
    [-30000] = "-30000", [0.00002] = "0.00002" } do
    it("that somebody gave keeps its digits: " .. text, function() assert.equal(text, figure.exact(value)) end)
  end

  it("is the same by the core", function()
    for _, ttl in ipairs { 0.5, 2.5, 15, 33.3, 100 / 3, 999.7, 1000.4, 30000, 31536000 } do
      local text, timing = elections.explain({}, ttl, ttl / 3)
      assert.is_truthy(text:find(("TTL            %s s at the store"):format(figure.about(timing.ttl)), 1, true), text)
      assert.is_truthy(text:find(("refresh        every %s s\n"):format(figure.about(timing.refresh)), 1, true), text)
      assert.is_nil(text:find "%de[+-]")
    end
  end)

  -- What is for programs: keys of tables, JSON, metrics, a log's fields.
  local FOR_PROGRAMS = { ["lua/oracles/etcd.lua"] = true, ["lua/crown/text/json.lua"] = true, ["lua/crown/web/metrics.lua"] = true,
    ["runtime/base/log.c"] = true, ["lua/crown/check/figure.lua"] = true, ["runtime/base/figure.c"] = true }

  it("is what every number in a message goes through", function()
    local found = {}
    local pipe = assert(io.popen "find lua/crown lua/oracles runtime -name '*.lua' -o -name '*.[ch]'")
    for path in pipe:lines() do
      if not FOR_PROGRAMS[path] then
        for line in read_file(path):gmatch "[^\n]+" do
          local rest = line:gsub("%%%.17g", "")
          local prints = rest:find '"[^"]*%%%.?%d*[geE][^%w"][^"]*"' or rest:find '"[^"]*%%%.?%d*[geE]"'
          if prints then found[#found + 1] = path .. ": " .. line end
        end
      end
    end
    pipe:close()
    assert.same({}, found)
  end)
end)
