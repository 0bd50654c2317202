-- tools/package/parts.sh: which parts of package-test a change calls for.
local crown = require "crown"
local tempdir = require "support.tempdir"

local WHOLE = "deb:bookworm deb:trixie image upgrade arm64 musl clang rocks specs\n"

-- What the script says of a history whose last commit changes a file.
local function parts_of(path, env)
  local dir = tempdir()
  local result = assert(crown.exec({ "sh", "-eu", "-c", [[
    mkdir -p "$0/tools/package" && cp tools/package/parts.sh "$0/tools/package" && cd "$0"
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
    git init -q && git add . && git commit -qm first && git tag base
    mkdir -p "$(dirname "$1")" && echo changed >"$1" && git add . && git commit -qm second
    tools/package/parts.sh]], dir, path }, { timeout = 60, env = env or { BASE = "base" } }))
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

describe("the parts of package-test", function()
  it("are one package where nothing changed that packages are made of", function()
    assert.equal("install:bookworm\n", parts_of "runtime/loop/loop.c")
    assert.equal("install:bookworm\n", parts_of "lua/crown/command/run.lua")
  end)

  it("are two versions in elections, too, where a store may be written in another way", function()
    for _, path in ipairs { "lua/stores/redis.lua", "lua/oracles/etcd.lua", "lua/crown/registry/store.lua" } do
      assert.equal("install:bookworm upgrade\n", parts_of(path), path)
    end
  end)

  it("are all where packages are made in another way", function()
    for _, path in ipairs { "debian/rules", "rockspec/a", "mk/test.mk", "Makefile", "tools/package/a.sh" } do
      assert.equal(WHOLE, parts_of(path), path)
    end
  end)

  it("are all by night, and where it is not known what has changed", function()
    assert.equal(WHOLE, parts_of("lua/a", { BASE = "base", NIGHTLY = "1" }))
    assert.equal(WHOLE, parts_of("lua/a", { BASE = "nowhere" }))
  end)
end)
