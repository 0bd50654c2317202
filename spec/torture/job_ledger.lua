--- What the runs of a job have written of themselves, and what is wrong with that: an occurrence that two ran at once, that ran
-- again after it had succeeded, or that has not run.
local read_file = require "crown.text.read_file"

local ledger = {}

local MINUTE = 60

-- A job that begins takes a lock of the kernel's, which ends with its last process. `exec`: no shell stands between the two.
local SCRIPT = [[
exec 9>> '%s/lock'
now() { read -r up rest < /proc/uptime; echo "$up"; }
flock -n 9 || echo "two $CROWN_SLOT_TIME $CROWN_NODE $CROWN_EPOCH $(now)" >> '%s/ran'
echo "begin $CROWN_SLOT_TIME $CROWN_NODE $CROWN_EPOCH $(now)" >> '%s/ran'
sleep 0.$(($$ %% 10))
[ $(($$ %% 7)) -eq 0 ] && exit 3
echo "end $CROWN_SLOT_TIME $CROWN_NODE $CROWN_EPOCH $(now)" >> '%s/ran'
]]

--- The job's command.
-- @string dir where it writes
-- @treturn string a script of sh(1)
function ledger.script(dir)
  return SCRIPT:format(dir, dir, dir, dir)
end

--- What has been written so far.
-- @string dir
-- @treturn table an array of `{ what =, slot =, node =, epoch =, at = seconds since the boot }`
function ledger.read(dir)
  local found = {}
  for what, slot, node, epoch, at in (read_file(dir .. "/ran") or ""):gmatch "(%a+) (%d+) (%S+) (%d+) ([%d.]+)\n" do
    found[#found + 1] = { what = what, slot = tonumber(slot), node = node, epoch = tonumber(epoch), at = tonumber(at) }
  end
  return found
end

local function covered(at, intervals, before)
  for _, one in ipairs(intervals) do
    if at >= one.from - before and at <= one.to then return true end
  end
end

local function loses(from, to, intervals)
  for _, one in ipairs(intervals) do
    if one.loses and one.from <= to and one.to >= from then return true end
  end
end

--- The slots that have succeeded.
-- @tparam table lines of `read`
-- @treturn table by slot: when
function ledger.done(lines)
  local done = {}
  for _, one in ipairs(lines) do
    if one.what == "end" then done[one.slot] = done[one.slot] or one.at end
  end
  return done
end

--- The slots of a span that have not succeeded.
-- @tparam table lines of `read`
-- @number first slot
-- @number last slot
-- @treturn table an array
function ledger.missing(lines, first, last)
  local done, found = ledger.done(lines), {}
  for slot = first, last, MINUTE do
    if not done[slot] then found[#found + 1] = slot end
  end
  return found
end

--- What is wrong, apart from what is missing. A host that is hurt just when its job has ended cannot note that, and a store that
-- has lost its records knows of none: then the job may run again, and the pages say so.
-- @tparam table lines of `read`
-- @tparam table intervals of faults: `from`, `to`, `loses`: the store may have lost what it knew
-- @number moment seconds that it takes at most from a job's end to the mark of that
-- @treturn table texts
-- @treturn number how often an occurrence ran again for a reason
function ledger.wrong(lines, intervals, moment)
  local found, again, done, last = {}, 0, {}, nil
  for _, one in ipairs(lines) do
    if one.what == "two" then
      found[#found + 1] = ("two ran at once: slot %d, on %s in epoch %d"):format(one.slot, one.node, one.epoch)
    elseif one.what == "end" then
      done[one.slot], last = done[one.slot] or one, last and last.slot > one.slot and last or one
    else
      local before = done[one.slot] or last and last.slot > one.slot and last
      local excused = before and (covered(before.at, intervals, moment) or loses(before.at, one.at, intervals))
      if before and excused then again = again + 1 end
      if before and not excused then
        found[#found + 1] = ("slot %d begins on %s at %.2f, after slot %d had succeeded on %s at %.2f"):format(one.slot, one.node,
          one.at, before.slot, before.node, before.at)
      end
    end
  end
  return found, again
end

return ledger
