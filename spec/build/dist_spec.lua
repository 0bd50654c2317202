-- A release: a tarball that is the same whenever it is made, and says one version everywhere.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local version = require "support.version"

local TARBALL = ("build/crown-lua-%s.tar.gz"):format(version.program) -- those of other versions may lie beside it

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
    local listed = assert(crown.exec({ "tar", "-tzf", TARBALL }, { timeout = 60 })).stdout
    for _, path in ipairs { "Makefile", "debian/rules", "site/index.html", "site/install.html", "site/api/index.html" } do
      assert.matches("\ncrown%-lua%-[^/\n]+/" .. path:gsub("%p", "%%%0") .. "\n", listed)
    end
    assert.is_nil(listed:find "\ncrown%-lua%-[^/\n]+/build/")
  end)

  -- What was made of the sources by other programs is not Debian's to ship: lintian calls it an error.
  it("becomes a source package of the sources alone", function()
    local dir = tempdir()
    local result = assert(crown.exec({ "sh", "-c", [[
      tar -xzf "$1" -C "$0" && cd "$0" && dpkg-source --build crown-lua-* >&2 && tar -tf crown-lua_*.tar.xz]], dir, TARBALL },
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
    local said = assert(crown.exec({ "tar", "-xzOf", TARBALL, "--wildcards", "*/site/assets/COPYRIGHT" })).stdout
    for _, whose in ipairs { "mkdocs%-material", "LDoc" } do assert.matches(whose, said) end
  end)

  it("bears the version that the program says", function()
    assert.equal("crown-lua " .. version.program .. "\n", run({ "--version" }).stdout)
    assert.is_truthy(first:find(TARBALL, 1, true))
    -- where a format wants it written down once more; rocks_spec.lua has the rocks
    assert.equal(version.debian, read_file("debian/changelog"):match "^crown%-lua %(([^)]+)%)")
    assert.equal(version.program, read_file("tools/kubernetes/reports.yaml"):match "image: crown%-lua:(%S+)")
    local tags = assert(crown.exec { "git", "tag", "--points-at", "HEAD" }).stdout
    for tag in tags:gmatch "v%d%S*" do assert.equal("v" .. version.program, tag) end
  end)

  it("is older than the release that it becomes, and newer than the one before, for Debian", function()
    local said = read_file "debian/changelog"
    local one, before = said:match "^crown%-lua %(([^)]+)%).-\ncrown%-lua %(([^)]+)%)"
    assert.equal(0, crown.exec({ "dpkg", "--compare-versions", one, "gt", before }).code)
    if version.is_released then return end
    assert.equal(0, crown.exec({ "dpkg", "--compare-versions", one, "lt", (version.program:gsub("%-dev$", "")) }).code)
    assert.equal("UNRELEASED", said:match "^[^\n]*%) (%S+);")
  end)

  it("has the newest release under the same day in both changelogs", function()
    local newest, at = (read_file("debian/changelog") .. "\n"):match "crown%-lua %(([%d.]+)%).-\n %-%- [^\n]*>  ([^\n]+)\n"
    local day = assert(crown.exec { "date", "--utc", "--date=" .. at, "+%Y-%m-%d" }).stdout:gsub("\n", "")
    assert.equal(("[%s] - %s"):format(newest, day), read_file("CHANGELOG.md"):match "\n## (%[%d[^\n]+)\n")
    assert.equal(version.is_released, newest == version.program)
  end)

  it("is what the rocks of its version are made of, beside it", function()
    local dir = tempdir()
    local result = assert(crown.exec({ "sh", "-c", [[
      cp "$2" rockspec/*-"$1"-1.rockspec "$0" && cd "$0" && export HOME="$0" &&
      luarocks --lua-version 5.1 --tree tree build --deps-mode none crown-lua-modules-"$1"-1.rockspec]], dir, version.rock, TARBALL },
      { timeout = 300 }))
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.is_truthy(read_file(dir .. "/tree/share/lua/5.1/crown/oracle/cas.lua"))
  end)
end)
