-- Places that refuse what the program would like to have: it goes on without, a leader's tree is dead before the next one
-- leads all the same, and where something is lost it says so.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local other_users = require "support.other_users"
local program = require "support.program"

local NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs -- "

local function shell(text) return { "/bin/bash", "-c", text, "bash", program } end

local as_root = is_root and it or pending

-- A container without privileges: as nobody outside, as root inside, with processes of its own; its process 1 is a shell.
local CONTAINER = "setpriv --reuid=65534 --regid=65534 --clear-groups -- unshare --user --map-root-user --pid --mount-proc "
  .. "--fork --kill-child setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- "

-- hidepid belongs to a mount of /proc: this one is new, in a namespace of its own.
local PLACES = {
  ["without pidfds, namespaces, real-time priority and locked memory, by seccomp"] = { "build/deny_calls", "strict", program },
  ["that is told of no child's death, as who started it ignores SIGCHLD,"] = { "/usr/bin/env", "--ignore-signal=CHLD", program },
  ["without signals to pidfds, by seccomp"] = { "build/deny_calls", "send_signal", program },
  ["without privileges, real-time priority and locked memory"] = shell('ulimit -r 0 -l 0; exec ' .. NOBODY .. '"$@"'),
  ["in a container without privileges"] = shell(
    "trap 'pkill -KILL --parent $container' TERM; " .. CONTAINER .. [[bash -c '"$@" & wait' bash "$@" & container=$!; wait; wait]]),
  ["where /proc hides other users' processes"] = shell(
    [[exec unshare --mount bash -c 'mount -t proc -o hidepid=2 proc /proc && exec ]] .. NOBODY .. [["$@"' bash "$@"]]),
}

