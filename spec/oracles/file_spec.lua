local crown = require "crown"
local core = require "crown.core"
local files = require "crown.core.files"
local lockfile = require "crown.core.lockfile"
local mark = require "crown.core.mark"
local oracle = require "crown.oracles.file"
local promise = require "crown.core.promise"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"
local write_file = require "support.write_file"

local function candidate(dir, node, messages)
  return assert(oracle.init { crown_name = "e", dir = dir, node = node, token = node,
    send = function(message) messages[#messages + 1] = message return true end, emit = function() end })
end

-- As where each candidate has a network namespace of its own: with marks, others would hide what is judged here.
describe("the file oracle", function()
  local dir, messages
  local take = mark.take

  before_each(function()
    dir, messages = tempdir(), {}
    mark.take = function() return false end
  end)
  after_each(function() mark.take = take end)

  it("recovers the epoch from the lock file when the other copy is damaged", function()
    local one = candidate(dir, "one", messages)
    one:claim()
    one:abdicate()
    write_file(dir .. "/e.json", "{ half")
    local _, _, grant = one:claim()
    assert.equal(2, grant.epoch)
  end)

  it("has a leader whose file was taken away let go of that also where an order keeps it from claiming", function()
    local one, two = candidate(dir, "one", messages), candidate(dir, "two", messages)
    assert.is_true((oracle.claim(one)))
    assert(os.remove(dir .. "/e.lock"))
    two:prefer { level = 7, preempt = 0.05 }
    testing.eventually(function()
      assert.is_false((oracle.claim(two)))
      return (read_file(dir .. "/e.orders") or ""):find('"to":"two"', 1, true)
    end)
    testing.eventually(function() return one.orders:is_sent_away() end)
    assert.is_false((oracle.handle_info(one, "changed")))
    assert.matches("^handed over to two", select(2, oracle.claim(one)).error)
    testing.eventually(function() return (oracle.claim(two)) end, 5)
  end)

  it("takes no number that is no epoch for one, and names the file where there is none above", function()
    for _, number in ipairs { "1e400", "-5", "1.5" } do
      local place = tempdir()
      write_file(place .. "/x.json", ('{"epoch":%s}'):format(number))
      local result = run { "run", "--once", "--oracle", "file:" .. place, "x", "sh", "-c", "echo $CROWN_EPOCH" }
      assert.same({ 0, "" }, { result.code, result.stderr }, number)
      assert.matches("^%d+\n$", result.stdout)
    end
    write_file(dir .. "/x.json", '{"epoch":9007199254740991}')
    local result = run { "run", "--once", "--oracle", "file:" .. dir, "x", "true" }
    assert.equal(3, result.code)
    assert.truthy(result.stderr:find(dir .. "/x.json: the last epoch was 9007199254740991, and there is none above", 1, true),
      result.stderr)
  end)

  it("gives out no epoch again where both copies are damaged, and goes on from there", function()
    for _, damage in ipairs { { "{ half", "" }, { "", "" }, { "{}", "{ half" }, { false, "{ half" } } do
      local place = tempdir()
      local one = candidate(place, "one", messages)
      for _ = 1, 3 do
        one:claim()
        one:abdicate()
      end
      if damage[1] then write_file(place .. "/e.json", damage[1]) else os.remove(place .. "/e.json") end
      write_file(place .. "/e.lock", damage[2])
      local two = candidate(place, "two", messages)
      local _, _, grant = two:claim()
      assert.is_true(grant.epoch > 1e12, tostring(grant.epoch))
      two:abdicate()
      assert.equal(grant.epoch + 1, select(3, candidate(place, "three", messages):claim()).epoch)
    end
  end)

  it("goes on above the last epoch that it has heard of, where older records were put back", function()
    local one, two = candidate(dir, "one", messages), candidate(dir, "two", {})
    one:claim()
    local older = read_file(dir .. "/e.json")
    local last = 1
    for _, winner in ipairs { two, one, one } do -- as a follower heard of it, as that of before, and as the leader itself
      for _, other in ipairs { one, two } do other:abdicate() end
      for _, file in ipairs { "/e.lock", "/e.json" } do write_file(dir .. file, older) end
      local granted, _, grant = winner:claim()
      assert.same({ true, last + 1 }, { granted, grant.epoch })
      last = grant.epoch
      if winner == two then one:claim() else two:claim() end
    end
  end)

  it("tells followers of a release by an event", function()
    local one = candidate(dir, "one", {})
    one:claim()
    local two = candidate(dir, "two", messages)
    two:claim()
    one:abdicate()
    testing.eventually(function() return messages[1] == "changed" end)
    assert.is_true((two:handle_info "changed"))
  end)

  it("tells followers when the lock is free, not only of what is written before", function()
    local one = candidate(dir, "one", {})
    one:claim()
    local two = candidate(dir, "two", messages)
    two:claim()
    function one.record() return true end -- its writes are events, too
    one:abdicate()
    testing.eventually(function() return messages[1] == "changed" end)
    assert.is_true((two:handle_info "changed"))
  end)

  describe("whose disk hangs", function()
    local disk, gate, hanging

    before_each(function()
      disk, gate = require "crown.core.disk", promise()
      gate:resolve(true)
      package.loaded["crown.core.disk"] = function(...)
        gate:wait()
        return disk(...)
      end
      package.loaded["crown.oracles.file"] = nil
      hanging = require "crown.oracles.file"
    end)

    after_each(function()
      package.loaded["crown.core.disk"], package.loaded["crown.oracles.file"] = disk, oracle
    end)

    it("tells followers of the release of a claim that was given up", function()
      local one = assert(hanging.init { crown_name = "e", dir = dir, node = "one", token = "one", emit = function() end })
      one:open()
      gate = promise()
      one.lock:try()
      crown.spawn(function() one:change { { "create", dir .. "/new" } } end) -- as a claim does
      testing.eventually(function() return one.changing == 1 end)
      one:abdicate()
      local two = candidate(dir, "two", messages)
      assert.is_false((two:claim()))
      gate:resolve(true)
      testing.eventually(function() return messages[1] == "changed" end)
      assert.is_true((two:handle_info "changed"))
    end)

    it("frees the lock when it goes on, also where nobody waits for that any more", function()
      local one = crown.elect { name = "e", oracle = { hanging, dir = dir }, call_timeout = 2 }
      testing.eventually(function() return one:is_leader() end)
      gate = promise()
      one:stop()
      testing.eventually(function() return one.handle:finished() end)
      local two = candidate(dir, "two", messages)
      assert.is_false((two:claim()))
      gate:resolve(true)
      testing.eventually(function() return messages[1] == "changed" and two:handle_info "changed" end)
    end)
  end)

  it("hands its lock on to the child with every grant", function()
    local one = candidate(dir, "one", messages)
    local _, _, won = one:claim()
    local _, _, kept = one:refresh()
    for _, grant in ipairs { won, kept } do
      assert.equal(dir .. "/e.lock", crown.exec({ "readlink", ("/proc/%d/fd/%d"):format(core.pid, grant.hold[1]) }).stdout:match "[^\n]+")
    end
  end)

  for what, take_away in pairs {
    ["the lock file is taken away"] = function() os.remove(dir .. "/e.lock") end,
    ["both files are taken away"] = function() os.remove(dir .. "/e.lock") os.remove(dir .. "/e.json") end,
    ["another file is put in its place"] = function() os.execute(("cp %s/e.lock %s/x && mv %s/x %s/e.lock"):format(dir, dir, dir, dir)) end,
    ["both files are moved"] = function() os.execute(("mkdir %s/away && mv %s/e.* %s/away"):format(dir, dir, dir)) end,
    ["the directory is moved"] = function() os.execute(("mv %s %s.away && mkdir %s"):format(dir, dir, dir)) end,
  } do
    it("lets nobody lead until the leader has let go when " .. what .. ", and goes on with the epoch", function()
      local one, two = candidate(dir, "one", messages), candidate(dir, "two", {})
      one:claim()
      one:abdicate()
      one:claim()
      two:claim()
      take_away()
      for _, other in ipairs { two, candidate(dir, "three", {}) } do -- one who was there before, and a newcomer
        for _ = 1, 2 do
          local granted, holder = other:claim()
          assert.is_false(granted)
          assert.same({ "one", 2 }, { holder.node, holder.epoch })
          assert.is_nil(holder.expires_in)
        end
      end
      testing.eventually(function() return messages[1] end)
      assert.is_false((one:handle_info "changed"))
      assert.is_false((two:claim()))
      one:abdicate()
      local granted, _, grant = two:claim()
      assert.is_true(granted)
      assert.equal(3, grant.epoch)
      assert.is_false((one:claim()))
    end)
  end

  for what, case in pairs {
    ["it is"] = { "mkdir away && mv e.lock away", "mv away/e.lock ." },
    ["it is touched and"] = { "mkdir away && mv e.lock away", "mv away/e.lock . && touch e.lock" },
    ["it is, with its record,"] = { "mkdir away && mv e.* away", "mv away/e.* ." },
    ["it is, with its record, touched and"] = { "mkdir away && mv e.* away", "mv away/e.* . && touch e.*", 60 }, -- seconds ago
    ["its directory is"] = { "mv $PWD $PWD.away && mkdir $PWD", "mv $PWD $PWD.other && mv $PWD.away $PWD" },
    ["its directory, where others write, is touched later and"] = { "mv $PWD $PWD.away && mkdir $PWD",
      "mv $PWD $PWD.other && mv $PWD.away $PWD && >$PWD/x && sleep 0.05 && touch $PWD/e.lock" }, -- as later, by a clock that was set back
    ["its directory, where others write, is"] = { "mv $PWD $PWD.away && mkdir $PWD", "mv $PWD $PWD.b && mv $PWD.away $PWD && >$PWD/x" },
  } do
    it("lets nobody lead by a file that was led under before when " .. what .. " put back under a leader", function()
      local function play(command) assert.equal(0, os.execute(("cd %s && %s"):format(dir, command))) end
      local before, time = candidate(dir, "before", {}), os.time
      rawset(os, "time", function() return time() - (case[3] or 0) end)
      before:claim() before:abdicate()
      rawset(os, "time", time)
      before.lock:close()
      play(case[1])
      local one = candidate(dir, "one", messages)
      local _, _, grant = one:claim()
      play(case[2])
      local newcomer = candidate(dir, "two", {})
      for _ = 1, 2 do
        local granted, holder = newcomer:claim()
        assert.same({ false, "one" }, { granted, holder.node })
      end
      testing.eventually(function() return messages[1] end)
      assert.is_false((one:handle_info "changed"))
      one:abdicate()
      local granted, _, later = newcomer:claim()
      assert.is_true(granted)
      assert.is_true(later.epoch > grant.epoch)
    end)
  end

  it("looks at no other process where nothing was moved", function()
    dir = dir .. "/locks" -- others make files beside the directory itself
    local one = candidate(dir, "one", messages)
    testing.eventually(function() one:claim() return one:led_under_last() end) -- the clock has ticked since it was made
    local opened, looks = lockfile.opened, 0
    lockfile.opened = function() looks = looks + 1 return opened() end
    for _ = 1, 3 do
      one:abdicate()
      local two = candidate(dir, "two", {})
      assert.is_true((two:claim()))
      two.lock:close() -- as when its tree has died
      assert.is_true((one:claim()))
    end
    lockfile.opened = opened
    assert.equal(0, looks)
  end)

  it("does not lead by a lock file that was replaced while it was being locked", function()
    local one = candidate(dir, "one", messages)
    function one.old_leader() -- is asked with the lock in hand
      os.remove(dir .. "/e.lock")
      return false
    end
    local granted, problem = one:claim()
    assert.is_nil(granted)
    assert.matches("was replaced while it was being locked", problem)
    one.old_leader = nil
    assert.is_true((one:claim()))
  end)

  it("goes on with the epoch of the record where only the lock file is made anew", function()
    local one = candidate(dir, "one", messages)
    one:claim()
    one:abdicate()
    one:claim()
    one:abdicate()
    one.lock:close()
    os.remove(dir .. "/e.lock")
    local opened = lockfile.opened
    lockfile.opened = function() return {} end -- nobody has the old one open
    local _, _, grant = candidate(dir, "two", {}):claim()
    lockfile.opened = opened
    assert.equal(3, grant.epoch)
  end)

  it("does not wait for the leader of another directory", function()
    assert.is_true((candidate(tempdir(), "one", {}):claim()))
    assert.is_true((candidate(dir, "two", {}):claim()))
  end)

  it("does not lead by a lock file that was replaced while its epoch was being recorded", function()
    local one = candidate(dir, "one", messages)
    local record = one.record
    function one.record(self, ...)
      os.remove(dir .. "/e.lock") -- a newcomer that looks now does not see yet whose file it was
      return record(self, ...)
    end
    local granted, problem = one:claim()
    assert.is_nil(granted)
    assert.matches("was replaced while it was being locked", problem)
    one.record = nil
    assert.is_true((one:claim()))
  end)

  it("hears of an eviction in the directory that came in a moved one's place", function()
    local one = candidate(dir, "one", messages)
    assert.is_true((one:claim()))
    os.execute(("mv %s %s.away && mkdir %s"):format(dir, dir, dir))
    testing.eventually(function() return messages[1] end)
    assert.is_false((one:handle_info "changed"))
    one:abdicate()
    assert.is_true((one:claim()))
    crown.sleep(0.1) -- what the claim itself has changed
    while table.remove(messages) do one:handle_info "changed" end
    write_file(dir .. "/e.evict", "somebody")
    testing.eventually(function() return messages[1] end)
    assert.is_true(select(2, one:handle_info "changed").evicted)
  end)

  it("puts the record back that was taken away with the lock file", function()
    local one = candidate(dir, "one", messages)
    one:claim()
    os.remove(dir .. "/e.lock")
    os.remove(dir .. "/e.json")
    testing.eventually(function() return messages[1] end)
    one:handle_info "changed"
    assert.equal(1, oracle.list({ dir = dir })[1].epoch)
  end)

  it("leads where a directory stands in the place of a wish that it go, and tells of it", function()
    assert.equal(0, os.execute(("mkdir -p %s/e.evict/x"):format(dir)))
    local one = candidate(dir, "one", messages)
    local told
    one.emit = function(name, fields) told = name == "oracle.file.no_eviction" and fields.error or told end
    assert.is_true((one:claim()))
    assert.matches("e%.evict is a directory.*remove it", told)
    assert.is_nil((one:handle_info "changed"))
    local evicted, problem = oracle.evict({ dir = dir }, "e")
    assert.is_nil(evicted)
    assert.matches("e%.evict is a directory.*remove it", problem)
  end)

  it("removes what was left behind by who was killed while writing, and nothing else", function()
    local nobody = 4194305 -- above the highest process id
    local mine = { "e.json." .. core.pid .. ".new", ("e.json.%d.new"):format(nobody), ("e.evict.%d.new"):format(nobody) }
    local others = { ("f.json.%d.new"):format(nobody), ("e.x.json.%d.new"):format(nobody), "e.evict." .. core.pid .. ".new", "e.json.new" }
    for _, name in ipairs(mine) do write_file(dir .. "/" .. name, "") end
    for _, name in ipairs(others) do write_file(dir .. "/" .. name, "") end
    assert.is_true((candidate(dir, "one", messages):claim()))
    for _, name in ipairs(mine) do assert.is_nil(files.kind(dir .. "/" .. name), name) end
    for _, name in ipairs(others) do assert.equal("file", files.kind(dir .. "/" .. name), name) end
  end)

  it("does not go for a wish that was meant for a leader before", function()
    write_file(dir .. "/e.evict", "somebody")
    local one = candidate(dir, "one", messages)
    one:claim()
    assert.is_nil((one:handle_info "changed"))
  end)

  it("waits for an old file that it has open itself, also where nothing else tells of it", function()
    local one, two = candidate(dir, "one", messages), candidate(dir, "two", {})
    one:claim()
    two:claim()
    os.remove(dir .. "/e.lock")
    os.remove(dir .. "/e.json")
    local opened = lockfile.opened
    lockfile.opened = function() return {} end -- as for another user
    local granted, holder = two:claim()
    one.lock:release()
    local again, _, grant = two:claim()
    lockfile.opened = opened
    assert.same({ false, "one" }, { granted, holder.node })
    assert.same({ true, 2 }, { again, grant.epoch })
  end)

  it("goes on with the epoch of an old file that some process has open still", function()
    local one = candidate(dir, "one", messages)
    one:claim()
    os.remove(dir .. "/e.lock")
    os.remove(dir .. "/e.json")
    one.lock:release() -- as when its tree has died
    local _, _, grant = candidate(dir, "three", {}):claim()
    assert.equal(2, grant.epoch)
  end)

  it("goes on above an epoch that it saw with the holder of an old file, also when nothing has that file any more", function()
    local one, two = candidate(dir, "one", messages), candidate(dir, "two", {})
    one:claim()
    one:abdicate()
    one:claim()
    os.remove(dir .. "/e.lock")
    os.remove(dir .. "/e.json")
    local granted, holder = two:claim()
    one.lock:close() -- as when its tree has died
    local again, _, grant = two:claim()
    assert.same({ false, "one", 2 }, { granted, holder.node, holder.epoch })
    assert.same({ true, 3 }, { again, grant.epoch })
  end)

  it("believes a holder of the old file whom it cannot look at, by the record", function()
    local one = candidate(dir, "one", messages)
    one:claim()
    os.remove(dir .. "/e.lock")
    local opened = lockfile.opened
    lockfile.opened = function() return {} end -- as for another user
    local granted, holder = candidate(dir, "two", {}):claim()
    one:abdicate()
    local again = candidate(dir, "two", {}):claim()
    lockfile.opened = opened
    assert.is_false(granted)
    assert.equal(0.1, holder.retry_in)
    assert.is_true(again)
  end)

  it("steps down in order when it is evicted, and says who it was", function()
    local lost
    local election = crown.elect { name = "evict-me", oracle = "file:" .. dir, retry = 60,
      handlers = { lost = function(reason) lost = reason end } }
    testing.eventually(function() return election:is_leader() end)
    local evicted = assert(oracle.evict({ dir = dir, wait = 5 }, "evict-me"))
    assert.equal(core.node(), evicted.node)
    assert.equal("evicted", lost)
    election:stop()
    testing.eventually(function() return election.handle:finished() end)
    assert.is_nil((oracle.evict({ dir = dir, wait = 1 }, "evict-me")))
  end)

  for _, case in ipairs {
    { "that everybody may write to", function(path) os.execute("chmod 777 " .. path) end, "chmod o%-w" },
    { "that everybody may write to, with the sticky bit", function(path) os.execute("chmod 1777 " .. path) end, "chmod o%-w" },
    { "that is a link", function(path) os.execute(("rmdir %s && ln -s /tmp %s"):format(path, path)) end, "symbolic link" },
    { "that is a file", function(path) os.execute(("rmdir %s && touch %s"):format(path, path)) end, "not a directory" },
  } do
    it("refuses a directory " .. case[1], function()
      case[2](dir)
      local state, reason = oracle.init { crown_name = "e", dir = dir, node = "n", token = "t" }
      assert.is_nil(state)
      assert.matches(case[3], reason)
    end)
  end

  it("refuses a directory on a network file system, where two hosts may have one lock", function()
    local library = (os.getenv "CROWN_TICKER" or "build/ticker"):gsub("ticker$", "network_disk.so")
    local result = run({ "run", "--oracle", "file:" .. dir, "x", "true" }, { env = { LD_PRELOAD = library } })
    assert.are_not.equal(0, result.code)
    assert.matches("is on a network file system %(NFS%)", result.stderr)
  end)

  it("says that the disk is full, and leads as soon as it is not", function()
    local mounted = crown.exec { "mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "none", dir }
    if not mounted or mounted.code ~= 0 then return pending "only root can mount a small disk" end
    write_file(dir .. "/filler", ("x"):rep(4096))
    local one = candidate(dir, "one", messages)
    local verdict, reason = one:claim()
    assert.is_nil(verdict)
    assert.matches("No space left on device: make room on that file system", reason, 1, true)
    assert.matches("until then nobody begins to lead in " .. dir, reason, 1, true)
    os.remove(dir .. "/filler")
    os.execute("mount -o remount,size=64k " .. dir)
    assert.is_true((one:claim()))
    os.execute("dd if=/dev/zero of=" .. dir .. "/filler 2>/dev/null")
    verdict, reason = oracle.evict({ dir = dir, wait = 0 }, "e")
    assert.is_nil(verdict)
    assert.matches("No space left on device: make room on that file system", reason, 1, true)
    os.remove(dir .. "/filler")
    one:abdicate()
    one.lock:close()
    for _, watch in ipairs(one.watches) do watch:cancel() end
    assert.equal(0, crown.exec({ "umount", dir }).code)
  end)

  describe("on a disk that is full", function()
    local function on_small_disk(pages, judge)
      local mounted = crown.exec { "mount", "-t", "tmpfs", "-o", ("size=%dk,mode=700"):format(4 * pages), "none", dir }
      if not mounted or mounted.code ~= 0 then return pending "only root can mount a small disk" end
      local one = candidate(dir, "one", messages)
      local fine, problem = pcall(judge, one)
      one.lock:close()
      for _, watch in ipairs(one.watches) do watch:cancel() end
      assert.equal(0, crown.exec({ "umount", dir }).code)
      assert(fine, problem)
    end

    local function text(name)
      local file = io.open(dir .. name)
      if not file then return end
      local all = file:read "*a"
      file:close()
      return all
    end

    it("tells nobody of a claim that cannot be recorded, and uses up no epoch", function()
      on_small_disk(4, function(one)
        assert.is_true((one:claim()))
        one:abdicate()
        write_file(dir .. "/filler", ("x"):rep(8192))
        crown.sleep(0.05)
        local lock, copy, told = text "/e.lock", text "/e.json", #messages
        one.told = false
        for _ = 1, 3 do
          assert.is_nil((one:claim()))
          assert.is_false(lockfile.held(dir .. "/e.lock"))
        end
        crown.sleep(0.05)
        assert.same({ lock, copy, told }, { text "/e.lock", text "/e.json", #messages })
        os.remove(dir .. "/filler")
        assert.equal(2, select(3, one:claim()).epoch)
      end)
    end)

    it("takes the copy of an epoch back that the lock file has no room for", function()
      on_small_disk(2, function(one)
        write_file(dir .. "/filler", ("x"):rep(4096))
        for _ = 1, 3 do assert.is_nil((one:claim())) end
        assert.is_nil(text "/e.json")
        os.remove(dir .. "/filler")
        assert.equal(1, select(3, one:claim()).epoch)
      end)
    end)
  end)

  it("refuses a symbolic link in the place of its lock file, with a sentence", function()
    assert.equal(0, os.execute(("ln -s /etc/passwd %s/e.lock"):format(dir)))
    local answer, problem, code = candidate(dir, "one", messages):claim()
    assert.is_nil(answer)
    assert.matches("e.lock is no plain file: move it away", problem, 1, true)
    assert.equal("usage", code)
  end)

  for what, make in pairs { ["a FIFO"] = "mkfifo %s", ["a directory"] = "mkdir %s",
    ["a socket"] = "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' %s" } do
    for _, file in ipairs { "e.lock", "e.json" } do
      it(("refuses %s in the place of %s at once, with a sentence"):format(what, file), function()
        assert.equal(0, os.execute(make:format(dir .. "/" .. file)))
        local answer, problem, code = candidate(dir, "one", messages):claim()
        assert.is_nil(answer)
        assert.matches(file .. " is no plain file: move it away", problem, 1, true)
        assert.equal("usage", code)
        oracle.list { dir = dir }
      end)
    end
  end

  it("takes a FIFO in the place of a wish that it go for none", function()
    local one = candidate(dir, "one", messages)
    one:claim()
    assert.equal(0, os.execute("mkfifo " .. dir .. "/e.evict"))
    assert.is_nil((one:handle_info "changed"))
  end)

  it("never follows a link in the lock file's place", function()
    os.execute(("ln -s /etc/passwd %s/e.lock"):format(dir))
    assert.is_nil((candidate(dir, "one", messages):claim()))
    os.execute(("ln -sf %s/elsewhere %s/e.lock"):format(dir, dir))
    assert.is_nil((candidate(dir, "one", messages):claim()))
    assert.is_nil(io.open(dir .. "/elsewhere"))
  end)

  it("does not take the lock by asking whether it is held", function()
    local one = candidate(dir, "one", messages)
    assert.is_false(lockfile.held(dir .. "/e.lock"))
    one:claim()
    assert.is_true(lockfile.held(dir .. "/e.lock"))
  end)
end)
