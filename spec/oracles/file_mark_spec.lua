-- The mark of a leader of the file oracle, which stands apart from the directory: crown.oracle.leader_mark.
local core = require "crown.core"
local ffi = require "ffi"
local lockfile = require "crown.core.lockfile"
local mark = require "crown.core.mark"
local oracle = require "crown.oracles.file"
local read_file = require "crown.text.read_file"
local Stranger = require "support.stranger"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"

ffi.cdef "int dup(int fd); int close(int fd);"

local NOBODY = 65534
local supervisor = tonumber(read_file("/proc/self/status"):match "PPid:%s*(%d+)")

describe("the mark of a leader on the file oracle", function()
  local dir, events, stranger

  local function candidate(node)
    return assert(oracle.init { crown_name = "e", dir = dir .. "/locks", node = node, token = node,
      send = function() return true end, emit = function(name, fields) events[name] = fields or true end })
  end

  local function play(command) assert.equal(0, os.execute(("cd %s && %s"):format(dir, command))) end

  local function led_under()
    local before = candidate "before"
    assert.is_true((before:claim()))
    before:abdicate()
    before.lock:close()
  end

  -- The names that a mark of the lock may have, without the @.
  local function names()
    local own, count, found = {}, {}, {}
    for i = 1, 8 do own[i] = mark.take(dir .. "/locks/e.lock", dir) end
    for _, name in ipairs(Stranger.sockets "@crown-lua/") do
      local key = name:match "^@(.*/)%d$"
      count[key] = (count[key] or 0) + 1
      for number = 0, count[key] == 8 and 7 or -1 do found[#found + 1] = key .. number end
    end
    for _, one in ipairs(own) do one:release() end
    return found
  end

  before_each(function() dir, events = tempdir(), {} end)
  after_each(function()
    if stranger then stranger:stop() end
    stranger = nil
  end)

  it("keeps others from leading by a lock file that is put back with its record and touched at once", function()
    led_under()
    play "mkdir away && mv locks/e.* away"
    local one = candidate "one"
    assert.is_true((one:claim()))
    play "mv away/e.* locks && touch locks/e.lock"
    local newcomer = candidate "two"
    testing.eventually(function()
      local granted, holder = newcomer:claim()
      assert.is_false(granted)
      return holder.node == "one"
    end)
    assert.matches("one leads by another lock file that was .*/locks/e%.lock before.*: kill %d+", events["oracle.file.elsewhere"].error)
    one:abdicate()
    local granted, _, grant = newcomer:claim()
    assert.is_true(granted)
    assert.is_true(grant.epoch > 1)
  end)

  it("keeps others from leading where nothing else tells of the leader", function()
    local opened, one = lockfile.opened, candidate "one"
    one:claim()
    play "mv locks away"
    lockfile.opened = function() return {} end -- as for another user
    local newcomer = candidate "two"
    local granted = newcomer:claim()
    one:abdicate()
    local after = newcomer:claim()
    lockfile.opened = opened
    assert.same({ false, true }, { granted, after })
  end)

  it("is over with the term, also where something has it open still", function()
    local one, two = candidate "one", candidate "two"
    local _, _, grant = one:claim()
    local kept = ffi.C.dup(grant.hold[1])
    one:abdicate()
    local granted = two:claim()
    local beside = candidate("three"):claim()
    ffi.C.close(kept)
    assert.same({ true, false }, { granted, beside })
  end)

  it("is over when nobody has it open any more", function()
    local one = candidate "one"
    one:claim()
    play "mv locks away"
    local newcomer = candidate "two"
    assert.is_false((newcomer:claim()))
    one.mark, one.lock = nil, nil -- as when its tree has died
    collectgarbage()
    assert.is_true((newcomer:claim()))
  end)

  it("is seen in each of the places that it may have", function()
    local path = dir .. "/locks/e.lock"
    local first = mark.take(path, dir)
    local second, rival = mark.take(path, dir)
    assert.equal(core.pid, rival:pid())
    assert.is_true(rival:stands())
    first:release()
    assert.is_false(rival:stands())
    local third
    third, rival = mark.take(path, dir)
    assert.is_true(rival:stands())
    second:release()
    third:release()
    assert.is_false(rival:stands())
  end)

  -- Whom the event names where the process with the number that the mark was made by is this one.
  local function named(pid)
    local take = mark.take
    local rival = { pid = function() return pid end, stands = function() return true end }
    mark.take = function() return false, rival end
    local one = candidate "one"
    testing.eventually(function() return not one:claim() and events["oracle.file.elsewhere"] end)
    mark.take = take
    return events["oracle.file.elsewhere"]
  end

  it("names nobody to kill who got the number of a runtime that is dead", function()
    local other = named(supervisor)
    assert.is_nil(other.pid)
    assert.matches("has ended, and all that it started$", other.error)
  end)

  it("names nobody to kill for a runtime that is dead and was not reaped", function()
    local pid = ffi.C.fork()
    if pid == 0 then ffi.C._exit(0) end
    testing.eventually(function() return read_file(("/proc/%d/status"):format(pid)):find "State:%s*Z" end)
    local other = named(pid)
    ffi.C.waitpid(pid, nil, 0)
    assert.is_nil(other.pid)
  end)

  it("is another one for another lock", function()
    local found = { mark.take(dir .. "/a.lock", dir), mark.take(dir .. "/b.lock", dir) }
    assert.equal(2, #found)
    for _, one in ipairs(found) do one:release() end
  end)

  describe("that somebody else has", function()
    local function as(options)
      if core.user_ids() ~= 0 then return false, pending "only root can become another user" end
      stranger = Stranger.new(options.names or names(), options)
      return true
    end

    it("does not count where that user may not lead in the directory", function()
      play "mkdir -m 700 locks"
      if not as { uid = NOBODY, gid = NOBODY } then return end
      local one = candidate "one"
      assert.is_true((one:claim()))
      assert.matches("others have all sockets @crown%-lua/%x+/", events["oracle.file.unmarked"].error)
      assert.is_false((candidate("two"):claim()))
      play "mv locks away"
      assert.is_false((candidate("two"):claim())) -- who has no mark is looked for
      one:abdicate()
    end)

    it("leaves room for that of a leader", function()
      play "mkdir -m 700 locks"
      if not as { uid = NOBODY, gid = NOBODY, names = { names()[1] } } then return end
      local one = candidate "one"
      assert.is_true((one:claim()))
      assert.is_nil(events["oracle.file.unmarked"])
      play "mv locks away"
      local opened = lockfile.opened
      lockfile.opened = function() return {} end
      local granted = candidate("two"):claim()
      lockfile.opened = opened
      assert.is_false(granted)
      one:abdicate()
    end)

    for who, case in pairs {
      ["its owner"] = { "chown 65534 locks", { uid = NOBODY } },
      ["one of its group"] = { "chgrp 4242 locks && chmod g+w locks", { uid = NOBODY, gid = 4242 } },
      ["root"] = { "true", {} },
    } do
      it("counts where the user may lead in the directory, as " .. who, function()
        play("mkdir -m 700 locks && " .. case[1])
        case[2].names = { names()[1] }
        if not as(case[2]) then return end
        local own, rival = mark.take(dir .. "/locks/e.lock", dir .. "/locks")
        own:release()
        assert.equal(stranger.pid, rival:pid())
      end)
    end

    it("is no reason to lead without a look where it cannot be told whose it is", function()
      led_under()
      if not as { uid = NOBODY, gid = NOBODY, is_full = true, names = { names()[8] } } then return end
      local opened, looks = lockfile.opened, 0
      lockfile.opened = function() looks = looks + 1 return opened() end
      local one = candidate "one"
      local granted = one:claim()
      lockfile.opened = opened
      one:abdicate()
      assert.same({ true, 1 }, { granted, looks })
      assert.matches("look at a socket", events["oracle.file.unmarked"].error)
    end)
  end)
end)
