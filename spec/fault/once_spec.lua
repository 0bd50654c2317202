--- `crown-lua run --once` whose runtime is killed or stopped: the command is begun once, however that ends.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require "crown.testing.eventually"
local tempdir = require "support.tempdir"

describe("crown-lua run --once, whose runtime ends under its command,", function()
  local dir, store, one

  before_each(function() dir = tempdir() end)
  after_each(function()
    one:destroy()
    if store then store:destroy() end
    store = nil
  end)

  local urls = {
    file = function() return "file:" .. dir .. "/locks" end,
    etcd = function()
      store = Etcd.start()
      return store.url .. "/once?ttl=4&trust_empty=true"
    end,
  }

  local function start(url, ...)
    local words = { "run", "--oracle", url, "--once", "--quiet" }
    for _, word in ipairs { ... } do words[#words + 1] = word end
    for _, word in ipairs { "spec", "--", "sh", "-c", "echo begun >>" .. dir .. "/begun; sleep 600" } do words[#words + 1] = word end
    return Candidate.start { args = words, node = "one", log = dir .. "/log" }
  end

  local function times_begun()
    local file = io.open(dir .. "/begun")
    if not file then return 0 end
    local text = file:read "*a"
    file:close()
    return select(2, text:gsub("begun", ""))
  end

  -- Its exit code; or at once, that the command runs again.
  local function ending()
    return eventually(function()
      if times_begun() > 1 then return "begun again" end
      local ended, code = pcall(one.wait, one, 0)
      return ended and code
    end, 20)
  end

  for kind, url in pairs(urls) do
    for _, wait in ipairs { "", "--wait=30" } do
      for _, signal in ipairs { "KILL", "STOP" } do
        it(("says so and ends with 1: SIG%s, %s %s"):format(signal, kind, wait), function()
          one = start(url(), unpack { wait ~= "" and wait or nil })
          eventually(function() return times_begun() == 1 end, 20)
          one:hurt(signal, "runtime")
          assert.equal(1, ending(), one:output())
          assert.equal(1, times_begun())
          assert.matches("was not run to its end[^\n]*is not started again", one:output())
        end)
      end
    end
  end

  it("ends with 1 where it is told to end before the command has begun", function()
    local leader = start(urls.file())
    finally(function() leader:destroy() end)
    eventually(function() return times_begun() == 1 end, 20)
    one = start(urls.file(), "--wait", "60")
    one:follows(20)
    one:signal "TERM"
    assert.equal(1, one:wait(20), one:output())
    assert.equal(1, times_begun())
  end)

  it("campaigns on where the command had not begun", function()
    local url = urls.file()
    local other = Candidate.start { node = "other", log = dir .. "/other.log",
      args = { "run", "--oracle", url, "spec", "--", "sh", "-c", "echo leads; sleep 600" } }
    finally(function() other:destroy() end)
    eventually(function() return other:output():find "leads" end, 20)
    one = start(url, "--wait=600", "--log-level=info")
    eventually(function() return one:output():find "leadership%.rejected" end, 20)
    one:hurt("KILL", "runtime")
    eventually(function() return one:output():find "runtime%.restarted" end, 20)
    other:signal "TERM"
    eventually(function() return times_begun() == 1 end, 20)
  end)
end)
