--- How long a share of `crown.shares` stands still while it moves to a node that has come: from the old child's last tick to the
-- new child's first.
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local oracle = require "crown.election.contract"
local ticks = require "support.ticks"

local PATIENCE = 20 -- seconds until both shares are led, and until one has moved
local SHARES = 2

local APP = [[
require("crown").shares { name = "spec", count = tonumber(arg[1]), oracle = { arg[2], ttl = tonumber(os.getenv "TTL") },
  child = { "sh", "-c", 'exec "$1" "$2.$CROWN_SHARE" "$3"', "sh", unpack(arg, 3) } }
]]

local function args_of(url)
  return function(cluster) return { cluster.dir .. "/app.lua", SHARES, url, cluster.ticker, cluster.ticks, "plain" } end
end

-- @return the share's file of ticks when its new leader ticks
local function moved(paths)
  for _, path in ipairs(paths) do
    local terms = ticks.terms(path)
    if #terms > 1 and terms[#terms].node == "two" then return path end
  end
end

-- @return milliseconds without a tick; those in which two ticked
local function move(url, ttl)
  local cluster, paths = Cluster.new { url = url, ttl = ttl, app = APP, args = args_of(url) }, {}
  for share = 1, SHARES do paths[share] = ("%s.%d"):format(cluster.ticks, share) end
  cluster:join "one"
  for _, path in ipairs(paths) do ticks.await(path, 0, PATIENCE) end
  cluster:join "two"
  local path = eventually(function() return moved(paths) end, PATIENCE)
  ticks.settle(path)
  local terms = ticks.terms(path)
  local value, overlap = terms[#terms].first - terms[#terms - 1].last, ticks.overlap(path)
  cluster:destroy()
  return value * 1000, overlap * 1000
end

--- Rows for a share's move, where the store takes orders.
-- @tparam function measure of main.lua
-- @string name of the store
-- @string url the candidates' way to it
-- @number[opt] ttl of the lease in seconds
return function(measure, name, url, ttl)
  if not oracle.find("bench", url).order then return end
  local worst = 0
  local row = name .. ", a share's move, beyond the child's last tick"
  measure(row, "≤ 40", function()
    local value, overlap = move(url, ttl)
    worst = math.max(worst, overlap)
    return value
  end)
  measure(row .. ": both ticking (worst of all)", "0", function() return worst end, 1)
end
