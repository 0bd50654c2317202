-- The rocks: one builds and installs the program, the other has the modules that an oracle's author writes against.
local crown = require "crown"
local tempdir = require "support.tempdir"
local version = require "support.version"

local function sh(command)
  local result = assert(crown.exec({ "sh", "-c", command }, { timeout = 240 }))
  assert.equal(0, result.code, result.stdout .. result.stderr)
  return result.stdout
end

-- @return the modules of the rock that has no program: names and paths
local function listed_modules()
  local rock = {}
  setfenv(assert(loadfile "rockspec/crown-lua-modules-scm-1.rockspec"), rock)()
  return rock.build.install.lua
end

-- Makes a rock of a copy of the sources, with what is built of them already, into a tree of its own.
local function make_rock(name)
  local dir = tempdir()
  sh(("cp -a Makefile mk lua runtime docs tools rockspec README.md CHANGELOG.md CONTRIBUTING.md LICENSE SECURITY.md %s"):format(dir))
  sh(("cp -a crown-lua %s && mkdir %s/build && cp -a build/runtime build/embedded.* %s/build"):format(dir, dir, dir))
  sh(("cd %s && HOME=%s luarocks --lua-version 5.1 --tree %s/tree make --deps-mode none rockspec/%s.rockspec"):format(dir, dir, dir, name))
  return dir .. "/tree", dir
end

describe("the rocks", function()
  for _, name in ipairs { "crown-lua-scm-1", "crown-lua-modules-scm-1", ("crown-lua-%s-1"):format(version.rock),
    ("crown-lua-modules-%s-1"):format(version.rock) } do
    it(name .. " is what luarocks takes", function()
      sh(("HOME=%s luarocks --lua-version 5.1 lint rockspec/%s.rockspec"):format(tempdir(), name))
    end)
  end

  it("of a version bear the version that the program says", function()
    assert.equal(version.program, require("crown.core").version)
    for _, name in ipairs { "crown-lua", "crown-lua-modules" } do
      local path = ("rockspec/%s-%s-1.rockspec"):format(name, version.rock)
      sh(("grep -qF 'version = \"%s-1\"' %s"):format(version.rock, path))
      sh(("grep -qF 'url = \"crown-lua-%s.tar.gz\"' %s"):format(version.program, path))
      -- and differ from the moving one in that alone
      sh(("test $(diff rockspec/%s-scm-1.rockspec %s | grep -c '^>') = 2"):format(name, path))
    end
  end)

  it("of a version that is not released yet are older than those of the release", function()
    if version.is_released then return end
    local code = ('local v = require "luarocks.core.vers" os.exit(v.compare_versions("%s", "%s") and 0 or 1)'):format(
      version.program:gsub("%-dev$", ""), version.rock)
    sh(("lua5.1 -e '%s'"):format(code))
  end)

  it("install the program into the tree, and nothing outside of it", function()
    local tree = make_rock "crown-lua-scm-1"
    assert.matches("^crown%-lua %d", sh(tree .. "/bin/crown-lua --version"))
    assert.matches("/crown%-lua/scm%-1/etc/crown%-lua\n", sh(("find %s -path '*/etc/crown-lua'"):format(tree)))
  end)

  it("have modules that work on a plain LuaJIT", function()
    local tree, dir = make_rock "crown-lua-modules-scm-1"
    local file = assert(io.open(dir .. "/try.lua", "w"))
    file:write [[
      local core, Session, terms = require "crown.core", require "crown.register.session", require "crown.register.terms"
      local rows, count, store = {}, 0, {}
      function store:look(names)
        local answers = {}
        for _, name in ipairs(names) do
          local row = rows[name]
          answers[name] = { text = row and row.text or false, version = row and row.version or false, memory = "" }
        end
        return answers
      end
      function store:swap(writes)
        local results = {}
        for i, one in ipairs(writes) do
          count = count + 1
          local stands = (rows[one.name] and rows[one.name].version or false) == one.version
          if stands then rows[one.name] = { text = one.text, version = count } end
          results[i] = stands and count
        end
        return results
      end
      local function promise()
        local values
        return { resolve = function(_, ...) values = { ... } end, wait = function() return unpack(values) end }
      end
      local env = { now = core.now, time = function() return os.time() * 1000 end, random = math.random, promise = promise,
        nonce = function() count = count + 1 return tostring(count) end, sleep = coroutine.yield,
        detach = function(fn, ...) coroutine.wrap(fn)(...) end, atomic = function(fn, ...) return fn(...) end,
        wall_offset = function() return 0 end,
        renewals = { new = function() return {} end, count = function() end, forget = function() end } }
      local function member(token)
        local session = Session.new(env, { token = token, node = token, ttl = 1, delay = 0.3, patience = 1, floor = 0 })
        return session, { slot = terms.slot(session, "job"), store = store, trusts = true, tell = print, stand = function() end,
          deadline = function() end }
      end
      local one, first = member "one"
      local two, second = member "two"
      local granted, _, grant = terms.claim(one, first)
      assert(granted == true and grant.epoch > 0)
      local denied, holder = terms.claim(two, second)
      assert(denied == false and holder.node == "one")
      assert(require("crown.text.url").is "postgres://db/app")
      assert(require "crown.testing.oracle"():grant(1):claim() == true)
      print "two candidates, one leader"
    ]]
    file:close()
    assert.equal("two candidates, one leader\n", sh(("cd / && LUA_PATH='%s/share/lua/5.1/?.lua;;' luajit %s/try.lua"):format(tree, dir)))
  end)

  it("of modules install those and nothing else", function()
    local listed, installed = {}, {}
    for name in pairs(listed_modules()) do listed[#listed + 1] = (name:gsub("%.", "/")) .. ".lua" end
    for path in sh(("cd %s/share/lua/5.1 && find . -type f"):format((make_rock "crown-lua-modules-scm-1"))):gmatch "%./(%S+)" do
      installed[#installed + 1] = path
    end
    table.sort(listed)
    table.sort(installed)
    assert.same(listed, installed)
  end)

  it("have all modules that theirs require", function()
    local modules = listed_modules()
    for name, path in pairs(modules) do
      for wanted in io.open(path):read("*a"):gmatch '[^-]require%(?%s*"(crown%.[%w_.]+)"' do
        local is_in_c = wanted:match "^crown%.core%."
        assert.is_true(modules[wanted] ~= nil or is_in_c ~= nil, name .. " requires " .. wanted)
      end
    end
  end)
end)
