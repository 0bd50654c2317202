--- Tells somebody of names that change at this node.
-- @internal crown.registry.watch

local Changes = require "crown.registry.changes"
local core = require "crown.core"
local subscription = require "crown.core.subscription"

local Watch = {}
Watch.__index = Watch

local AT_ONCE = 100 -- names that are told of before others get their turn

local function tell(self, name)
  local value, _, _, node = core.atomic(self.replica.find, self.replica, name)
  local fine, problem
  if value then
    fine, problem = xpcall(self.fn, debug.traceback, name, core.json.decode(value), node)
  else
    fine, problem = xpcall(self.fn, debug.traceback, name)
  end
  if not fine then self.emit("handler.error", { ["function"] = "on_change", error = problem }) end
end

local function run(self)
  while not self.over do
    local names = core.atomic(self.changes.take, self.changes, AT_ONCE)
    if not names then return end
    for _, name in ipairs(names) do
      if not self.over then tell(self, name) end
    end
    core.sleep(0)
  end
end

--- Begins one; made inside a term, it ends with it.
-- @tparam function fn `fn(name, value, owner)`; without value and owner where the name is nobody's
-- @tparam function emit `emit(event, fields)`
-- @tparam function ended called when it is over
-- @treturn Watch or nil and a message; its `changes` have to be told of what changes in its `replica`, which is set before
function Watch.new(fn, emit, ended)
  local self = setmetatable({ fn = fn, emit = emit, ended = ended }, Watch)
  local task, problem = subscription(function() run(self) end, function() self:cancel() end)
  if not task then return nil, problem end
  self.task = task
  self.changes = Changes.new(function() task:tell() end)
  return self
end

--- Ends it.
function Watch:cancel()
  if self.over then return end
  self.over = true
  self.ended(self)
  core.atomic(self.changes.close, self.changes)
  self.task:close()
end

return Watch
