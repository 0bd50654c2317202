-- The whole protocol in a virtual cluster: faults between any two steps, the promises looked at after each. `make simulate`
-- runs many more seeds.
local crown = require "crown"
local Authority = require "crown.registry.authority"
local Changeover = require "crown.registry.changeover"
local elector = require "crown.registry.elector"
local Member = require "crown.registry.member"
local Replica = require "crown.registry.replica"
local Store = require "support.registry_store"
local World = require "support.registry_world"
local Writes = require "crown.registry.writes"

local function breathe() crown.sleep(0) end

describe("a registry in a virtual cluster", function()
  for _, case in ipairs(World.CLUSTERS) do
    local label = ("of %d nodes%s"):format(case.nodes, case.strict and ", strict," or "") .. (case.label and " " .. case.label or "")
    it(label .. " has one leader and loses no name", function()
      local terms, acknowledged = 0, 0
      for seed = 1, 10 do
        local world = World.new { seed = seed, nodes = case.nodes, strict = case.strict, faults = case.faults }:run(World.SECONDS, breathe)
        terms, acknowledged = terms + world.terms, acknowledged + world.acknowledged
      end
      assert.is_true(terms > 25)
      assert.is_true(acknowledged > 500)
    end)
  end
end)

describe("a seed of the virtual cluster", function()
  it("that once broke something breaks nothing", function()
    for _, seed in ipairs(World.FOUND) do
      for _, case in ipairs(World.CLUSTERS) do
        World.new { seed = seed, nodes = case.nodes, strict = case.strict, faults = case.faults }:run(World.SECONDS, breathe)
      end
    end
  end)

  -- Where the order in which a table is walked decides anything, two processes differ.
  it("plays the same way in every process", function()
    local function play()
      local result = assert(crown.exec({ "luajit", "spec/sim/registry.lua", "21", "3" }, { timeout = 120 }))
      assert.equal(0, result.code, result.stdout)
      return result.stdout
    end
    local first = play()
    assert.truthy(first:find "%d+ events")
    for _ = 1, 2 do assert.equal(first, play()) end
  end)
end)

describe("a change-over in a virtual cluster", function()
  it("may lose whoever holds the lock after any step", function()
    for seed = 1, 2 do
      local steps, changing = 0, true
      while changing or steps < 150 do
        local world = World.new { seed = seed, calm = true, strict = true }
        changing = world:kill_successor(steps)
        world:run(1, breathe)
        assert.is_nil(world.events["oracle.registry.names_missed"])
        steps = steps + 1
      end
      assert.is_true(steps > 100)
    end
  end)
end)

describe("a leader in a virtual cluster", function()
  for _, case in ipairs { { nodes = 3 }, { nodes = 3, strict = true }, { nodes = 5 }, { nodes = 5, strict = true } } do
    local label = ("of %d nodes%s"):format(case.nodes, case.strict and ", strict," or "")

    it(("%s gives way when it reaches the store and nobody else"):format(label), function()
      local world = World.new { seed = 3, nodes = case.nodes, strict = case.strict, calm = true }
      world:pass(10, breathe)
      local lonely = world:leader()
      world:isolate(lonely)
      world:pass(20, breathe)
      local acknowledged = world.acknowledged
      assert.not_equal(lonely.name, world:leader().name)
      world:pass(5, breathe)
      assert.is_true(world.acknowledged > acknowledged)
      world:run(1, breathe)
    end)

    it(("%s gives way when nobody can dial it"):format(label), function()
      local world = World.new { seed = 6, nodes = case.nodes, strict = case.strict, calm = true }
      world:pass(10, breathe)
      local deaf = world:leader()
      world:deafen(deaf)
      world:pass(20, breathe)
      assert.not_equal(deaf.name, world:leader().name)
      assert.equal(1, world.events["oracle.registry.gave_way"])
      world:run(1, breathe)
    end)

    it(("%s gives way when nobody who has the names can be reached in a change-over"):format(label), function()
      local world = World.new { seed = 4, nodes = case.nodes, strict = case.strict, calm = true }
      world:pass(10, breathe)
      local leader = world:leader()
      local behind
      for _, node in ipairs(world.nodes) do
        if node ~= leader then behind = node end
      end
      world:isolate(behind)
      world:pass(3, breathe)
      for _, node in ipairs(world.nodes) do -- nobody else can be chosen at once
        if node ~= behind and node ~= leader then node.stopped = true end
      end
      world:kill(leader, true)
      world:pass(4, breathe)
      for _, node in ipairs(world.nodes) do world:thaw(node) end
      world:pass(30, breathe)
      local acknowledged = world.acknowledged
      assert.is_table(world:leader())
      world:pass(5, breathe)
      assert.is_true(world.acknowledged > acknowledged)
      world:run(1, breathe)
    end)
  end
end)

