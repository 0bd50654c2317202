-- A disk that hangs under the log or the history: a file system of the spec's own, which is frozen. As root.
local crown = require "crown"
local Network = require "support.network"
local program = require "support.program"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

if not Network.is_possible() then return end

local APP = [[
local crown = require "crown"
io.stdout:setvbuf "line"
crown.on("leadership.refreshed", function(event)
  if event.name == "healthy" then print "REFRESHED" end
end)
crown.elect { name = "healthy", oracle = { "memory", ttl = 30, refresh = 1 }, handlers = {
  won = function(term)
    print "HEALTHY"
    while term:valid() do
      crown.sleep(0.2)
      for _ = 1, tonumber(arg[1]) or 1 do crown.log.info("a line " .. ("."):rep(900)) end
      print "TICK"
    end
  end,
  lost = function() print "UNHEALTHY" end,
} }
]]

-- A leader that writes all the time, and whose child says which process it is.
local WRITING_LEADER = [[
local crown = require "crown"
crown.elect { name = "x", oracle = "file:" .. arg[1] .. "/locks",
  child = { command = { "sh", "-c", "echo $$ >child.new; mv child.new child; exec sleep 600" } },
  handlers = { won = function(term)
    while term:valid() do
      crown.sleep(0.02)
      crown.log.info "a line"
    end
  end } }
]]

-- The same, but what it writes is the history.
local CHANGING_LEADER = [[
local crown = require "crown"
crown.elect { name = "x", oracle = "file:" .. arg[1] .. "/locks",
  child = { command = { "sh", "-c", "echo $$ >child.new; mv child.new child; exec sleep 600" } } }
local changing
changing = crown.elect { name = "changing", oracle = { "memory", ttl = 30, refresh = 1 }, handlers = { won = function()
  crown.sleep(0.02)
  changing:abdicate()
end } }
]]

-- Its command hangs with the disk: not even SIGKILL ends it.
local HANGING_LEADER = [[
local crown = require "crown"
crown.elect { name = "x", oracle = arg[1] == "lock" and "file:" .. arg[2] .. "/locks" or { "memory", ttl = 30 },
  stop_timeout = 0.2, child = { "sh", "-c", "echo $$ >child; while echo x >>mnt/file; do sleep 0.01; done" } }
]]

local MOUNT = [[
cd "$1"
truncate -s 16M disk && mkfs.ext4 -q disk && mkdir mnt && mount -o loop disk mnt || exit 9
]]

-- `eventually COMMAND` waits until it succeeds.
local EVENTUALLY = [[
eventually() {
  for i in $(seq 600); do
    "$@" && return
    sleep 0.05
  done
  return 1
}
]]

-- `says WORD N` waits until the app has said a word N times more.
local SAYS = EVENTUALLY .. [[
said() { [ "$(grep -c $1 out)" -ge $2 ]; }
says() { eventually said $1 $(($(grep -c $1 out) + $2)) || echo "no more $1"; }
]]

local START = MOUNT .. SAYS .. [[
CROWN_DIRECTORY=$1 "$2" app.lua $3 >out 2>mnt/log &
says TICK 3
fsfreeze -f mnt
says TICK 25
says REFRESHED 3
fsfreeze -u mnt
says TICK 5
kill $!
wait $!
cp mnt/log log
]]

