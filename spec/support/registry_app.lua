-- A member of a registry that does what it is told over a control port: a line of JSON asks, a line answers.
-- Arguments: the registry's options as JSON; the argv of the child, if there is one.
local crown = require "crown"
local Node = require "crown.registry.node"
local promise = require "crown.core.promise"
local registry = require "crown.registry"

local options = crown.json.decode(arg[1])
if arg[2] then options.child = { unpack(arg, 2) } end
local names = registry.open(options)

local answers = {}

function answers.register(ask) return { names:register(ask.name, ask.value, { timeout = ask.timeout }) } end
-- A table within a table, so deep; whether that was no misuse.
function answers.register_nested(ask)
  local value = {}
  for _ = 2, ask.depth do value = { value } end
  return { (pcall(names.register, names, ask.name, value)) }
end

function answers.unregister(ask) return { names:unregister(ask.name, { timeout = ask.timeout }) } end
function answers.whereis(ask) return { names:whereis(ask.name) } end
function answers.names(ask) return { names:names(ask.prefix) } end
function answers.members() return { names:members() } end
function answers.leader() return { names:leader() } end

-- How many names there are, how many of them are this node's, and the token of its join.
function answers.count()
  local member = Node.of(options.name).member
  local its = 0
  for _, known in ipairs(member.replica.names:all_owners()) do
    if known.owner == member.id and known.token == member.token then its = known.count end
  end
  return { member.replica:count(), its, member.token }
end

-- The next call of a module's function raises.
function answers.break_once(ask)
  local module = require(ask.module)
  local whole = module[ask.fn]
  module[ask.fn] = function()
    module[ask.fn] = whole
    error "broken on purpose"
  end
  return { true }
end

-- Its copy of the names loses one of its own, as an older copy would lack it.
function answers.lose(ask)
  local member = Node.of(options.name).member
  member.replica:apply { "-", ask.name }
  local lost = not member.replica:find(ask.name)
  member.own:restore()
  return { member.replica:count(), lost }
end

-- What has changed since this was asked for last.
local changed, watch = {}, nil
function answers.changes()
  watch = watch or names:on_change(function(name, value, owner) changed[#changed + 1] = { name, value or false, owner or false } end)
  local found = changed
  changed = {}
  return { found }
end

function answers.cancel()
  watch:cancel()
  watch = nil
  return { true }
end

-- Milliseconds of processor time, and of time, that the loop was away at most since this was asked for last.
local longest = { cpu = 0, wall = 0 }

function answers.turns()
  local found = longest
  longest = { cpu = 0, wall = 0 }
  return { found.cpu, found.wall }
end

crown.spawn(function()
  while true do
    local cpu, wall = os.clock(), crown.now()
    crown.sleep(0.001)
    longest.cpu = math.max(longest.cpu, (os.clock() - cpu) * 1000)
    longest.wall = math.max(longest.wall, (crown.now() - wall) * 1000)
  end
end)

-- The value of one of many names: a number, all the same, or each another one of so many bytes of JSON.
local function value_of(ask, i)
  if ask.pad then return ("%d"):format(i) .. ("v"):rep(ask.pad - #("%d"):format(i) - #'""') end
  return ask.value or i
end

local IN_A_TURN = 50

-- Many at once: the numbers of those that were acknowledged, and the seconds that it took.
function answers.fill(ask)
  local left, done, yes, from = ask.to - ask.from + 1, promise(), {}, crown.now()
  for i = ask.from, ask.to do
    crown.spawn(function()
      if names:register(ask.prefix .. i, value_of(ask, i), { timeout = ask.timeout }) then yes[#yes + 1] = i end
      left = left - 1
      if left == 0 then done:resolve(true) end
    end)
    if i % IN_A_TURN == 0 then crown.sleep(0) end -- what it does in one turn is not the registry's
  end
  done:wait(ask.timeout + 5)
  return { yes, crown.now() - from }
end

-- Seconds of processor time that so many lookups take.
function answers.look_up(ask)
  local from = os.clock()
  for i = 1, ask.count do names:whereis(ask.prefix .. i % ask.names + 1) end
  return { os.clock() - from }
end

local function serve(connection)
  connection:set_timeout(3600)
  for line in function() return connection:read "*l" end do
    local ask = crown.json.decode(line)
    local answer = answers[ask.what](ask)
    for i = 1, 3 do answer[i] = answer[i] == nil and crown.json.null or answer[i] end
    if not connection:write(crown.json.encode(answer) .. "\n") then break end
  end
  connection:close()
end

local listener = assert(crown.tcp.listen(os.getenv "CONTROL" or "127.0.0.1", 0, serve, { background = true }))
io.stdout:write(("control port %d\n"):format(listener:port()))
io.stdout:flush()
