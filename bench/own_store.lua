--- Failover on a store of one's own, wherever it is: two candidates here, which take turns there.
local Cluster = require "support.cluster"
local probe = require "probe"
local ticks = require "support.ticks"

local FIRST = 300 -- seconds until somebody leads there for the first time: a new store is sat out

-- The election is called as no other.
local APP = [[
local crown = require "crown"
local command = { unpack(arg, 2) }
crown.elect { name = "crown-lua-bench", oracle = arg[1], child = command }
]]

local function lead_once(options)
  local cluster = Cluster.new(options)
  cluster:join "one"
  ticks.await(cluster.ticks, 0, FIRST)
  cluster:destroy()
end

return function(measure, url)
  local options, known = { url = url, app = APP, patience = FIRST }, false
  local row = probe.rows(measure, function()
    if not known then lead_once(options) end
    known = true
    return options
  end)
  probe.leader_rows(row, "own store", { "", "", "" })
end