-- The thread that writes outlives its process for as long as the disk hangs, and must hold nothing else.
local KILL = MOUNT .. EVENTUALLY .. [[
CROWN_DIRECTORY=$1/$3 "$2" --node one app.lua "$1" 2>"$4" &
one=$!
eventually [ -s child ]
eventually [ -s "$5" ]
child=$(cat child)
runtime=$(cut -d ' ' -f 1 /proc/$one/task/$one/children)
rm child
export CROWN_DIRECTORY=$1
"$2" --node two app.lua "$1" 2>log &
two=$!
eventually grep -q "leader=one" log
fsfreeze -f mnt
thread=$6
hangs() { cat /proc/$runtime/task/*/stat | grep -q "($thread) D "; }
eventually hangs || echo "nothing hangs"
kill -KILL $runtime
gone() { ! [ -d /proc/$child ]; }
eventually gone || echo "the child lives on"
eventually [ -s child ] || echo "nobody leads after it"
fsfreeze -u mnt
kill $two
wait $two
]]

-- What cannot be killed is told of; whoever waits for it goes on when the disk does.
local HANG = MOUNT .. EVENTUALLY .. [[
CROWN_DIRECTORY=$1 "$2" app.lua $3 "$1" 2>log &
one=$!
eventually [ -s mnt/file ]
child=$(cat child)
fsfreeze -f mnt
hangs() { grep -q ") D " /proc/$child/stat; }
eventually hangs || echo "nothing hangs"
if [ $3 = lock ]; then
  kill -TERM $one
else
  kill -KILL $(pgrep -P $one crown-keeper)
fi
eventually grep -q 'child.unkillable .*pid='$child' error="it hangs in the kernel (state D)"' log || echo "nobody is told"
grep -q "child.stopped" log && echo "it counts as dead"
fsfreeze -u mnt
eventually grep -q "child.stopped" log || echo "it does not count as dead"
kill -TERM $one
wait $one || echo "it fails"
]]

-- Beside the healthy one: one whose leader is another process, one that this one leads, and one that begins when it is told to.
local LOCKING = APP .. [[
local oracle = "file:" .. arg[1] .. "/mnt/locks"
for _, name in ipairs { "led", "followed" } do
  crown.elect { name = name, oracle = oracle, handlers = { won = function() print("WON " .. name) end } }
end
local begun
crown.watch_file(arg[1] .. "/begin", function()
  if begun then return end
  begun = true
  crown.elect { name = "new", oracle = oracle, handlers = { won = function() print "WON new" end } }
end)
]]

-- Thirteen seconds: followers look every five, whether or not they have heard of anything, and calls are given up after ten.
local LOCKS = MOUNT .. SAYS .. [[
export CROWN_DIRECTORY=$1
"$2" --node other --log-level info run --oracle "file:$1/mnt/locks" followed sleep 600 2>other &
other=$!
eventually grep -q leadership.claimed other || echo "the other one does not lead"
"$2" --node one app.lua "$1" >out 2>log &
one=$!
eventually grep -q "WON led" out || echo "this one does not lead"
says TICK 3
fsfreeze -f mnt
says TICK 3
: >begin
"$2" abdicate led >abdicated 2>&1
kill -KILL $other
says TICK 65
says REFRESHED 3
grep -q "WON followed" out && echo "it leads though its epoch cannot be written"
fsfreeze -u mnt
for name in led followed new; do
  eventually sh -c "[ \$(grep -c 'WON $name' out) = $([ $name = led ] && echo 2 || echo 1) ]" || echo "nobody leads $name"
done
kill $one
wait $one
]]

describe("a disk that hangs", function()
  local function play(app, script, ...)
    local dir = tempdir()
    write_file(dir .. "/app.lua", app)
    write_file(dir .. "/start", script)
    local here = crown.exec({ "/bin/pwd" }).stdout:gsub("\n", "")
    local result = crown.exec({ "/usr/bin/unshare", "--mount", "/bin/sh", dir .. "/start", dir,
      program:sub(1, 1) == "/" and program or here .. "/" .. program, ... }, { timeout = 120 })
    assert.not_equal(9, result.code, result.stderr)
    return dir, result
  end

  it("under the log keeps nobody from leading after a runtime that was killed meanwhile", function()
    local _, result = play(WRITING_LEADER, KILL, ".", "mnt/log", "mnt/log", "crown-runtime")
    assert.equal("", result.stdout)
  end)

  it("under the history keeps nobody from leading after a runtime that was killed meanwhile", function()
    local _, result = play(CHANGING_LEADER, KILL, "mnt", "one.log", "mnt/history", "append")
    assert.equal("", result.stdout)
  end)

  for what, oracle in pairs { ["that is asked to end"] = "lock", ["whose keeper died"] = "lease" } do
    it("under a command " .. what .. " is told of, and the command counts as alive", function()
      local dir, result = play(HANGING_LEADER, HANG, oracle)
      assert.equal("", result.stdout, read_file(dir .. "/log"))
    end)
  end

  -- @return what the log has, which was written meanwhile
  local function log_of_a_leader(lines)
    local dir, result = play(APP, START, lines)
    local said, log = read_file(dir .. "/out"), read_file(dir .. "/log")
    assert.equal("", result.stdout)
    assert.equal(1, select(2, said:gsub("HEALTHY", "")) - select(2, said:gsub("UNHEALTHY", "")), said)
    assert.is_nil(log:find("silent for", 1, true), log)
    return log, select(2, said:gsub("TICK", ""))
  end

  it("under the log costs neither a line nor a leadership", function()
    local log, ticks = log_of_a_leader(1)
    local lines = select(2, log:gsub("a line", ""))
    assert.is_true(lines == ticks or lines == ticks + 1, log) -- it ends between the two
    assert.is_nil(log:find("log.dropped", 1, true), log)
  end)

  it("under the log costs lines that there is no room for, and no leadership", function()
    local log = log_of_a_leader(10)
    local lost = 0
    for lines in log:gmatch "log%.dropped lines=(%d+)" do lost = lost + lines end
    assert.is_true(lost > 10, log)
    assert.matches("a line", log:match "log%.dropped.*") -- it goes on
  end)

  it("under locks costs no other election its leadership, and nobody leads before the epoch is written", function()
    local dir, result = play(LOCKING, LOCKS)
    local said, log = read_file(dir .. "/out"), read_file(dir .. "/log")
    assert.equal("", result.stdout)
    assert.equal(1, select(2, ("\n" .. said):gsub("\nHEALTHY", "")), said .. log)
    assert.truthy(log:find("the disk has not answered yet", 1, true)) -- no claim comes between one that was given up and its end
    for _, bad in ipairs { "silent for", "a task failed" } do assert.is_nil(log:find(bad, 1, true), log) end
  end)
end)
