--- `crown-lua run` whose keeper or warden is killed or stopped: the command dies with it, which is no end of its own.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local eventually = require "crown.testing.eventually"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

describe("crown-lua run, whose command dies with what keeps it,", function()
  local cluster, store

  before_each(function() store = Redis.start { query = "?ttl=2" } end)
  after_each(function()
    cluster:finish()
    store:destroy()
  end)

  local function lead(...)
    local options = { ... }
    cluster = Cluster.new { args = function(self)
      local words = { "run", "--oracle", store.quick, "--log-level", "info" }
      for _, word in ipairs(options) do words[#words + 1] = word end
      for _, word in ipairs { "spec", "--", self.ticker, self.ticks, "plain" } do words[#words + 1] = word end
      return words
    end }
    return cluster:join "one", ticks.await(cluster.ticks, 0, 10)
  end

  for _, kind in ipairs { "keeper", "warden" } do
    for _, signal in ipairs { "KILL", "STOP" } do
      it(("says so, and campaigns again: SIG%s of the %s"):format(signal, kind), function()
        local one, first = lead()
        one:hurt(signal, kind)
        local second = cluster:succeed(first.epoch, 20)
        assert.equal("one", second.node)
        assert.matches("warn +child%.killed [^\n]*error=\"its " .. kind, one:output())
        assert.matches("no longer leading 'spec': child_killed; campaigning again", one:output())
      end)
    end

    it(("ends with 1 with --once, where the command is begun once: SIGKILL of the %s"):format(kind), function()
      local one = lead "--once"
      one:hurt("KILL", kind)
      assert.equal(1, one:wait(20))
      assert.matches("the command was killed before its end", one:output())
    end)
  end

  it("starts it again in its term with --restart", function()
    local one = lead("--restart", "transient")
    one:hurt("KILL", "warden")
    eventually(function() return select(2, one:output():gsub("child%.started", "")) == 2 end, 20)
    assert.not_matches("leadership%.lost", one:output())
  end)
end)

describe("crown-lua run --follower, whose command dies with what keeps it,", function()
  for _, kind in ipairs { "keeper", "warden" } do
    it("starts it again: SIGKILL of the " .. kind, function()
      local locks, all = tempdir(), {}
      local function start(node)
        all[node] = Candidate.start { node = node, log = tempdir() .. "/log", env = { CROWN_DIRECTORY = tempdir() },
          args = { "run", "--log-level", "info", "--oracle", "file:" .. locks, "--follower", "echo stands by; exec sleep 1000", "spec",
            "--", "sleep", "1000" } }
      end
      finally(function()
        for _, one in pairs(all) do one:destroy() end
      end)
      local function begins() return select(2, all.two:output():gsub("stands by\n", "")) end
      start "one"
      eventually(function() return all.one:output():find("leading 'spec'", 1, true) end, 20)
      start "two"
      eventually(function() return begins() == 1 end, 20)
      all.two:hurt("KILL", kind)
      eventually(function() return begins() == 2 end, 20)
      assert.not_matches("leading 'spec'", all.two:output())
    end)
  end
end)
