--- A Postgres that goes by a clock of its own.
local busted = require "busted"
local Postgres = require "support.postgres"
local WrongClock = require "support.wrong_clock"

--- Gives a describe block one. Before each spec its clock is put right, and it is emptied.
-- @tparam function take called with the server and the clock of support.wrong_clock, once
return function(take)
  local server, clock
  busted.setup(function()
    clock = WrongClock.new(0)
    server = Postgres.start { clock = clock, config = "max_connections = 300" } -- candidates of all specs stay connected
    take(server, clock)
  end)
  busted.teardown(function() server:destroy() end)
  busted.before_each(function()
    clock:set(0)
    server:empty()
  end)
end
