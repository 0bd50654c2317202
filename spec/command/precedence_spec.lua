-- Who has the last word: the app, then the command line, then the environment, then the default.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function exists(path) return os.rename(path, path) == true end

describe("what is said twice", function()
  local app = write_file(tempdir() .. "/app.lua", [[
    local crown = require "crown"
    crown.log.info "told"
    print(crown.node)
  ]])

  -- An option, its variable, two values, and what one sees of a value.
  local CASES = {
    { "--oracle", "CROWN_ORACLE", "file:" .. tempdir(), "file:" .. tempdir(), { "info" }, function(result)
      return result.stdout:match "Oracle +(%S+)"
    end },
    { "--node", "CROWN_NODE", "ann", "ben", { app }, function(result) return result.stdout:match "^[^\n]*" end },
    { "--log-format", "CROWN_LOG_FORMAT", "json", "logfmt", { "--log-level", "info", app }, function(result)
      return result.stderr:match "^{" and "json" or result.stderr:match "^time=" and "logfmt" or "text"
    end },
    { "--log-level", "CROWN_LOG_LEVEL", "info", "error", { app }, function(result)
      return result.stderr:find "told" and "info" or "error"
    end },
  }

  for _, case in ipairs(CASES) do
    local option, variable, one, two, words, seen = unpack(case)

    local function shown(before, environment, after)
      local args = {}
      for _, list in ipairs { before, words, after or {} } do
        for _, word in ipairs(list) do args[#args + 1] = word end
      end
      local result = run(args, { env = { [variable] = environment } })
      assert.equal(0, result.code, result.stderr)
      return seen(result)
    end

    describe(option, function()
      it("goes by the environment where the command line is silent", function()
        assert.same({ one, two }, { shown({}, one), shown({}, two) })
      end)

      it("goes by the command line before the environment, also when it says what is the default", function()
        assert.same({ one, two }, { shown({ option, one }, two), shown({ option .. "=" .. two }, one) })
      end)

      it("counts an empty variable as none" .. (variable == "CROWN_ORACLE" and " where the command line speaks" or ""), function()
        assert.equal(one, shown({ option, one }, ""))
        if variable ~= "CROWN_ORACLE" then assert.is_string(shown({}, "")) end
      end)
    end)
  end

  it("refuses an empty CROWN_ORACLE, with which each host would elect for itself, and leads nowhere", function()
    local dir = tempdir()
    for _, words in ipairs { { "run", "--once", "x", "true" }, { "check", "run", "x", "true" }, { "info" }, { app },
      { "evict", "--force", "x" }, { "pause", "x" }, { "history" }, { "file", dir .. "/file", "x" } } do
      local result = run(words, { env = { CROWN_ORACLE = "", CROWN_DIRECTORY = dir } })
      assert.equal(2, result.code, words[1] .. ": " .. result.stdout .. result.stderr)
      assert.matches("^crown%-lua: CROWN_ORACLE is set, but empty: each host would elect for itself", result.stderr)
    end
    assert.is_false(exists(dir .. "/x.lock"))
    assert.equal(1, run({ "status" }, { env = { CROWN_ORACLE = "", CROWN_DIRECTORY = dir } }).code) -- asks no store
    assert.equal(0, run({ "help" }, { env = { CROWN_ORACLE = "" } }).code)
  end)

  it("goes by what stands last on the command line, before the verb or behind it", function()
    local one, two = "file:" .. tempdir(), "file:" .. tempdir()
    for _, args in ipairs { { "--oracle", one, "info", "--oracle", two }, { "info", "--oracle", one, "--oracle", two } } do
      assert.equal(two, run(args).stdout:match "Oracle +(%S+)")
    end
  end)

  it("goes by the app's own oracle, whatever stands around it", function()
    local dirs = { own = tempdir(), line = tempdir(), environment = tempdir() }
    local path = write_file(tempdir() .. "/app.lua", ([[
      local e = require("crown").elect { name = "x", oracle = "file:%s" }
      require("crown.testing").eventually(function() return e:is_leader() end)
      e:stop()
    ]]):format(dirs.own))
    assert.equal(0, run({ "--oracle", "file:" .. dirs.line, path }, { env = { CROWN_ORACLE = "file:" .. dirs.environment } }).code)
    local found = {}
    for who, dir in pairs(dirs) do found[who] = exists(dir .. "/x.lock") end
    assert.same({ own = true, line = false, environment = false }, found)
  end)
end)
