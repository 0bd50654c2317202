-- A candidate in many elections: crown-lua app.lua PLAN, a file with JSON: `ticker`; `control`: a port; `elections`: each has a
-- `name`, an `oracle`, `ticks`: a file, and `asks`: it asks at the control port when it has won for the first time, and waits for an
-- answer, "ok" or "abdicate". A healthy election is beside, in its own memory.
package.path = "spec/?.lua;" .. package.path
local crown = require "crown"
local plan = require "matrix.beside" (arg[1])

local function ask(name)
  local connection = assert(crown.tcp.connect("127.0.0.1", plan.control))
  connection:write(name .. "\n")
  local answer = connection:read("*l", 20)
  connection:close()
  return answer
end

for _, one in ipairs(plan.elections) do
  local election
  local asked = not one.asks
  election = crown.elect { name = one.name, oracle = one.oracle, stop_timeout = 0.3, retry = 0.3,
    child = { command = { plan.ticker, one.ticks, "seldom" } }, handlers = { won = function()
      if asked then return end
      asked = true
      if ask(one.name) == "abdicate" then election:abdicate() end
    end } }
end
