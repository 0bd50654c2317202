--- For specs of oracles, handlers and apps, to be run by busted on crown-lua itself: `busted --lua=crown-lua`.
-- @module crown.testing

local testing = {
  conformance = require "crown.testing.conformance",
  eventually = require "crown.testing.eventually",
  fake_clock = require "crown.testing.clock",
  fake_oracle = require "crown.testing.oracle",
}

return testing
