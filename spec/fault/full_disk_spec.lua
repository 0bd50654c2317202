-- A disk without room: under the Postgres of a registry, and under the directory and the log of a runtime.
local crown = require "crown"
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Registry = require "support.registry"
local run = require "support.run"
local tempdir = require "support.tempdir"

-- Calls fn with a directory on a small disk of its own; pending where nobody may mount one.
local function on_small_disk(size, fn)
  local dir = tempdir()
  local mounted = crown.exec { "mount", "-t", "tmpfs", "-o", "mode=700,size=" .. size, "none", dir }
  if not mounted or mounted.code ~= 0 then return pending "only root can mount a small disk" end
  local fine, problem = pcall(fn, dir)
  crown.exec { "umount", "-l", dir }
  assert(fine, problem)
end

local function fill(dir)
  crown.exec { "dd", "if=/dev/zero", "of=" .. dir .. "/filler", "bs=64k" }
end

describe("a registry whose Postgres has a full disk", function()
  it("keeps each name that was acknowledged, has no two leaders, and goes on when there is room", function()
    on_small_disk("150m", function(dir)
      local server = Postgres.start { dir = dir, config = "autovacuum = off\nwal_recycle = off\nfull_page_writes = off" }
      local cluster = Registry.new { url = server.url, name = "full" }
      local members = { cluster:join_all({ "a", "b", "c" }, { child = true }) }
      local known = {}
      local function register(member, count, timeout)
        local prefix = member.node .. "-" .. #known .. "-"
        local yes = member:ask("fill", { prefix = prefix, from = 1, to = count, timeout = timeout }) or {}
        for _, i in ipairs(yes) do known[#known + 1] = { prefix .. i, member.node } end
        return #yes
      end
      for _, one in ipairs(members) do assert.equal(100, register(one, 100, 20)) end

      fill(dir)
      local switch = assert(crown.postgres.connect(server:url_for "postgres"))
      repeat until not switch:query "SELECT pg_switch_wal(), txid_current()" -- there is no room for another file of the log
      switch:close()
      eventually(function() return register(members[1], 20, 0.2) == 0 end, 20)
      eventually(function()
        for _, one in ipairs(members) do
          if #one.candidate:pids "child" > 0 then return false end
        end
        return true
      end, 20) -- nobody leads without the store

      os.remove(dir .. "/filler")
      server.process:wait(20) -- a Postgres that cannot write its log ends
      server:up()
      cluster:await(members, 30)
      for _, one in ipairs(members) do
        for _, entry in ipairs(known) do
          eventually(function() return select(2, one:ask("whereis", { name = entry[1] })) == entry[2] end, 20)
        end
      end
      assert.equal(10, register(members[3], 10, 20))
      cluster:finish()
      server:destroy()
    end)
  end)
end)

describe("a disk of lock files that is full", function()
  it("has a candidate ask again after its usual pause, and pause say what to do", function()
    on_small_disk("64k", function(dir)
      local oracle = require "crown.oracles.file"
      local state = assert(oracle.init { crown_name = "x", node = "one", token = "t", path = dir, send = function() end,
        emit = function() end })
      assert.is_true(oracle.claim(state))
      oracle.abdicate(state)
      fill(dir)
      local won, problem, code = oracle.claim(state)
      assert.same({ nil, "store" }, { won, code })
      assert.matches("No space left on device: make room", problem)
      local paused = run { "pause", "--oracle", "file:" .. dir, "y" }
      assert.equal(3, paused.code)
      assert.matches("No space left on device: make room on that file system", paused.stderr)
    end)
  end)
end)

describe("a leader whose own directory and log have a full disk", function()
  local PAGE = 4096
  local ENTRY = '{"event":"leadership.changed","time":1,"name":"older","node":"x","leader":"x","epoch":1}\n'

  it("leads on, says once that the history has gaps, and spoils no line of it", function()
    on_small_disk("32k", function(dir)
      local locks = tempdir()
      local env = { CROWN_DIRECTORY = dir }
      local history = assert(io.open(dir .. "/history", "w"))
      history:write((" "):rep(PAGE - 20 - #ENTRY), ENTRY) -- there is room for twenty bytes
      history:close()
      fill(dir)
      local oracle = "file:" .. locks
      local one = Candidate.start { node = "one", log = tempdir() .. "/log", env = env,
        args = { "--oracle", oracle, "run", "x", "sleep", "1000" } }
      local full = Candidate.start { node = "full", log = dir .. "/log", env = env,
        args = { "--oracle", oracle, "run", "y", "sleep", "1000" } }
      local function epoch(name)
        local found = crown.json.decode(run({ "info", "--json", "--oracle", oracle, name }, { env = env }).stdout)
        return found.elections and found.elections[1] and found.elections[1].epoch or 0
      end
      local function abdicate(name, before)
        run({ "abdicate", name }, { env = env })
        eventually(function() return epoch(name) > before end, 20)
      end
      eventually(function() return epoch "x" == 1 and epoch "y" == 1 end, 20)
      abdicate("x", 1)
      abdicate("y", 1)
      eventually(function() return one:output():find("No space left on device", 1, true) end, 20)
      abdicate("x", 2)
      os.remove(dir .. "/filler")
      abdicate("x", 3)
      local function terms()
        return crown.json.decode(run({ "history", "--json", "--oracle", oracle }, { env = env }).stdout).terms
      end
      eventually(function()
        local found = {}
        for _, term in ipairs(terms()) do found[term.name .. (term.epoch or "")] = term.began end
        return found.older1 and found.x4
      end, 20)
      for line in io.lines(dir .. "/history") do -- the one that there was no room for is short
        assert.is_true(pcall(crown.json.decode, line) or #line <= 20, line)
      end
      local _, told = one:output():gsub("No space left on device", "")
      assert.equal(1, told)
      for _, candidate in ipairs { one, full } do
        candidate:signal "TERM"
        assert.equal(0, candidate:wait(20))
      end
    end)
  end)

  it("is asked for its status and its history when it has become read-only", function()
    on_small_disk("1m", function(dir)
      local env = { CROWN_DIRECTORY = dir }
      local one = Candidate.start { node = "one", log = tempdir() .. "/log", env = env,
        args = { "--oracle", "file:" .. tempdir(), "run", "x", "sleep", "1000" } }
      eventually(function() return one:output():find "leading" end, 20)
      eventually(function() return run({ "history" }, { env = env }).stdout:find "one" end, 20)
      assert.equal(0, crown.exec({ "mount", "-o", "remount,ro", dir }).code)
      local status, history = run({ "status" }, { env = env }), run({ "history" }, { env = env })
      crown.exec { "mount", "-o", "remount,rw", dir }
      assert.equal(0, status.code, status.stderr)
      assert.matches("x%s+leading%s+one", status.stdout)
      assert.equal(0, history.code, history.stderr)
      assert.matches("x.*one", history.stdout)
      one:destroy()
    end)
  end)
end)
