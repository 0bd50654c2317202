--- Tricks by steps, of one client: each cell is an election of its own, with its own way to a real server, and all of them are in
-- one runtime. When each trick has begun, another runtime joins all elections, directly; later the ways are well again, and the
-- other runtime leaves. MATRIX=all plays every cell; else each trick is played at one step, and over all clients at each.
--
-- Of each cell it is true then that two never led at once, by their children's ticks, and that the runtime leads by it again. And no
-- other election has lost anything, the loop was not held, and memory and descriptors are bounded.
local busted = require "busted"
local Candidate = require "support.candidate"
local cells = require "matrix.cells"
local clients = require "matrix.clients"
local crown = require "crown"
local judge = require "support.judge"
local Stillness = require "support.stillness"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local used = require "support.used"
local Way = require "matrix.way"
local write_file = require "support.write_file"

local PLAYED = 6.5    -- seconds for which all tricks go on: longer than a lease
local A_RUN = 24      -- cells
local SOCKETS_MOST = 3 -- of one election, when all is well again, besides those to each server
-- etcd: a watch, three questions; Postgres: those that were given up, too.
local TO_EACH = setmetatable({ etcd = 4, etcd_tls = 4, postgres = 4, postgres_tls = 4 }, { __index = function() return 2 end })
-- That a server sees of one election at once, whatever it does: docs/oracle-postgres.md.
local CONNECTIONS_MOST = { postgres = 2 * 4, advisory = 4, postgres_tls = 2 * 4 }
local MEMORY_MOST = os.getenv "ASAN_OPTIONS" and math.huge or 96 -- MiB; ASan keeps what was freed
local TICKER = os.getenv "CROWN_TICKER" or "build/ticker"

local ORDER = { "redis", "sentinel", "cluster", "majority", "nats", "etcd", "http", "postgres", "advisory", "redis_tls", "nats_tls",
  "etcd_tls", "postgres_tls", "mysql" }

local Play = {}
Play.__index = Play

-- The steps that any of the servers has.
local function steps_of(store)
  local all = {}
  for _, steps in ipairs(store.steps) do
    for name, step in pairs(steps) do all[name] = all[name] or step end
  end
  return all
end

