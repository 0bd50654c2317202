-- The workers that the pages show in other languages run under crown-lua, those of Django and Rails in applications of their own.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local PAGE, GO_PAGE = "docs/how-to/rails-django-node.md", "docs/how-to/kubernetes.md"

local function where_there_is(program)
  return crown.exec({ "sh", "-c", "command -v " .. program }).code == 0 and it or pending
end

local function block(page, language, wanted)
  for text in read_file(page):gmatch("\n```" .. language .. "\n(.-)\n```") do
    if text:find(wanted, 1, true) then return text .. "\n" end
  end
  error(("%s has no block of %s with %s"):format(page, language, wanted))
end

describe("a worker of the pages", function()
  local one

  after_each(function()
    if one then one:destroy() end
    one = nil
  end)

  local function works_and_ends(words)
    one = Candidate.start { args = { "run", "--restart", "permanent", "scheduler", "--", unpack(words) }, node = "one",
      log = tempdir() .. "/log", env = { CROWN_ORACLE = "file:" .. tempdir() } }
    eventually(function() return one:output():find "one piece of work in epoch 1\n" end, 20)
    one:signal "TERM"
    assert.equal(0, one:wait(10))
    assert.matches("ended in order", one:output())
  end

  it("in Python works while it leads, and ends in order", function()
    works_and_ends { "python3", write_file(tempdir() .. "/worker.py", block(PAGE, "python", "def work()")) }
  end)

  it("in Node works while it leads, and ends in order", function()
    works_and_ends { "node", write_file(tempdir() .. "/worker.js", block(PAGE, "js", "ending")) }
  end)

  -- An application of that name in spec/support, with what the page puts into it.
  local function application(name, files)
    local directory = tempdir() .. "/" .. name
    assert.equal(0, crown.exec({ "cp", "-r", "spec/support/" .. name, directory }).code)
    for path, text in pairs(files) do
      assert.equal(0, crown.exec({ "mkdir", "-p", (directory .. "/" .. path):match "^(.*)/" }).code)
      write_file(directory .. "/" .. path, text)
    end
    return directory
  end

  it("in Rails works while it leads, and ends in order", function()
    local directory = application("rails", { ["lib/scheduler.rb"] = block(PAGE, "ruby", "Scheduler") })
    works_and_ends { directory .. "/bin/rails", "runner", "Scheduler.run" }
  end)

  it("in Django works while it leads, and ends in order", function()
    local directory = application("django", { ["app/__init__.py"] = "", ["app/worker.py"] = block(PAGE, "python", "def work()"),
      ["app/management/commands/run_scheduler.py"] = block(PAGE, "python", "BaseCommand") })
    works_and_ends { "/usr/bin/python3", directory .. "/manage.py", "run_scheduler" }
  end)

  where_there_is "gofmt" ("in Go is what gofmt takes, and writes", function()
    local file = write_file(tempdir() .. "/main.go", block(GO_PAGE, "go", "NotifyContext"))
    local result = crown.exec { "gofmt", "-d", "-e", file }
    assert.same({ 0, "" }, { result.code, result.stdout }, result.stderr)
  end)
end)
