-- A user of Redis that may not listen: candidates lead all the same, and say which right is missing.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"

local NEEDED = "~crown:* &crown:* +eval +evalsha +script|load +hset +hmget +hget +get +set +del +pttl +publish +subscribe "
  .. "+time +info +role +wait +select +scan"

describe("a Redis user that may not subscribe", function()
  local server, directory, candidate

  before_each(function()
    server, directory = Redis.start(), tempdir()
  end)

  after_each(function()
    candidate:destroy()
    server:destroy()
  end)

  local function grant(...) assert.equal("OK", server:call("ACL", "SETUSER", "user", ...)) end

  local function begin(lacking)
    grant("reset", "on", "nopass")
    for right in NEEDED:gmatch "%S+" do
      if right ~= lacking then grant(right) end
    end
    candidate = Candidate.start { args = { "run", "x", "sleep", "600" }, node = "one", log = directory .. "/log", env = {
      CROWN_ORACLE = ("redis://user:x@127.0.0.1:%d?ttl=4&timeout=0.5&trust_empty=true"):format(server.port),
      CROWN_DIRECTORY = directory } }
  end

  local function log() return read_file(directory .. "/log") or "" end

  local function channels()
    local result = run({ "status", "--stores", "--json" }, { env = { CROWN_DIRECTORY = directory } })
    for _, runtime in ipairs(crown.json.decode(result.stdout).runtimes) do
      for _, store in ipairs(runtime.stores or {}) do
        if store.store == "redis channels" then return store end
      end
    end
  end

  for right, words in pairs { ["+subscribe"] = "run the 'subscribe' command", ["&crown:*"] = "the right &crown:[^ ]* is missing" } do
    it("says once that " .. right .. " is missing, keeps its connection, and listens when it is granted", function()
      begin(right)
      eventually(function() return log():find('store="redis channels"', 1, true) end)
      assert.matches('oracle.error .*error="NOPERM [^"]*' .. words .. '[^"]*check %-%-store[^\n]*store="redis channels"', log())
      local shown
      eventually(function() shown = channels() return shown and shown.error end)
      assert.matches(words, shown.error)
      assert.equal(0, shown.reconnects)
      assert.is_nil(shown.error:find("unexpected", 1, true))
      grant(right)
      eventually(function() shown = channels() return shown and not shown.error end, 30)
      assert.equal(0, shown.reconnects)
      assert.equal(1, select(2, log():gsub('store="redis channels"', "")))
    end)
  end

  it("keeps its connection where it may do just what the page says, while nothing happens", function()
    begin()
    local shown
    eventually(function() shown = channels() return shown and shown.state == "proven" and shown.since > 2 end, 20)
    assert.equal(0, shown.reconnects)
    assert.is_true(shown.answered < 2) -- a ping that it may not send is answered, too
  end)
end)