local function add_cell(self, step, trick)
  local cell = { name = ("cell%02d"):format(#self.cells + 1), step = step and step.name, asks = step and step.armed, trick = trick,
    ways = {}, ticks = ("%s/ticks-%d"):format(self.dir, #self.cells + 1) }
  self.cells[#self.cells + 1] = cell
  return cell
end

-- What is played: names of steps by tricks; the steps are known before any server is.
local function chosen(name, steps)
  local names, first = {}, 0
  for step in steps:gmatch "%a+" do names[#names + 1] = step end
  for i, one in ipairs(ORDER) do first = one == name and i or first end
  return cells.chosen(names, 5, first)
end

local function open_ways(self, cell)
  local of = {}
  for i, number in ipairs(self.store.ports) do
    local way = Way.open(number, cell, self.client, self.store.steps[i])
    cell.ways[number], of[i] = way, way.port
  end
  cell.oracle = self.store.url(of, cell == self.well)
end

local function listen(self)
  local by_name = {}
  for _, cell in ipairs(self.cells) do by_name[cell.name] = cell end
  self.control = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
    local cell = by_name[connection:read("*l", 20)]
    if not cell then return connection:close() end
    cell.armed = true
    connection:write(cell.step == "release" and "abdicate\n" or "ok\n")
    connection:close()
  end))
end

local function start(self, node, oracle_of)
  local elections = {}
  for i, cell in ipairs(self.cells) do
    elections[i] = { name = cell.name, oracle = oracle_of(cell), ticks = cell.ticks, asks = node == "victim" and cell.asks or nil }
  end
  local path = write_file(("%s/%s.json"):format(self.dir, node),
    crown.json.encode { ticker = TICKER, control = self.control:port(), elections = elections })
  return Candidate.start { args = { "spec/matrix/app.lua", path }, node = node, log = ("%s/%s.log"):format(self.dir, node),
    env = { CROWN_LOOP_HELD = ("%s/%s.held"):format(self.dir, node) } }
end

local function led_by(cell, node)
  local lives = ticks.lives(cell.ticks)
  local last = lives[#lives]
  return last and last.node == node and last.last > crown.now() - 0.5
end

local function measure(self)
  local memory, descriptors = used(assert(self.victim:pids("runtime")[1], self.victim:output()))
  self.memory, self.sockets = memory, descriptors / #self.cells
end

--- Plays all cells of a client; what went wrong stands in each cell's `problem` afterwards.
-- @string name of matrix.clients
-- @tparam table played an array of `{ step, trick }`
-- @treturn Play
local function play(name, played)
  local self = setmetatable({ dir = tempdir(), client = clients[name], cells = {}, still = Stillness.start() }, Play)
  self.store = self.client.start()
  local steps = steps_of(self.store)
  for _, one in ipairs(played) do
    add_cell(self, { name = one[1], armed = steps[one[1]].armed }, one[2])
  end
  self.well = add_cell(self)
  for _, cell in ipairs(self.cells) do open_ways(self, cell) end
  listen(self)
  self.victim = start(self, "victim", function(cell) return cell.oracle end)
  local function is_struck(cell)
    if cell.trick then return cell.struck end
    return led_by(cell, "victim")
  end
  cells.await(self.cells, self.victim, 20, "the step was never reached", is_struck)
  self.rival = start(self, "rival", function(cell) return self.store.url(self.store.ports, cell == self.well) end)
  crown.sleep(PLAYED)
  cells.mend(self.cells)
  self.rival:destroy()
  cells.await(self.cells, self.victim, 30, "nobody leads by it when all is well again",
    function(cell) return led_by(cell, "victim") end)
  measure(self)
  self.output = self.victim:output()
  self.victim:destroy()
  return self
end

function Play:destroy()
  cells.close(self.cells)
  self.control:close()
  self.still:destroy()
  self.store.destroy()
end

local function describe(name, played, part)
  local assert = require "luassert"
  local it = busted.it
  busted.describe(("a server or a proxy before the client %s that, from a step on,%s"):format(name, part), function()
    local self
    busted.setup(function() self = play(name, played) end)
    busted.teardown(function() self:destroy() end)
    for i, one in ipairs(played) do
      it(("%s: %s"):format(one[2], one[1]), function()
        local cell = self.cells[i]
        ticks.finish(cell.ticks)
        assert.is_nil(cell.problem, cell.problem and ("%s %s\n%s"):format(cell.name, cell.problem, self.output))
        for _, way in pairs(cell.ways) do
          assert.is_true(way.most <= (CONNECTIONS_MOST[name] or math.huge), way.most .. " connections at once")
        end
      end)
    end

    it("costs nobody else a leadership or a refresh, holds the loop no more than others may, and leaves nothing behind", function()
      assert.equal(1, #ticks.lives(self.well.ticks), self.output)
      assert.is_nil(self.well.problem)
      judge.program(self.output, self.dir .. "/victim.held", self.still)
      assert.is_true(self.memory < MEMORY_MOST, self.memory .. " MiB")
      assert.is_true(self.sockets < SOCKETS_MOST + TO_EACH[name] * #self.store.ports, self.sockets .. " descriptors for each election")
    end)
  end)
end

--- Makes the tests of a client.
-- @string name of matrix.clients
-- @string steps the names of its steps
return function(name, steps)
  local all = chosen(name, steps)
  local parts = math.ceil(#all / A_RUN)
  for part = 1, parts do
    local played = {}
    for i = part, #all, parts do played[#played + 1] = all[i] end
    describe(name, played, parts > 1 and (" %d of %d,"):format(part, parts) or "")
  end
end
