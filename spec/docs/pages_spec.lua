-- The pages that teach are played as their readers would. All others are read: their code is what crown-lua takes.
local command = require "crown.command"
local crown = require "crown"
local Mysql = require "support.mysql"
local Page = require "support.page"
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local MYSQL = "docs/oracle-mysql.md" -- whose SQL is another server's

describe("the documentation", function()
  for _, path in ipairs(Page.all()) do
    if path:match "^docs/tutorial" or path:match "^docs/how%-to/" or path:match "^docs/moving/" then
      it("does what it says: " .. path, function() Page.play(path) end)
    end
  end

  -- The pages that are looked things up in, with the README: nothing of them is typed from top to bottom.
  local others = { "README.md" }
  for _, path in ipairs(Page.all()) do
    if not (path:match "^docs/tutorial" or path:match "^docs/how%-to/" or path:match "^docs/moving/") then others[#others + 1] = path end
  end

  -- One that does not end on a line of its own takes the rest of the page in, and nothing of that is tried.
  it("ends each block of code on a line of its own", function()
    local pages = Page.all()
    pages[#pages + 1] = "README.md"
    for _, path in ipairs(pages) do
      local open = false
      for line in read_file(path):gmatch "[^\n]*" do
        local before, language = line:match "^(.-)```(%S*)"
        if before then
          assert.equal("", (before:gsub("^%s+", "")), path .. ": " .. line)
          assert.is_false(open and language ~= "", path .. ": " .. line)
          open = not open
        end
      end
      assert.is_false(open, path)
    end
  end)

  local function blocks(language)
    local found = {}
    for _, path in ipairs(others) do
      for block in read_file(path):gmatch("\n```" .. language .. "\n(.-\n)```") do found[#found + 1] = { path = path, text = block } end
    end
    assert(#found > 0)
    return found
  end

  it("shows Lua that crown-lua takes, in what is only read", function()
    local file = tempdir() .. "/block.lua"
    for _, block in ipairs(blocks "lua") do
      local text = block.text:gsub("%-%-[^\n]*", ""):gsub("…", "nil")
      local is_option = text:match "^%s*oracle = "
      write_file(file, is_option and ('require("crown").elect { name = "x", %s }'):format(text) or text)
      local result = is_option and run({ "check", file }, { env = { DATABASE_URL = "postgres://db/app", REDIS_URL = "redis://db" } })
        or crown.exec { "luajit", "-b", file, "/dev/null" }
      assert.equal(0, result.code, block.path .. ": " .. block.text .. result.stderr)
    end
  end)

  it("shows SQL that Postgres takes, and tables that a candidate finds complete", function()
    local server = Postgres.start()
    finally(function() server:destroy() end)
    server:sql "CREATE ROLE app LOGIN"
    for _, block in ipairs(blocks "sql") do
      if block.path ~= MYSQL then
        local result = assert(crown.exec { "psql", "-qv", "ON_ERROR_STOP=1", server.url, "-c", block.text })
        assert.equal(0, result.code, block.path .. ": " .. result.stderr)
      end
    end
    for page, scheme in pairs { ["oracle-postgres"] = "postgres", ["oracle-postgres-advisory"] = "postgres+advisory" } do
      local grant = read_file("docs/" .. page .. ".md"):gsub("\n", " "):match "(GRANT SELECT, INSERT, UPDATE, DELETE ON [^`]+ TO app)"
      server:sql((assert(grant, page)))
      local url = server:url_for("app"):gsub("^postgres", scheme .. "")
      local result = run { "check", "--store", "--oracle", url, "run", "x", "true" }
      assert.equal(0, result.code, page .. ": " .. result.stdout .. result.stderr)
      assert.matches("lets this candidate take part", result.stdout)
    end
  end)

  it("shows SQL that MariaDB takes, and which is enough for a candidate", function()
    local server = Mysql.start()
    finally(function() server:destroy() end)
    server:sql "DROP USER crown@'%'"
    for _, block in ipairs(blocks "sql") do
      if block.path == MYSQL then server:sql("USE crown; " .. block.text:gsub(";%s*$", "")) end
    end
    local result = run { "check", "--store", "--oracle", server:url_for "crown:secret", "run", "x", "true" }
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.matches("lets this candidate take part", result.stdout)
  end)

  -- What is wrong with words behind "crown-lua"; nothing where they are understood.
  local function misunderstood(text)
    local words = {}
    for word in text:gmatch "%S+" do words[#words + 1] = word end
    local verb = words[1]
    if verb:find "%.lua$" or verb:find "^%-" or verb:find "^[%u%[]" then verb = "app" end
    local fine, module = pcall(command.module, verb)
    if not fine then return "no command " .. verb end
    local known = {}
    for _, list in ipairs { command.common, module.options or {} } do
      for _, option in ipairs(list) do known["--" .. option.name] = true end
    end
    for i = 1, #words do
      if words[i] == "--" then break end
      local option = words[i]:match "^%-%-[%l-]+"
      if option and verb == "check" and words[i - 1] ~= "run" and text:find "run" then known[option] = true end
      if option and not known[option] then return "no option " .. option end
    end
  end

  -- What stands behind "crown-lua" in a page's code: whole lines of a shell, and words in a text.
  local function commands_of(path)
    local found, text = {}, read_file(path)
    for block in text:gmatch "\n```sh\n(.-)\n```" do
      for words in ("\n" .. block:gsub("\\\n", " ")):gmatch "[\n;&|] *crown%-lua ([^\n|&;#]*)" do found[#found + 1] = words end
    end
    for words in text:gsub("\n```.-\n```", ""):gmatch "`crown%-lua%s([^`]*)`" do found[#found + 1] = words end
    return found
  end

  it("names commands and options that there are", function()
    local wrong, count = {}, 0
    for _, path in ipairs { "README.md", unpack(Page.all()) } do
      for _, words in ipairs(commands_of(path)) do
        local problem = misunderstood(words)
        count = count + 1
        if problem then wrong[#wrong + 1] = ("%s: crown-lua %s: %s"):format(path, words, problem) end
      end
    end
    assert.same({}, wrong)
    assert.is_true(count > 100)
  end)
end)
