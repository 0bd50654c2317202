-- Two builds of one source are the same bytes, wherever, whenever and by whomever they are made. tools/package/test-deb.sh
-- holds whole packages against each other.
local crown = require "crown"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local bytecode = dofile "tools/bytecode.lua"

-- Two places that have nothing in common but the sources.
local PLACES = {
  { name = "a", env = { LC_ALL = "C", TZ = "UTC", HOME = "/", USER = "ann" }, umask = "022", jobs = 1 },
  { name = "a/longer/path", env = { LC_ALL = "C.UTF-8", TZ = "Asia/Tokyo", HOME = "/tmp", USER = "bob", SOURCE_DATE_EPOCH = "1" },
    umask = "077", jobs = 3 },
}

-- Makes the embedded modules and what is compiled of one source file. @return their hashes
local function build(dir, place)
  place.env.CCACHE_DISABLE = "1"
  local result = assert(crown.exec({ "sh", "-c", ([[
    umask %s && mkdir -p '%s' && cp -r Makefile mk lua runtime tools '%s' && cd '%s' &&
    make -s -j%d INSTALL_PACKAGES=true CFLAGS='-O0 -g' build/embedded.c build/runtime/main.o >/dev/null &&
    sha256sum build/embedded.c build/runtime/main.o]]):format(place.umask, dir, dir, dir, place.jobs) },
    { timeout = 120, env = place.env }))
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

describe("a build", function()
  it("is the same bytes in another place, at another time, by another user", function()
    local dir = tempdir()
    assert.equal(build(dir .. "/" .. PLACES[1].name, PLACES[1]), build(dir .. "/" .. PLACES[2].name, PLACES[2]))
  end)
end)

describe("bytecode in order", function()
  local SOURCE = [[
    local up = ...
    local plain = { one = 1, two = 2.5, three = "text", four = true, [5.5] = false, [-7] = "less", [true] = "yes",
      LONG_KEY = 1 }
    local listed = { 1, 2, "three", nil, 5, key = "value", [1e300] = 70000, [-0.5] = 2^40 }
    local function inner() return { deep = { deeper = { x = 1, y = 2, z = 3 } }, sum = up + 5 } end
    return plain, listed, inner(), tostring(42LL), tostring(43ULL), tostring(4i), "constant", 1e100]]
  SOURCE = SOURCE:gsub("LONG_KEY", ("long"):rep(50)) -- its length takes two bytes

  for name, strip in pairs { ["with names and lines"] = false, ["without names and lines"] = true } do
    it(name .. " is the same function", function()
      local whole = assert(loadstring(SOURCE))
      local code = string.dump(whole, strip)
      local ordered = bytecode.in_order(code)
      assert.equal(#code, #ordered)
      assert.same({ whole(1) }, { assert(loadstring(ordered))(1) })
      assert.equal(ordered, bytecode.in_order(ordered))
    end)
  end

  it("depends on no process's seed", function()
    local dir = tempdir()
    write_file(dir .. "/source.lua", SOURCE)
    local function one()
      return assert(crown.exec { "luajit", "-e", ([[
        io.write(dofile("tools/bytecode.lua").in_order(string.dump(assert(loadfile "%s"))))]]):format(dir .. "/source.lua") }).stdout
    end
    local first = one()
    assert.matches("^\27LJ", first)
    for _ = 1, 5 do assert.equal(first, one()) end
  end)

  it("of a format that it does not know stays as it is", function()
    assert.equal("\27LJ\3whatever", bytecode.in_order "\27LJ\3whatever")
  end)
end)