describe("a leader", function()
  local cluster

  local function new(options)
    cluster = Cluster.new(options)
    assert.equal(0, crown.exec({ "chmod", "777", cluster.dir }).code)
    local env = { CROWN_DIRECTORY = cluster.dir .. "/user", ISOLATION = options.isolation }
    cluster.options.env = { one = env, two = env }
    return cluster
  end
  after_each(function() cluster:finish() end)

  for title, words in pairs(PLACES) do
    for _, kinds in ipairs { { "runtime" }, { "supervise", "runtime", "keeper" } } do
      local may = words[1] ~= "/bin/bash" or other_users -- a shell becomes nobody
      local test = may and it or pending
      test(("%s leaves no overlap when its %s die"):format(title, table.concat(kinds, ", ")), function()
        new { oracle = "file", mode = "daemon" }
        local leader = cluster:join("one", nil, words)
        local term = cluster:succeed(0, 30)
        cluster:join("two", nil, words):follows(30)
        leader:hurt("KILL", unpack(kinds))
        cluster:succeed(term.epoch, 30)
      end)
    end
  end

  for call, word in pairs { subreaper = "become a child subreaper", signalfd = "make a signalfd", timerfd = "make the event loop",
    timer = "make a dead%-man timer" } do
    it("is none where the kernel has no " .. call .. ": the program says so and ends", function()
      new { oracle = "file" }
      local refused = cluster:join("one", nil, { "build/deny_calls", call, program })
      assert.equal(1, refused:wait(30))
      assert.matches("error .*" .. word .. ": ", refused:output())
    end)
  end

  -- Each is asked for by its tree's end: what stands there instead of /proc, and the namespace of processes around it.
  for place, words in pairs {
    ["is no /proc"] = shell [[exec unshare --mount bash -c 'mount -t tmpfs none /proc && exec "$@"' bash "$@"]],
    ["is a /proc of another PID namespace"] = shell [[exec unshare --pid --fork --kill-child "$@"]],
  } do
    as_root(("is none where there %s: the program says so and ends"):format(place), function()
      new { oracle = "file" }
      local refused = cluster:join("one", nil, words)
      assert.equal(1, refused:wait(30))
      assert.matches("error .*set up the supervisor: find itself in /proc: ", refused:output())
    end)
  end

  as_root("is none where there is no /dev/null: the program says so and ends", function()
    new { oracle = "file" }
    local refused = cluster:join("one", nil, shell [[
      exec unshare --mount bash -c 'mount -t tmpfs none /dev && exec "$@"' bash "$@"]])
    assert.equal(1, refused:wait(30))
    assert.matches("error .*set up the supervisor: open /dev/null: ", refused:output())
  end)

  it("that may make no namespace is told so when it asks for one", function()
    new { oracle = "file", isolation = "pidns" }
    local leader = cluster:join("one", nil, PLACES["without pidfds, namespaces, real-time priority and locked memory, by seccomp"])
    eventually(function() return leader:output():find "isolation 'pidns' is not to be had here" end, 30)
  end)

  -- How many descriptors a process has, but for pidfds, which not every kernel can make.
  local function kept_open(pid)
    local count = 0
    for link in assert(crown.exec { "ls", "-l", ("/proc/%d/fd"):format(pid) }).stdout:gmatch "[^\n]* %-> ([^\n]*)" do
      if not link:find("pidfd", 1, true) then count = count + 1 end
    end
    return count
  end

  -- Else an end of file would not say that a process is dead, and a lock would outlive its tree.
  it("has no descriptors left over where the kernel cannot close many at once", function()
    local function open_ones(words)
      new { oracle = "file" }
      local leader, counts = cluster:join("one", nil, words), {}
      cluster:succeed(0, 30)
      for _, kind in ipairs { "keeper", "warden", "child" } do
        counts[kind] = kept_open(leader:pids(kind)[1])
      end
      return counts
    end
    local usual = open_ones()
    cluster:finish()
    assert.same(usual, open_ones { "build/deny_calls", "strict", program })
  end)

  it("has what is missing said by --version --verbose", function()
    new { oracle = "file" }
    local said = assert(crown.exec { "build/deny_calls", "strict", program, "--version", "--verbose" }).stdout
    for _, feature in ipairs { "real%-time", "locked memory", "pidfd", "PID namespaces" } do
      assert.matches("\n  " .. feature .. " +no: ", said)
    end
    said = assert(crown.exec { "build/deny_calls", "send_signal", program, "--version", "--verbose" }).stdout
    assert.matches("\n  pidfd +no: ", said)
  end)

  it("has what is missing said when it starts, and only that", function()
    new { oracle = "file" }
    local refused = cluster:join("one", nil, { "build/deny_calls", "strict", program })
    local term = cluster:succeed(0, 30)
    assert.matches("no real%-time: .* no locked memory: .* no pidfd: ", refused:output())
    cluster:join "two":follows(30)
    refused:signal "TERM"
    cluster:succeed(term.epoch, 30)
    local usual, said = cluster.members[2]:output(), assert(crown.exec { program, "--version", "--verbose" }).stdout
    for _, feature in ipairs { "real%-time", "locked memory", "pidfd" } do
      assert.equal(said:find("\n  " .. feature .. " +no: ") ~= nil, usual:find("no " .. feature .. ": ") ~= nil)
    end
  end)

  -- The limit counts the user's processes and threads, so the user is one that nobody else is.
  for room = 2, 4 do
    local test = other_users and it or pending
    test(("leads as soon as it may have more than %d processes"):format(room), function()
      new { oracle = "file", app = [[
        require("crown").elect { name = "spec", oracle = "file:" .. arg[1], stop_timeout = 0.5,
          child = { command = { select(2, unpack(arg)) }, restart = { within = 0.2 } } }]] }
      local user = 100000 + require("crown.core").pid
      local as_user = ("setpriv --reuid=%d --regid=%d --clear-groups --bounding-set=-all --inh-caps=-all -- "):format(user, user)
      local others = Candidate.start { program = "/bin/bash", node = "others", log = cluster.dir .. "/others",
        args = { "-c", "exec " .. as_user .. "bash -c 'for i in {1..9}; do sleep 600 & done; echo all; wait'" } }
      eventually(function() return others:output():find "all" end, 30)
      local one = cluster:join("one", nil, shell(("ulimit -u %d; exec %s\"$@\""):format(10 + room, as_user)))
      eventually(function() return one:output():find "no more processes are allowed" end, 30)
      assert.equal(0, crown.exec({ "kill", "-KILL", "--", "-" .. others.pid }).code)
      others:wait(30)
      cluster:succeed(0, 30)
    end)
  end
end)
