-- Who writes the word of the system that he comes from is told ours.
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local function says(words)
  local result = run(words)
  assert.equal(2, result.code)
  return result.stderr
end

local function app(text)
  local path = tempdir() .. "/app.lua"
  write_file(path, ("require('crown').elect { name = 'x', %s }\n"):format(text))
  return says { "check", path }
end

describe("a word of another system's", function()
  for given, ours in pairs {
    ["child_spec = { 'true' }"] = "did you mean 'child'?",
    ["follower_child_spec = { 'true' }"] = "did you mean 'follower_child'?",
    ["on_won = print"] = "handlers = { won = … }",
    ["handlers = { on_won = print }"] = "did you mean 'won'?",
    ["handlers = { OnLost = print }"] = "did you mean 'lost'?",
    ["oracle = { 'postgres_lease', repo = 'MyApp.Repo' }"] = "here it is url = 'postgres://…'",
    ["oracle = { 'http_lease', base_url = 'http://127.0.0.1' }"] = "did you mean 'url'?",
    ["call_timeout = 5000"] = "5000: seconds, not milliseconds?",
    ["oracle = { 'postgres_lease', timeout = 5000 }"] = "5000: seconds, not milliseconds?",
  } do
    it("is answered by ours: " .. given, function() assert.is_truthy(app(given):find(ours, 1, true), app(given)) end)
  end

  it("is answered by ours on the command line", function()
    assert.matches("nats://HOST/BUCKET", says { "info", "--bucket", "CHORIA_LEADER_ELECTION" })
    assert.matches("crown%-lua run", says { "election", "run", "x", "true" })
  end)

  it("says nothing of milliseconds where it is no time", function()
    assert.is_nil(app("child = { command = { 'true' }, restart = { max = 5000 } }"):find("milliseconds", 1, true))
  end)
end)
