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

  it("has a demonstration that shows a hand-over and five failures, and never two at once", function()
    local result = run({ "tools/demo.lua" }, { timeout = 60 })
    assert.equal(0, result.code, result.stderr)
    local heading, faults = result.stdout:match "\n(fault [^\n]*)\n(.*)"
    assert.matches("two at once$", heading)
    assert.equal(6, select(2, faults:gsub("%d+ ms%s+0 ms\n", "")), result.stdout)
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

  describe("has an oracle", function()
    local server, dir
    setup(function()
      server, dir = Postgres.start(), tempdir()
      local owner = assert(crown.postgres.connect(server.url))
      assert(owner:query(blocks("lua")[2]:match "%-%- (CREATE TABLE [^\n]+)"))
      owner:close()
      write_file(dir .. "/my_oracle.lua", blocks("lua")[2])
    end)
    teardown(function() server:destroy() end)

    it("that keeps the contract when pasted", function()
      write_file(dir .. "/conformance_spec.lua", ([[
        package.path = "%s/?.lua;" .. package.path
        require("crown.testing").conformance("my_oracle", function()
          return { module = require "my_oracle", options = { url = "%s", ttl = 1, amnesia_wait = 0 }, expires = true }
        end)]]):format(dir, server.url))
      local result = run({ "/usr/bin/busted", "--ignore-lua", dir .. "/conformance_spec.lua" }, { timeout = 120 })
      assert.equal(0, result.code, result.stdout .. result.stderr)
      assert.matches("[1-9]%d* successes", result.stdout)
    end)

    it("that elects one of two", function()
      write_file(dir .. "/app.lua", ([[require("crown").elect { name = "x", oracle = { "my_oracle", url = "%s", ttl = 2, amnesia_wait = 0 },
        handlers = { won = function(term) print("won in epoch " .. term.epoch) end, lost = print } }]]):format(server.url))
      local one = Candidate.start { args = { dir .. "/app.lua" }, node = "one", log = dir .. "/one" }
      finally(function() one:destroy() end)
      eventually(function() return one:output():find "won in epoch" end, 30)
      local two = Candidate.start { args = { dir .. "/app.lua" }, node = "two", log = dir .. "/two" }
      two:follows(30)
      one:signal "TERM"
      eventually(function() return two:output():find "won in epoch" end, 30)
      local first, second = one:output():match "won in epoch (%d+)", two:output():match "won in epoch (%d+)"
      two:destroy()
      assert.is_true(tonumber(second) > tonumber(first))
    end)
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
