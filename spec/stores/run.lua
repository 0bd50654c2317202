--- Plays every table of spec/stores/cases on one store: `require "stores.run" "redis"` is a whole spec file.
local busted = require "busted"
local drivers = require "stores.drivers"
local Play = require "stores.play"

-- Those of long leases last: a store that may have forgotten is sat out for the longest TTL that it has heard of.
local TABLES = { "leads", "ends", "forgets", "clocks", "by_hand", "outages", "evicts", "orders", "prefers", "runs", "silence" }

-- Why a store has no such table, or nil. A driver that has neither the means nor a reason is not finished.
local function reason(driver, needs)
  for _, need in ipairs(needs or {}) do
    if not driver.hurt[need] then
      return assert(driver.lacks[need], ("stores.drivers: '%s' has no '%s', and says not why"):format(driver.name, need))
    end
  end
end

local function describe_table(start, one, title)
  busted.describe(one.title, function()
    for _, each in ipairs(one.cases) do
      busted.it(each[1], function()
        local driver = start()
        local why = reason(driver, each.needs or one.needs)
        if why then return busted.pending(why) end
        local play = Play.new(driver, { title = title .. " / " .. each[1], ttl = each.ttl or one.ttl, line = each[2],
          again = each.again })
        local fine, problem = pcall(play.run, play)
        play:close()
        if not fine then error(problem, 0) end
      end)
    end
  end)
end

--- Describes them all.
-- @string name of the store
return function(name)
  busted.describe(name, function()
    local driver
    local function start()
      driver = driver or drivers.start(name)
      return driver
    end
    for _, word in ipairs(TABLES) do describe_table(start, require("stores.cases." .. word), word) end
    busted.teardown(function()
      if driver then driver:destroy() end
    end)
  end)
end
