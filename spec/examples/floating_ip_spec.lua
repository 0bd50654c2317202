-- The address of the example, on two hosts that are network namespaces of their own: never on both, whatever happens to one.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local program = require "support.program"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"

local ADDRESS = "192.0.2.10/24"
local SCRIPT = "lua/examples/floating_ip/address.sh"
local LIFETIME = "2"

local as_root = crown.exec({ "unshare", "--net", "true" }).code == 0 and it or pending

-- A host with a loopback device, and a witness in it that writes whether the address is there. It outlives the
-- candidate, and ends when its file is removed.
local HOST = [[
ip link set lo up
: > "$WITNESS"
while [ -e "$WITNESS" ]; do
  sleep 0.02
  here=no
  if ip -oneline address show dev lo | grep -q "$ADDRESS"; then here=yes; fi
  read up rest < /proc/uptime
  [ ! -e "$WITNESS" ] || echo "$up $here" >> "$WITNESS"
done &
exec "$@"
]]

describe("the example of a floating address", function()
  local hosts, dir

  local function host(name)
    local one = Candidate.start { program = "/usr/bin/unshare", node = name, log = ("%s/%s.log"):format(dir, name),
      args = { "--net", "sh", "-c", HOST, "sh", program, "run", "--restart", "permanent",
        "--follower", ("%s drop %s lo"):format(SCRIPT, ADDRESS), "address", "--", SCRIPT, "hold", ADDRESS, "lo", LIFETIME },
      env = { CROWN_ORACLE = "file:" .. dir, WITNESS = ("%s/%s.seen"):format(dir, name), ADDRESS = ADDRESS,
        CROWN_DIRECTORY = ("%s/%s"):format(dir, name) } }
    one.seen = ("%s/%s.seen"):format(dir, name)
    hosts[#hosts + 1] = one
    return one
  end

  local function has_it(one) return (read_file(one.seen) or ""):match "(%a+)\n$" == "yes" end

  -- From when to when a witness saw the address, by the clock of the machine.
  local function spans(one)
    local found, last
    found = {}
    for time, here in read_file(one.seen):gmatch "([%d.]+) (%a+)\n" do
      time = tonumber(time)
      if here == "yes" and not last then found[#found + 1] = { from = time } end
      if here == "yes" then found[#found].to = time end
      last = here == "yes"
    end
    return found
  end

  local function never_on_both()
    local together = 0
    for _, a in ipairs(spans(hosts[1])) do
      for _, b in ipairs(spans(hosts[2])) do
        if a.from <= b.to and b.from <= a.to then together = together + 1 end
      end
    end
    return together == 0
  end

  before_each(function() hosts, dir = {}, tempdir() end)

  after_each(function()
    for _, one in ipairs(hosts) do
      one:destroy()
      os.remove(one.seen)
    end
  end)

  as_root("is on the leader's host, and moves when that one ends in order", function()
    local one = host "one"
    eventually(function() return has_it(one) end, 30)
    local two = host "two"
    one:signal "TERM"
    one:wait(30)
    eventually(function() return has_it(two) end, 30)
    assert.is_true(never_on_both())
  end)

  as_root("is gone from a host whose crown-lua is killed, before the next one has it", function()
    local one = host "one"
    eventually(function() return has_it(one) end, 30)
    local two = host "two"
    eventually(function() return two:output():find "follow" end, 30)
    one:signal "KILL"
    eventually(function() return has_it(two) end, 30)
    assert.is_false(has_it(one))
    assert.is_true(never_on_both())
  end)
end)
