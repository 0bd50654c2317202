-- Which Lua modules are public: docs/compatibility.md says so, each module says so itself, and where it stands says so.
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"

-- Those that docs/compatibility.md names, and what `crown.testing` is made of.
local function is_promised(name)
  local row = read_file("docs/compatibility.md"):match "\n| Lua API |([^\n]*)"
  return row:find("`" .. name .. "`", 1, true) or name:match "^crown%.testing%."
end

local function marks()
  local found = {}
  local files = assert(io.popen "find lua/crown -name '*.lua' | sort")
  for path in files:lines() do
    local mark, name = read_file(path):match "\n%-%- @(%l+) (crown[%w_.]*)\n"
    found[#found + 1] = { path = path, mark = mark, name = name }
  end
  files:close()
  assert(#found > 100)
  return found
end

describe("a module of lua/crown", function()
  it("is marked as public where docs/compatibility.md names it, else as internal", function()
    local wrong = {}
    for _, one in ipairs(marks()) do
      local due = one.name and (is_promised(one.name) and "module" or "internal")
      -- A class is what a public function returns.
      if one.mark ~= due and one.mark ~= "classmod" then wrong[#wrong + 1] = one.path end
    end
    assert.same({}, wrong)
  end)

  it("is public only if it is named so in docs/structure.md, too", function()
    local row = read_file("docs/structure.md"):match "\n| `lua/crown` |([^\n]*)"
    local missing = {}
    for _, one in ipairs(marks()) do
      local short = one.path:match "^lua/crown/(.*)%.lua$":gsub("/init$", "")
      if one.mark == "module" and not short:match "^testing/" and not row:find("`" .. short .. "`", 1, true) then
        missing[#missing + 1] = short
      end
    end
    assert.same({}, missing)
  end)
end)

describe("LDoc", function()
  it("shows every module of lua/crown by its name, the public ones first", function()
    local dir = tempdir()
    assert.equal(0, os.execute("ldoc --quiet -c lua/config.ld -d " .. dir .. "/api -p crown-lua lua/crown > /dev/null 2>&1"))
    local index, at = read_file(dir .. "/api/index.html"), {}
    for _, one in ipairs(marks()) do
      local place = one.name and index:find(">" .. one.name .. "<", 1, true)
      at[one.mark] = math.max(at[one.mark] or 0, place or error(one.path .. " is not shown by its name"))
    end
    assert.is_true(at.module < at.internal)
  end)
end)
