-- crown.watch_file: all watches share one instance of inotify.
local core = require "crown.core"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local judge = require "support.judge"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("crown.watch_file", function()
  local dir, told, watches

  before_each(function() dir, told, watches = tempdir(), {}, {} end)
  after_each(function()
    for _, watch in pairs(watches) do watch:cancel() end
  end)

  local function instances()
    return tonumber(crown.exec({ "sh", "-c", ("ls -l /proc/%d/fd | grep -c inotify"):format(core.pid) }).stdout)
  end

  local at_first -- no test before may have left one
  setup(function() at_first = instances() end)

  local function watch(key, path)
    told[key] = {}
    watches[key] = assert(crown.watch_file(path, function(event) table.insert(told[key], event) end))
  end

  local function hears(key, event)
    eventually(function()
      for _, one in ipairs(told[key]) do
        if one == event then return true end
      end
    end, 20)
  end

  it("tells each watch of its own file only, in whatever directory", function()
    local other = tempdir()
    watch("a", dir .. "/a")
    watch("b", dir .. "/b")
    watch("same", other .. "/a")
    write_file(dir .. "/a", "1")
    hears("a", "closed")
    write_file(dir .. "/b", "1")
    hears("b", "closed")
    assert.same({}, told.same)
    write_file(other .. "/a", "1")
    hears("same", "closed")
  end)

  it("goes on with the others when one is cancelled, and frees the instance with the last", function()
    watch("one", dir .. "/a")
    watch("two", dir .. "/a")
    assert.equal(at_first + 1, instances())
    watches.one:cancel()
    write_file(dir .. "/a", "1")
    hears("two", "closed")
    assert.same({}, told.one)
    watches.two:cancel()
    eventually(function() return instances() == at_first end)
  end)

  -- The kernel takes some 10 ms for each, and on a busy host more.
  it("frees instances without holding the loop", function()
    local held, app = dir .. "/held", write_file(dir .. "/app.lua", [[
local crown = require "crown"
crown.sleep(0.01) -- the loop runs
for _ = 1, 40 do assert(crown.watch_file(arg[1], print)):cancel() end
crown.sleep(0.01) -- its next turn
print "done"
]])
    assert.equal("done\n", run({ app, dir .. "/a" }, { env = { CROWN_LOOP_HELD = held } }).stdout)
    judge.loop(held)
  end)

  it("tells of a directory that is removed, and watches the next one of that name", function()
    local path = dir .. "/below"
    assert(os.execute("mkdir " .. path) == 0)
    watch("old", path .. "/a")
    assert(os.execute("rmdir " .. path) == 0)
    hears("old", "deleted")
    assert(os.execute("mkdir " .. path) == 0)
    watch("new", path .. "/a")
    write_file(path .. "/a", "1")
    hears("new", "closed")
    watches.old:cancel()
    write_file(path .. "/a", "2")
    hears("new", "modified")
  end)

  it("tells of a directory that is moved, and watches the next one of that name", function()
    local path = dir .. "/below"
    assert(os.execute("mkdir " .. path) == 0)
    watch("old", path .. "/a")
    assert(os.execute(("mv %s %s.away && mkdir %s"):format(path, path, path)) == 0)
    hears("old", "deleted")
    watch("new", path .. "/a")
    write_file(path .. "/a", "1")
    hears("new", "closed")
  end)

  -- The kernel drops what is behind its queue's end, and says no more than that it did.
  it("tells every watch of a change where more came in a turn than the kernel keeps, and goes on", function()
    local other = tempdir()
    watch("changed", dir .. "/a")
    watch("elsewhere", other .. "/b")
    local most = tonumber(assert(read_file "/proc/sys/fs/inotify/max_queued_events"))
    -- At least two events for each; while a command runs no turn of the loop reads them.
    assert.equal(0, os.execute(("cd %s && seq %d | xargs touch && echo 1 > a"):format(dir, most / 2 + 1)))
    hears("changed", "attrib")
    hears("elsewhere", "attrib")
    assert.same({ changed = { "attrib" }, elsewhere = { "attrib" } }, told) -- what was dropped is told by no event of its own
    write_file(dir .. "/a", "2")
    hears("changed", "closed")
    write_file(other .. "/b", "2")
    hears("elsewhere", "closed")
  end)

  it("says why a directory cannot be watched, and leaves nothing behind", function()
    local before = instances()
    local none, problem = crown.watch_file(dir .. "/no/a", print)
    assert.is_nil(none)
    assert.matches("watch .*/no", problem)
    assert.equal(before, instances())
  end)
end)
