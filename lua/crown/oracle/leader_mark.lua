--- The mark of who leads by a path. It does not stand in the file system: the lock's directory may be moved, or something
-- mounted over it or taken away, without the leader's hearing of it. Whoever comes then has another lock, and sees the mark.
-- A link on the way to it may get another target, too. So the path with its links has a mark of its own.
-- It reaches as far as the network namespace, and is only ever a reason not to lead: what decides is the lock.
-- @internal crown.oracle.leader_mark

local core = require "crown.core"
local mark = require "crown.core.mark"
local read_file = require "crown.text.read_file"

local LeaderMark = {}
LeaderMark.__index = LeaderMark

local PATIENCE = 0.5 -- seconds in which a leader that ends may let go of its lock and its mark

--- @tparam function emit tells an event
function LeaderMark.new(emit)
  return setmetatable({ emit = emit, marks = {} }, LeaderMark)
end

-- A runtime is ended by its supervisor. One that is dead has none, and its number may be another's, while what it has started
-- keeps the mark.
local function supervisor_of(pid)
  local status = read_file(("/proc/%d/status"):format(pid)) or ""
  if not status:find "^Name:%s*crown%-runtime\n" or status:find "\nState:%s*Z" then return end
  return tonumber(status:match "\nPPid:%s*(%d+)")
end

-- Tells whom nobody leads beside.
local function tell(self, node)
  local pid = supervisor_of(self.rival:pid())
  self.emit("oracle.file.elsewhere", { pid = pid, error = ("%s leads by another lock file that was %s before: its directory "
    .. "was moved, or a link above it changed, or something mounted over it or taken away. Nobody leads here before that one has "
    .. "ended%s"):format(node or "somebody", self.path, pid and (": kill " .. pid) or ", and all that it started") })
end

local function tell_of_doubt(self, problem)
  if problem == self.doubt then return end
  self.doubt = problem
  if not problem then return end
  self.emit("oracle.file.unmarked", { error = problem .. ": leaders whose directory was moved are looked for among this user's "
    .. "processes alone" })
end

local function put_up(self, path)
  local own, rival, problem = mark.take(path, path:match "^(.*)/")
  table.insert(self.marks, own or nil)
  self.path, self.rival = path, rival
  return problem
end

local function stands(self, paths)
  if self.rival and (self.path == paths[1] or self.path == paths[2]) and self.rival:stands() then return true end
  self:release()
  local problem
  for _, path in ipairs(paths) do
    problem = put_up(self, path) or problem
    if self.rival then return true end
  end
  tell_of_doubt(self, problem)
  return false, problem
end

--- Puts up a mark for a lock that is ours, unless somebody else has one.
-- @string path of the lock, without links
-- @string named the same as it was given, with its links
-- @treturn boolean whether nobody else is known to lead by it
-- @treturn boolean whether that can be believed
function LeaderMark:take(path, named)
  local there_is, problem = stands(self, { path, named ~= path and named or nil })
  if not there_is then
    self.since, self.found = nil, nil
    return true, problem == nil
  end
  self:release() -- of two that came at once, both give way
  self.since = self.since or core.now()
  return false
end

--- Whether somebody else's was there when one was asked for last.
function LeaderMark:is_beside() return self.since ~= nil end

--- Whoever has that one leads under a file that is not in its place any more. It is looked for and told of once, and not while it
-- may be just ending: who ends lets go of lock and mark at once.
-- @tparam function look_for returns the leader's state
-- @treturn table that state; nil as long as it is not known
function LeaderMark:leader(look_for)
  local found, since = self.found, self.since
  if not found and since and core.now() - since > PATIENCE then
    found = look_for()
    self.found = found
    tell(self, found.node)
  end
  return found
end

--- For everybody who has it open: all of them are gone, or are none of a leader's any more.
function LeaderMark:release()
  for _, one in ipairs(self.marks) do one:release() end
  self.marks = {}
end

--- What the leader's tree keeps open. The marks go first: whoever is waked by the lock finds none.
-- @tparam number descriptor of the lock
function LeaderMark:hold(descriptor)
  local all = {}
  for _, one in ipairs(self.marks) do all[#all + 1] = one:descriptor() end
  all[#all + 1] = descriptor
  return all
end

return LeaderMark
