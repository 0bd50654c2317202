--- An election in Consul: as `consul lock` has it, `consul://HOST/PREFIX`, or as a register in Consul's keys,
-- `consul://HOST/PREFIX?recipe=register`. See docs/oracle-consul.md.
-- @module crown.oracles.consul

local lock = require "crown.consul.election"
local register = require("crown.oracle.driven").oracle(require "crown.stores.consul")

--- The oracle of a recipe.
-- @tparam table options as they are given, `recipe` among them
-- @treturn table the module
function lock.chosen(options)
  return options.recipe == "register" and register or lock
end

return lock
