-- A disk that hangs under the log: a file system of the spec's own, which is frozen. As root.
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
crown.elect { name = "healthy", oracle = { "memory", ttl = 3 }, handlers = {
  won = function(term)
    print "HEALTHY"
    while term:valid() do
      crown.sleep(0.2)
      crown.log.info "a line"
      print "TICK"
    end
  end,
  lost = function() print "UNHEALTHY" end,
} }
]]

-- `ticks N` waits until the app has lived through N ticks more.
local START = [[
cd "$1"
truncate -s 16M disk && mkfs.ext4 -q disk && mkdir mnt && mount -o loop disk mnt || exit 9
ticks() {
  want=$(($(grep -c TICK out) + $1))
  for i in $(seq 600); do
    [ "$(grep -c TICK out)" -ge "$want" ] && return
    sleep 0.05
  done
}
CROWN_DIRECTORY=$1 "$2" app.lua >out 2>mnt/log &
ticks 3
fsfreeze -f mnt
ticks 25
fsfreeze -u mnt
ticks 5
kill $!
wait $!
cp mnt/log log
]]

describe("a disk that hangs under the log", function()
  it("costs lines, and no leadership", function()
    local dir = tempdir()
    write_file(dir .. "/app.lua", APP)
    write_file(dir .. "/start", START)
    local here = crown.exec({ "/bin/pwd" }).stdout:gsub("\n", "")
    local result = crown.exec({ "/usr/bin/unshare", "--mount", "/bin/sh", dir .. "/start", dir,
      program:sub(1, 1) == "/" and program or here .. "/" .. program }, { timeout = 120 })
    assert.not_equal(9, result.code, result.stderr)
    local said, log = read_file(dir .. "/out"), read_file(dir .. "/log")
    assert.equal(1, select(2, said:gsub("HEALTHY", "")) - select(2, said:gsub("UNHEALTHY", "")), said)
    assert.is_nil(log:find("silent for", 1, true), log)
    local lost = tonumber(log:match "log%.dropped lines=(%d+)")
    assert.is_true(lost and lost > 10, log)
    assert.matches("a line", log:match "log%.dropped.*") -- it goes on
  end)
end)
