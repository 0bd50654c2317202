-- --log-filter: which messages are written, by the beginnings of their names.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- Each message at each level, and an election's whole life.
local APP = [[
local crown = require "crown"
for _, name in ipairs { "work", "work.part", "work.part.deep", "other" } do
  for _, level in ipairs { "debug", "info", "warn", "error" } do crown.log[level](name, { at = level }) end
end
local election = crown.elect { name = "x", oracle = "memory:" }
crown.on("leadership.claimed", function() election:stop() end)
]]

describe("--log-filter", function()
  local app

  setup(function() app = write_file(tempdir() .. "/app.lua", APP) end)

  -- What was written: the messages of the app as `name level`, and the names of the election's events.
  local function written(words, env)
    local all = {}
    for _, word in ipairs(words) do all[#all + 1] = word end
    all[#all + 1] = app
    local result = run(all, { env = env or {} })
    assert.equal(0, result.code, result.stderr)
    local logs, events = {}, {}
    for line in result.stderr:gmatch "[^\n]+" do
      local level, name, rest = line:match "^%S+ (%l+) +(%S+)(.*)$"
      if rest and rest:find " at=" then
        assert.equal(level, rest:match " at=(%l+)")
        logs[#logs + 1] = name .. " " .. level
      elseif name then
        events[name] = (events[name] or 0) + 1
      end
    end
    return table.concat(logs, "; "), events
  end

  for title, case in pairs {
    ["names nothing: the level counts"] = { { "--log-level", "error" }, "work error; work.part error; work.part.deep error; other error" },
    ["names a beginning: others go by the level"] = { { "--log-level", "error", "--log-filter", "work=warn" },
      "work warn; work error; work.part warn; work.part error; work.part.deep warn; work.part.deep error; other error" },
    ["names several: the longest beginning counts, wherever it stands"] = { { "--log-level", "error", "--log-filter",
      "work.part=info,work=off,work.part.deep=error" },
      "work.part info; work.part warn; work.part error; work.part.deep error; other error" },
    ["names one twice: the last one counts"] = { { "--log-level", "error", "--log-filter", "work=debug,other=off,work=off" }, "" },
    ["names all of one's own: off is above error"] = { { "--log-filter", "work=off,other=off" }, "" },
    ["is higher than the level"] = { { "--log-level", "debug", "--log-filter", "work=error,other=error" },
      "work error; work.part error; work.part.deep error; other error" },
  } do
    it(title, function()
      local logs = written(case[1])
      assert.equal(case[2], logs)
    end)
  end

  it("shows events that the level leaves out, and leaves out those that it shows", function()
    local _, usual = written {}
    assert.same({ 1, nil }, { usual["leadership.claimed"], usual["process.initialized"] })
    local _, filtered = written { "--log-filter", "process=debug,leadership.claimed=warn" }
    assert.same({ nil, 1, 1, 1 }, { filtered["leadership.claimed"], filtered["process.initialized"], filtered["process.terminating"],
      filtered["leadership.lost"] })
  end)

  it("may stand in the environment, and counts less there than on the command line", function()
    local env = { CROWN_LOG_FILTER = "work=off,other=off" }
    assert.equal("", (written({}, env)))
    assert.equal("other error", (written({ "--log-filter", "work=off,other=error" }, env)))
  end)

  it("is refused where it is none", function()
    for _, wrong in ipairs { "work", "=debug", "work=", "work=loud", "work=debug,", "work=debug,,x=info", ("x"):rep(64) .. "=info",
      ("a=info,"):rep(16) .. "b=info" } do
      local result = run { "--log-filter", wrong, app }
      if wrong == "work=debug," then
        assert.equal(0, result.code) -- a comma at the end names nothing more
      else
        assert.equal(2, result.code, wrong)
        assert.equal(1, select(2, result.stderr:gsub("\n", "")), result.stderr)
        assert.matches("log filter: a list like leadership=debug,child=error expected", result.stderr)
      end
    end
  end)
end)
