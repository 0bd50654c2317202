--- One case played on one store: its actors, each by a way of its own as if it were a runtime of its own, and what they hold.
local oracle = require "crown.election.contract"
local Player = require "support.oracle_candidate"
local runs = require "crown.register.runs"
local words = require "stores.words"

local Play = {}
Play.__index = Play

local QUICK = 1.5 -- seconds that an actor waits for an answer of a store that a case freezes or leaves
local TRIES = 3 -- of a case on a machine that is too slow for it

local serial = 0

--- Makes one, for an election that nobody has stood for.
-- @tparam table driver of stores.drivers
-- @tparam table case its table's `ttl` and `line`
-- @treturn Play
function Play.new(driver, case)
  serial = serial + 1
  return setmetatable({ driver = driver, case = case, name = ("case-%d"):format(serial), leases = {}, epoch = 0, players = {},
    ways = {}, opened = {} }, Play)
end

-- The URL of the store by an actor's own ways. A newcomer of a second time has others than that of the first.
local function url_for(self, actor)
  local ways = self.driver:ways()
  self.ways[actor] = ways
  for _, way in ipairs(ways) do self.opened[#self.opened + 1] = way end
  return self.driver:url(ways, self.name, self.case.ttl)
end

--- The candidate of an actor, made as it is named first.
-- @string actor
-- @treturn Player of support.oracle_candidate
function Play:player(actor)
  if not self.players[actor] then
    local module, options = oracle.find("spec", url_for(self, actor))
    options.name, options.node, options.timeout = self.name, actor, self.driver.asks and QUICK
    self.players[actor] = Player.new(module, options)
  end
  return self.players[actor]
end

--- Holds back all that passes between an actor and the store, or lets it pass again.
-- @string actor
-- @string act "hold" or "free"
function Play:way_of(actor, act)
  for _, way in ipairs(self.ways[actor]) do
    if act == "free" then way:free() else way.held = { there = true, back = true } end
  end
end

--- Notes that the store has lost what it had. Where its page says that epochs begin anew then, they may, and it need not know who leads.
-- @string how "forget", "older" or "restart"
function Play:forgot(how)
  if self.driver.epochs_anew and self.driver.epochs_anew[how] then self.epoch, self.nameless = 0, true end
end

--- Evicts the leader, as `crown-lua evict` does.
-- @treturn table as the oracle's evict
function Play:evict()
  local module, options = oracle.find("spec", url_for(self, "the operator"))
  options.wait, options.timeout = 20, self.driver.asks and QUICK or nil
  return module.evict(options, self.name)
end

--- Orders something of all candidates, as `crown-lua pause`, `resume` and `handover` do.
-- @tparam table|boolean fields of crown.register.orders; false: nothing any more
function Play:order(fields)
  local module, options = oracle.find("spec", url_for(self, "the operator"))
  options.order, options.timeout = fields, self.driver.asks and QUICK or nil
  return module.order(options, self.name)
end

--- Gives an actor a job: a run that is not begun again within an hour of its success.
-- @string actor
function Play:attend(actor)
  self:player(actor).state:attend(runs.job { done_for = 3600 })
end

--- Gives an actor a rank among those that wait.
-- @string actor
-- @tparam table rank of crown.register.ranks
function Play:prefer(actor, rank)
  self:player(actor).state:prefer(rank)
end

--- Ends an actor's run, and gives its lease back.
-- @string actor
-- @number code its command's
function Play:end_run(actor, code)
  local state = self:player(actor).state
  state.job.started, state.job.result = true, { at = os.time(), took = 0, code = code }
  self:player(actor):abdicate()
  self.leases[actor], state.job.result = nil, nil
end

--- Forgets the marks of runs.
function Play:forget_runs()
  local module, options = oracle.find("spec", url_for(self, "the operator"))
  options.forget, options.timeout = true, self.driver.asks and QUICK or nil
  return module.runs(options, self.name)
end

-- All that a case may have left behind is put right, and an actor that knows the store leads and leaves: so what comes next begins
-- in a store that nobody doubts, and in which nobody leads. Newcomers of before are gone.
local function settle(self)
  for _, undo in ipairs { "thaw", "allow", "older" } do
    if self[undo] then self[undo]() end
    self[undo] = nil
  end
  self.driver:clock(0)
  for actor, player in pairs(self.players) do
    self:way_of(actor, "free")
    player:abdicate()
    if self.driver.hurt.runs then player.state:attend(nil) end
    self.leases[actor] = nil
    if actor:find "^new" then
      self.players[actor] = nil
      for _, way in ipairs(self.ways[actor]) do way:close() end
    end
  end
  words.of_actors.wins(self, "one", "granted")
  words.of_actors.leaves(self, "one")
end

local function run_once(self, time)
  settle(self)
  for i, step in ipairs(words.parse(self.case.line)) do
    local fine, problem = pcall(step.run, self)
    if not fine then
      if problem == words.TOO_SLOW then return "too slow" end
      error(("%s / %s / %s: step %d \"%s\": %s"):format(self.driver.name, self.case.title, time, i, step.text, tostring(problem)), 0)
    end
  end
end

--- Plays the case twice with the same actors: what a first time sets, a second one has to find reset.
function Play:run()
  for _, time in ipairs(self.case.again == false and { "once" } or { "once", "twice" }) do
    local tries = 0
    repeat
      tries = tries + 1
      local slow = run_once(self, time)
    until not slow or tries == TRIES
    assert(tries < TRIES, "this machine was too slow for the case, three times")
  end
end

--- Ends all ways and leaves nothing on the store.
function Play:close()
  pcall(settle, self)
  for _, way in ipairs(self.opened) do way:close() end
end

return Play
