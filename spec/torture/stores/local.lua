--- The stores without a server of somebody else's: the lock file, and the example's HTTP lease server.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local server_faults = require "torture.server_faults"
local tempdir = require "support.tempdir"

local stores = {}

local TTL = 2

function stores.http()
  local number, process = port.free(), nil
  local function up(sit_out)
    process = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua", number, sit_out }, node = "server",
      log = tempdir() .. "/log" }
    eventually(function() return process:output():find "port %d" end, 10)
  end
  local function down()
    process:hurt("KILL", "supervise", "runtime")
    process:wait(20)
  end
  up(0)
  local store = { ttl = TTL, cost = 4 * TTL + 2, ports = { function() return number end },
    server = { destroy = function() process:destroy() end } }
  function store.url(of) return ("http://127.0.0.1:%d/locks"):format(of or number) end
  store.faults = server_faults.of { down = down, up = function() up(TTL) end,
    freeze = function() process:hurt("STOP", "runtime", "supervise") end,
    thaw = function() process:hurt("CONT", "runtime", "supervise") end }
  return store
end

function stores.file()
  local dir = tempdir() .. "/locks"
  local store = { ttl = TTL, cost = 12, dir = dir, faults = {}, server = { destroy = function() end } }
  function store.url() return "file:" .. dir end
  for name, what in pairs { lock = "spec.lock", record = "spec.json" } do
    store.faults["remove_" .. name] = { weight = 1, begin = function(world)
      world:say("remove %s", what)
      os.remove(dir .. "/" .. what)
    end }
  end
  store.faults.remove_all = { weight = 1, begin = function(world)
    world:say "remove all files"
    world.anew = true -- where nobody holds the lock nothing knows the epoch any more, as the page says
    assert(os.execute(("rm -rf %s/*"):format(dir)) == 0)
  end }
  store.faults.older_record = { weight = 1, begin = function(world)
    world:say "the record is put back as it was"
    local record, copy = dir .. "/spec.json", dir .. "/../record"
    assert(os.execute(("cp -p %s %s"):format(record, copy)) == 0)
    return function() assert(os.rename(copy, record)) end
  end }
  store.faults.evict = server_faults.evict()
  return store
end

return stores
