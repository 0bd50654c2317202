-- A thousand connections of one runtime lose their store at the same moment, and it comes back.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local COUNT = 1000
local AWAY = 3           -- seconds
local TRIES_MOST = 12    -- of each connection in that time: pauses of 50 ms would make sixty and more
local HELD_MOST = 500    -- ms in which the loop may stand still, less what other processes had
local AT_ONCE_MOST = 0.5 -- of the connections that try within 100 ms, once the pauses have grown

-- Prints, ten times a second: how many connections there are, how many were dialled so far, and how many were dialled within a
-- tenth of a second at most, from a second after the loss on. An election in its memory
-- loses nothing by it.
local APP = [[
local conditions = require "crown.link.conditions"
local crown = require "crown"
local tcp = require "crown.core.tcp"
local open = ({
  redis = function(port) return require("crown.redis.client").new("redis://127.0.0.1:" .. port, { timeout = 5 }) end,
  nats = function(port) return require("crown.nats.bucket").at("nats://127.0.0.1:" .. port, { bucket = "B", timeout = 5 }) end,
})[arg[1] ]
crown.elect { name = "healthy", oracle = { "memory" }, handlers = {
  won = function(term) print "HEALTHY" while term:valid() do crown.sleep(0.1) end end,
  lost = function() print "UNHEALTHY" end,
} }
local dialled, most = 0, 0
local connect = tcp.connect
function tcp.connect(...)
  dialled = dialled + 1
  return connect(...)
end
local clients = {}
for i = 1, tonumber(arg[3]) do clients[i] = assert(open(arg[2])) end
crown.spawn(function()
  local away = 0 -- tenths of a second
  while true do
    local before = dialled
    crown.sleep(0.1)
    local there = 0
    for _, one in ipairs(conditions.all()) do
      if one.state == "open" or one.state == "proven" then there = there + 1 end
    end
    away = there == 0 and away + 1 or 0
    if away > 10 then most = math.max(most, dialled - before) end
    print(("THERE %d DIALLED %d MOST %d"):format(there, dialled, most))
  end
end)
]]

describe("a thousand connections that lose their store at once", function()
  local STORES = { redis = function() return Redis.start { config = "maxclients 3000\n" } end, nats = Nats.start }
  for name, start in pairs(STORES) do
    it("dial it at growing pauses, each in its own time, and are back soon: " .. name, function()
      local store, path = start(), tempdir() .. "/app.lua"
      write_file(path, APP)
      local app = Candidate.start { args = { path, name, tostring(store.port), tostring(COUNT) }, node = "many",
        log = path .. ".log", env = { CROWN_LOOP_HELD = path .. ".held" } }
      local function last()
        local there, dialled, most = app:output():match ".*THERE (%d+) DIALLED (%d+) MOST (%d+)\n"
        return tonumber(there), tonumber(dialled), tonumber(most)
      end
      local function are_there(count) return function() return last() == count or error(tostring((last()))) end end
      eventually(are_there(COUNT), 60)
      crown.sleep(2.5) -- they have proved good
      local before = select(2, last())
      store:down()
      eventually(are_there(0), 20)
      crown.sleep(AWAY)
      local _, after, most = last()
      store:up()
      eventually(are_there(COUNT), 60)
      local output = app:output()
      app:destroy()
      store:destroy()
      assert.is_nil(output:find("UNHEALTHY", 1, true))
      assert.is_nil(output:find("a task failed", 1, true))
      assert.is_true(after - before > COUNT and after - before < TRIES_MOST * COUNT, after - before .. " tries")
      assert.is_true(most < AT_ONCE_MOST * COUNT, most .. " at once")
      local held = read_file(path .. ".held") or ""
      for ms in held:gmatch "held for (%d+) ms" do assert.is_true(tonumber(ms) < HELD_MOST, held) end
    end)
  end
end)
