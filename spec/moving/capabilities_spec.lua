-- Whoever moves in finds what the reference systems can do: each capability has a test that shows it.
local read_file = require "crown.text.read_file"

local TABLE = "spec/moving/capabilities.txt"
local DOCUMENTS = { "Crown", "dgen_registry", "Choria", "advisory lock", "other" }

local function trim(text)
  return (text:gsub("^%s+", ""):gsub("%s+$", ""))
end

-- How a line of a spec names a test, or a suite of them.
local function test_of(line)
  return line:match '^%s*it%(%(?"(.*)$' or line:match "^%s*(testing%.conformance%(.*)$" or line:match "^%s*(conformance%(.*)$"
end

-- Whether a spec has a test whose name begins so, or a played page such a heading.
local function has(text, name, is_page)
  for line in text:gmatch "[^\n]+" do
    local found = is_page and line:match "^#+ (.*)$" or not is_page and test_of(line)
    if found and found:sub(1, #name) == name and (not is_page or found == name) then return true end
  end
  return false
end

-- Whether `make test` runs a spec (mk/test.mk), or plays a page (spec/docs/pages_spec.lua).
local function is_run(path)
  return path:match "^spec/[^/]+/[^/]+_spec%.lua$" ~= nil or path:match "^docs/moving/[^/]+%.md$" ~= nil
end

local function capabilities()
  local found = {}
  for line in assert(read_file(TABLE)):gmatch "[^\n]+" do
    if not line:match "^#" then
      local document, words, file, name = line:match "^([^|]+)|([^|]+)|([^|]+)|([^|]+)$"
      assert.is_truthy(document, "four fields expected: " .. line)
      found[#found + 1] = { document = trim(document), words = trim(words), file = trim(file), name = trim(name) }
    end
  end
  return found
end

describe("what the reference systems can do", function()
  local files, counts, seen = {}, {}, {}

  for _, one in ipairs(capabilities()) do
    local label = ("%s: %s"):format(one.document, one.words)
    counts[one.document] = (counts[one.document] or 0) + 1
    it("is shown by a test: " .. label, function()
      assert.is_nil(seen[label], "twice in the table")
      seen[label] = true
      files[one.file] = files[one.file] or read_file(one.file)
      assert.is_truthy(files[one.file], "there is no " .. one.file)
      assert.is_true(is_run(one.file), "make test does not run " .. one.file)
      assert.is_true(has(files[one.file], one.name, one.file:match "^docs/moving/" ~= nil),
        ("%s has no test '%s'"):format(one.file, one.name))
    end)
  end

  it("stands in the table, of every document", function()
    for _, document in ipairs(DOCUMENTS) do assert.is_true((counts[document] or 0) > 2, document) end
  end)
end)
