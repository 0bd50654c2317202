-- A term owns all that it has started: it ends with it, and the lease is released when the last of it is gone.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local fake_oracle = require "crown.testing.oracle"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local serial = 0

local function is_gone(pid) return (read_file(("/proc/%d/cmdline"):format(pid)) or "") == "" end

describe("a term", function()
  local running

  before_each(function() running = {} end)
  after_each(function()
    for _, election in ipairs(running) do election:stop() end
    for _, election in ipairs(running) do eventually(function() return election.handle:finished() end) end
  end)

  -- An election of its own name on a lease in memory, or on an oracle that the test plays.
  local function elect(handlers, options)
    serial = serial + 1
    options = options or {}
    options.name = "term-spec-" .. serial
    options.oracle = options.oracle or { "memory", path = options.name, ttl = 30 }
    options.handlers, options.retry = handlers, 0.01
    local election = crown.elect(options)
    running[#running + 1] = election
    return election
  end

  -- Several terms, one after the other.
  local function lead(terms, won, options)
    local count = 0
    local election = elect({ won = function(term)
      count = count + 1
      won(term)
    end }, options)
    for i = 1, terms do
      eventually(function() return count == i and election:is_leader() end)
      if i < terms then election:abdicate() end
    end
    return election
  end

  describe("with commands", function()
    for count = 1, 4 do
      it(("ends in order: %d of them"):format(count), function()
        local lost, begun = nil, 0
        local election = elect { won = function()
          local function work()
            begun = begun + 1
            crown.exec({ "sleep", "60" }, { timeout = 60 })
          end
          for _ = 2, count do crown.spawn(work) end
          work()
        end, lost = function(reason) lost = lost or reason end }
        eventually(function() return begun == count end)
        crown.sleep(0.1) -- their keepers have begun
        election:stop()
        eventually(function() return lost == "shutdown" and election.handle:finished() end)
      end)
    end

    it("is not released before those of lost are gone", function()
      local oracle, pid = fake_oracle():grant(1, { ttl = 30, epoch = 1 }), nil
      local path = tempdir() .. "/pid"
      local begun, gone_at_release
      local election = elect({ won = function() begun = true end, lost = function()
        crown.spawn(function() crown.exec({ "sh", "-c", "echo $$ >" .. path .. "; exec sleep 60" }, { timeout = 60 }) end)
        pid = eventually(function() return tonumber((read_file(path) or ""):match "%d+\n") end)
      end }, { oracle = oracle })
      oracle:answer("abdicate", { function() gone_at_release = is_gone(pid) end })
      eventually(function() return begun end) -- there is no lost before
      election:stop()
      eventually(function() return election.handle:finished() end)
      assert.is_true(gone_at_release)
    end)
  end)

  it("takes its watches along", function()
    local path, told = tempdir() .. "/file", 0
    lead(4, function() assert(crown.watch_file(path, function(event) if event == "created" then told = told + 1 end end)) end)
    assert(io.open(path, "w")):close()
    eventually(function() return told > 0 end)
    crown.sleep(0.05) -- the others would be told in the same turn
    assert.equal(1, told)
  end)

  it("ends what its callbacks are doing, too", function()
    local path, over, called, went_on = tempdir() .. "/file", false, false, false
    local election = lead(1, function()
      assert(crown.watch_file(path, function()
        called = true
        while not over do crown.sleep(0.005) end
        went_on = true
      end))
    end)
    assert(io.open(path, "w")):close()
    eventually(function() return called end)
    election:abdicate()
    eventually(function() return not election:is_leader() end)
    over = true
    crown.sleep(0.05) -- it would go on ten times in that
    assert.is_false(went_on)
  end)

  it("takes its listeners along, so that the next one can listen there", function()
    local path, problems = tempdir() .. "/socket", {}
    local port = assert(crown.tcp.listen("127.0.0.1", 0, print))
    local number = port:port()
    port:close()
    lead(3, function()
      os.remove(path)
      local listener, problem = crown.tcp.listen("127.0.0.1", number, function(connection)
        connection:write "here\n"
        connection:close()
      end)
      if not listener then problems[#problems + 1] = problem end
    end)
    assert.same({}, problems)
    local connection = assert(crown.tcp.connect("127.0.0.1", number))
    assert.equal("here", connection:read())
    connection:close()
  end)

  it("takes its subscriptions along", function()
    local terms, of_terms, heard = 0, 0, 0
    local election = lead(4, function()
      terms = terms + 1
      crown.on("leadership.refreshed", function(event) if event.name == "term-spec-" .. serial then of_terms = of_terms + 1 end end)
    end, { oracle = { "memory", path = "subscriptions", ttl = 30, refresh = 0.01 } })
    crown.on("leadership.refreshed", function(event) if event.name == "term-spec-" .. serial then heard = heard + 1 end end)
    election:abdicate()
    eventually(function() return terms == 5 and heard >= 5 end)
    local of_terms_before, before = of_terms, heard
    eventually(function() return heard >= before + 10 end)
    local difference = of_terms - of_terms_before - (heard - before) -- each refresh is heard by the last term alone
    assert.is_true(math.abs(difference) <= 1, difference)
  end)

  it("starts nothing any more once it is over", function()
    local results, over = {}, false
    local election = elect { won = function()
      results.begun = true
      crown.spawn(function()
        while not over do crown.sleep(0.005) end
        results.late = true
      end)
    end, lost = function() over = true end }
    eventually(function() return results.begun end)
    election:stop()
    eventually(function() return over end)
    crown.sleep(0.05)
    assert.is_nil(results.late)
  end)

  it("ends a task that has ended it at its next wait, also one that is told politely", function()
    local went_on, others = false, 0
    local election
    election = elect { won = function()
      local task
      task = crown.spawn(function()
        task:cancel()
        election:abdicate()
        crown.sleep(0.001)
        went_on = true
      end)
      crown.sleep(60)
    end, lost = function() others = others + 1 end }
    eventually(function() return others > 1 end) -- terms
    assert.is_false(went_on)
  end)

  it("ends what lost has left behind", function()
    local beats, returned = 0, false
    local election = elect { lost = function()
      crown.spawn(function()
        while true do
          crown.sleep(0.002)
          beats = beats + 1
        end
      end)
      crown.sleep(0.02)
      returned = true
    end }
    eventually(function() return election:is_leader() end)
    election:abdicate()
    eventually(function() return returned end)
    local before = beats
    assert.is_true(before > 0)
    crown.sleep(0.05)
    assert.is_true(beats <= before + 1)
  end)

  for _, case in ipairs { { "os.execute", function() os.execute "true" end }, { "io.popen", function() io.popen "true" end } } do
    it(("refuses %s, which starts what nobody owns, and names crown.exec"):format(case[1]), function()
      local problem, of_lost
      local election = elect { won = function() problem = select(2, pcall(case[2])) end,
        lost = function() of_lost = select(2, pcall(case[2])) end }
      eventually(function() return problem end)
      assert.matches(case[1]:gsub("%.", "%%.") .. ": what it starts would not end with the term: use crown%.exec", problem)
      election:stop()
      eventually(function() return of_lost end)
      assert.matches("use crown%.exec", of_lost)
    end)
  end

  -- A finalizer runs in the middle of whatever task makes the collector run, and long after the term.
  for what, begin in pairs {
    ["os.execute"] = function(path) return os.execute("touch " .. path) end,
    ["io.popen"] = function(path) return io.popen("touch " .. path) end,
    ["crown.exec"] = function(path) return crown.exec { "touch", path } end,
    ["crown.spawn"] = function(path) return crown.spawn(os.execute, "touch " .. path) end,
    ["crown.on"] = function(path)
      local _, problem = pcall(crown.on, "leadership.lost", function() os.execute("touch " .. path) end)
      return nil, problem:match "^crown.on: (.*)"
    end,
    ["crown.watch_file"] = function(path) return crown.watch_file(path, print) end,
  } do
    it(("lets no finalizer start anything: %s"):format(what), function()
      local path, answers, begun = tempdir() .. "/started", {}, false
      local election = elect { won = function()
        begun = true
        local guard = newproxy(true)
        getmetatable(guard).__gc = function()
          answers.task = { pcall(begin, path) }
          answers.coroutine = { coroutine.wrap(pcall)(begin, path) }
        end
      end }
      eventually(function() return begun end)
      election:stop()
      eventually(function() return election.handle:finished() end)
      eventually(function()
        collectgarbage()
        return answers.coroutine
      end)
      for _, answer in pairs(answers) do
        assert.same({ true, nil, "a finalizer belongs to no task and to no term: it starts nothing" },
          { answer[1], answer[2], answer[3] })
      end
      crown.exec { "true" } -- what was started before it has had its time
      assert.is_nil(read_file(path))
    end)
  end

  it("lets finalizers tidy up when the runtime ends: no term is left", function()
    local path = tempdir() .. "/tidied"
    local app = write_file(path .. ".lua", [[
local guard = newproxy(true)
getmetatable(guard).__gc = function() os.execute("touch " .. arg[1]) end
_G.guard = guard
]])
    assert.equal(0, run({ app, path }).code)
    assert.equal("", read_file(path))
  end)

  it("is left alone with them where the user has stopped the collector", function()
    collectgarbage "stop"
    local code = os.execute "true"
    local result = crown.exec { "true" }
    collectgarbage "restart"
    assert.equal(0, code)
    assert.equal(0, result.code)
  end)

  it("is left alone with them outside of a term", function()
    assert.equal(0, os.execute "true")
    assert.equal(1, os.execute())
    local pipe = io.popen "echo here"
    assert.equal("here\n", pipe:read "*a")
    pipe:close()
  end)
end)
