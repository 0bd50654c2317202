-- A release: a tarball that is the same whenever it is made, and says one version everywhere.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"

local function make_dist()
  local result = assert(crown.exec({ "make", "-s", "dist" }, { timeout = 300 }))
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

describe("a release", function()
  local first

  setup(function() first = make_dist() end)

  it("is the same tarball whenever it is made of one commit", function()
    crown.sleep(1.1) -- a time stamp would be another one
    assert.equal(first, make_dist())
  end)

  it("holds the documentation as a site that needs no network", function()
    local listed = assert(crown.exec({ "sh", "-c", "tar -tzf build/crown-lua-*.tar.gz" }, { timeout = 60 })).stdout
    for _, path in ipairs { "Makefile", "debian/rules", "site/index.html", "site/install.html", "site/api/index.html" } do
      assert.matches("\ncrown%-lua%-[%d.]+/" .. path:gsub("%p", "%%%0") .. "\n", listed)
    end
    assert.is_nil(listed:find "\ncrown%-lua%-[%d.]+/build/")
  end)

  -- What was made of the sources by other programs is not Debian's to ship: lintian calls it an error.
  it("becomes a source package of the sources alone", function()
    local dir = tempdir()
    local result = assert(crown.exec({ "sh", "-c", [[
      tar -xzf build/crown-lua-*.tar.gz -C "$0" && cd "$0" && dpkg-source --build crown-lua-* >&2 && tar -tf crown-lua_*.tar.xz]], dir },
      { timeout = 60 }))
    assert.equal(0, result.code, result.stderr)
    local packed = {}
    for path in result.stdout:gmatch "crown%-lua%-[^/]*/(%S+)" do
      if not path:find "/$" then packed[#packed + 1] = path end
    end
    local committed = {}
    for path in assert(crown.exec { "git", "ls-tree", "-r", "--name-only", "HEAD" }).stdout:gmatch "%S+" do
      committed[#committed + 1] = path
    end
    table.sort(packed)
    table.sort(committed)
    assert.same(committed, packed)
  end)

  it("says whose the programs and styles in the site are", function()
    local said = assert(crown.exec({ "sh", "-c", "tar -xzOf build/crown-lua-*.tar.gz --wildcards '*/site/assets/COPYRIGHT'" })).stdout
    for _, whose in ipairs { "mkdocs%-material", "LDoc" } do assert.matches(whose, said) end
  end)

  it("bears the version that the program says", function()
    local version = read_file("Makefile"):match "\nVERSION := (%S+)"
    assert.equal("crown-lua " .. version .. "\n", run({ "--version" }).stdout)
    assert.matches("crown%-lua%-" .. version:gsub("%p", "%%%0") .. "%.tar%.gz", first)
    -- where a format wants it written down once more; rocks_spec.lua has the rocks
    assert.equal(version, read_file("debian/changelog"):match "^crown%-lua %(([^)]+)%)")
    assert.equal(version, read_file("tools/kubernetes/reports.yaml"):match "image: crown%-lua:(%S+)")
    local at = read_file("debian/changelog"):match "\n %-%- [^\n]*>  ([^\n]+)\n"
    local day = assert(crown.exec { "date", "--utc", "--date=" .. at, "+%Y-%m-%d" }).stdout:gsub("\n", "")
    assert.equal(("%s - %s"):format("[" .. version .. "]", day), read_file("CHANGELOG.md"):match "\n## (%[%d[^\n]+)\n")
    local tags = assert(crown.exec { "git", "tag", "--points-at", "HEAD" }).stdout
    for tag in tags:gmatch "v%d%S*" do assert.equal("v" .. version, tag) end
  end)

  it("is what the rocks of its version are made of, beside it", function()
    local version, dir = read_file("Makefile"):match "\nVERSION := (%S+)", tempdir()
    local result = assert(crown.exec({ "sh", "-c", [[
      cp build/crown-lua-"$1".tar.gz rockspec/*-"$1"-1.rockspec "$0" && cd "$0" && export HOME="$0" &&
      luarocks --lua-version 5.1 --tree tree build --deps-mode none crown-lua-modules-"$1"-1.rockspec]], dir, version },
      { timeout = 300 }))
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.is_truthy(read_file(dir .. "/tree/share/lua/5.1/crown/oracle/cas.lua"))
  end)
end)
