-- The workers that the pages show in other languages: each is run under crown-lua where its interpreter is there, and otherwise not.
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

  where_there_is "node" ("in Node works while it leads, and ends in order", function()
    works_and_ends { "node", write_file(tempdir() .. "/worker.js", block(PAGE, "js", "ending")) }
  end)

  where_there_is "ruby" ("in Ruby works while it leads, and ends in order", function()
    works_and_ends { "ruby", write_file(tempdir() .. "/worker.rb", block(PAGE, "ruby", "Scheduler") .. "Scheduler.run\n") }
  end)

  it("in Django is what Python takes", function()
    local file = write_file(tempdir() .. "/run_scheduler.py", block(PAGE, "python", "BaseCommand"))
    local result = crown.exec { "python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", file }
    assert.equal(0, result.code, result.stderr)
  end)

  where_there_is "gofmt" ("in Go is what gofmt takes, and writes", function()
    local file = write_file(tempdir() .. "/main.go", block(GO_PAGE, "go", "NotifyContext"))
    local result = crown.exec { "gofmt", "-d", "-e", file }
    assert.same({ 0, "" }, { result.code, result.stdout }, result.stderr)
  end)
end)
