-- Every code block of the README is run.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function blocks(language)
  local file = assert(io.open "README.md")
  local text = file:read "*a"
  file:close()
  local found = {}
  for block in text:gmatch("\n```" .. language .. "\n(.-)\n```") do found[#found + 1] = block end
  return found
end

describe("the README", function()
  it("names make targets that are there", function()
    local help = assert(crown.exec { "make", "-s", "help" }).stdout
    for _, block in ipairs(blocks "sh") do
      for target in block:gmatch "make (%S+)" do assert.matches("make " .. target .. "%s", help) end
    end
  end)

  it("has an app that leads when pasted", function()
    local dir = tempdir()
    write_file(dir .. "/reports.lua", blocks("lua")[1])
    local check = run { "check", dir .. "/reports.lua" }
    assert.equal(0, check.code, check.stderr)
    local one = Candidate.start { args = { dir .. "/reports.lua" }, node = "one", log = dir .. "/log",
      env = { CROWN_ORACLE = "file:" .. dir .. "/locks" } }
    eventually(function() return one:output():find "working as one in epoch 1" end, 10)
    one:destroy()
  end)

  it("has an oracle that elects when pasted", function()
    local dir = tempdir()
    write_file(dir .. "/my_oracle.lua", blocks("lua")[2])
    write_file(dir .. "/leader", "two\n")
    write_file(dir .. "/app.lua", ([[require("crown").elect { name = "x", oracle = { "my_oracle", file = "%s/leader" },
      handlers = { won = function() print "won" end, lost = function(reason) print(reason) end } }]]):format(dir))
    local two = Candidate.start { args = { dir .. "/app.lua" }, node = "two", log = dir .. "/log" }
    eventually(function() return two:output():find "won" end, 10)
    write_file(dir .. "/leader", "one\n")
    eventually(function() return two:output():find "denied" end, 10)
    two:destroy()
  end)

  it("has a registry that finds a name when pasted", function()
    local server, dir = Postgres.start(), tempdir()
    local app = blocks("lua")[3]:gsub("postgres://db/app", server.url):gsub("10%.0%.0%.5:7400", "127.0.0.1:0")
    write_file(dir .. "/app.lua", app .. [[

local value, node = registry:whereis "mailer"
print("port " .. value.port .. " at " .. node)
]])
    local one = Candidate.start { args = { dir .. "/app.lua" }, node = "one", log = dir .. "/log" }
    eventually(function() return one:output():find "port 25 at one" end, 10)
    one:destroy()
    server:destroy()
  end)

  it("links to pages that are there", function()
    local file = assert(io.open "README.md")
    for path in file:read("*a"):gmatch "%]%(([%w/_%-]+%.md)%)" do
      local page = io.open(path)
      assert.is_not_nil(page, path)
      page:close()
    end
    file:close()
  end)
end)