describe("the survivors in a virtual cluster", function()
  local perform = Store.perform
  after_each(function() Store.perform = perform end)

  for _, which in ipairs { "followers", "the leader and followers" } do
    it(("report each of many deaths about once, when %s die"):format(which), function()
      local DEAD = 6
      local world = World.new { seed = 5, nodes = 50, calm = true }
      world:pass(10, breathe)
      local reports, decisions = 0, 0
      function Store.perform(store, op, args)
        if op == "decide" then decisions = decisions + 1 end
        for _, message in ipairs(op == "enqueue" and args.messages or {}) do
          if message.kind == "member_down" then reports = reports + 1 end
        end
        return perform(store, op, args)
      end
      local leader, killed = world:leader(), 0
      for _, node in ipairs(world.nodes) do
        if killed < DEAD and (node ~= leader or which ~= "followers") then
          world:kill(node, true)
          killed = killed + 1
        end
      end
      world:pass(7, breathe)
      assert.is_table(world:leader())
      assert.is_true(reports >= DEAD and reports < 4 * DEAD, reports .. " reports")
      assert.is_true(decisions < 12 * DEAD, decisions .. " decisions")
    end)
  end
end)

-- A rule that can be broken without being found is not tested.
describe("the simulation finds", function()
  local MOST = 100 -- seeds

  -- `faults`: those that the rule is for.
  local function is_found(module, name, faults, broken)
    local whole = module[name]
    module[name] = broken(whole)
    local found
    for seed = 1, MOST do
      local fine, problem = pcall(function() World.new { seed = seed, strict = true, faults = faults }:run(World.SECONDS, breathe) end)
      if not fine then
        found = problem
        break
      end
    end
    module[name] = whole
    assert.is_string(found)
  end

  for what, any_token in pairs { ["that is believed although the member was heard of"] = false,
    ["whose token nobody looks at"] = true } do
    it("a member_down " .. what, function()
      is_found(elector, "decide", { "late" }, function(decide)
        return function(state, message, winner, now)
          local known = state.members[message.id]
          if message.kind == "member_down" and known and (any_token or known.token == message.token) then
            message = { kind = "member_down", id = message.id, token = known.token, left = true }
          end
          return decide(state, message, winner, now)
        end
      end)
    end)
  end

  it("a new leader that is content with the names it happens to have", function()
    is_found(Changeover, "new", { "behind" }, function(new)
      return function(options, ...)
        options.committed = { epoch = 0, seq = 0 }
        return new(options, ...)
      end
    end)
  end)

  it("a leader that acknowledges before anybody else holds the name", function()
    is_found(Authority, "write", { "kill" }, function(write)
      return function(self, from, op, answer)
        return write(self, from, op, function() end), answer { ok = true }
      end
    end)
  end)

  it("a leader that acknowledges what the store has not confirmed", function()
    is_found(Authority, "new", { "unheard" }, function(new)
      return function(options, members, effects)
        local commits = setmetatable({ commit = function(_, done) done(true) end }, { __index = effects })
        return new(options, members, commits)
      end
    end)
  end)

  it("a strict leader that is content with one copy", function()
    is_found(Authority, "new", { "alone" }, function(new)
      return function(options, ...)
        options.replicas = 1
        return new(options, ...)
      end
    end)
  end)

  it("a leader that takes writes in the minority", function()
    is_found(Authority, "is_minority", { "deaf", "cut", "heal" }, function()
      return function() return false end
    end)
  end)

  it("a leader that gives a name to two", function()
    is_found(Replica, "find", { "kill" }, function(find)
      return function(self, name)
        if debug.getinfo(2, "S").source:find "authority" then return nil end
        return find(self, name)
      end
    end)
  end)

  it("followers that leave changes out", function()
    is_found(Replica, "follow", { "heal" }, function(follow)
      return function(self, epoch, first, changes)
        if first % 7 == 0 then changes = { unpack(changes, 1, #changes - 1), { "-", "nobody's" } } end
        return follow(self, epoch, first, changes)
      end
    end)
  end)

  it("a restore that is never tried again", function()
    is_found(Writes, "add", { "mute_return" }, function(add)
      return function(self, op, timeout, done)
        local of_a_client = timeout < World.TTL
        return add(self, op, timeout, function(fine, ...)
          if fine == nil and not of_a_client then return done(true) end
          done(fine, ...)
        end)
      end
    end)
  end)

  it("a copy that only a removed member has, and nobody asks for", function()
    is_found(Changeover, "linked", { "last_copy" }, function(linked)
      return function(self, id)
        if self.members[id] then linked(self, id) end
      end
    end)
  end)

  it("members that take changes of an older epoch", function()
    is_found(Replica, "promise", { "kill", "echo", "echo" }, function()
      return function(self, epoch)
        self.epoch = math.max(epoch, self.epoch)
        return true
      end
    end)
  end)

  it("a commit that takes back what was committed, when it is done late", function()
    is_found(Store, "perform", { "hang_up" }, function(perform)
      return function(self, op, args)
        local result, notify = perform(self, op, args)
        if op == "commit" and result then self.row.committed = args.seq end
        return result, notify
      end
    end)
  end)

  it("a leader that lets go and takes its place again before the store knows", function()
    is_found(Member, "able", { "abdicate", "abdicate", "lossy", "heal" }, function()
      return function(self) return self:leads() end
    end)
  end)
end)
