--- A barrier for what reads a connection: an error in it ends that connection, with its text, instead of leaving one behind
-- that is open and heard by nobody.
-- @internal crown.link.barrier

local core = require "crown.core"

local barrier = {}

local function first_line(problem)
  return (tostring(problem):match "^[^\n]*")
end

--- Calls a function; an error in it is an answer like any other.
-- @tparam function fn
-- @param ... its arguments
-- @return what it returns; or nil and a message
function barrier.call(fn, ...)
  local function settle(fine, first, ...)
    if fine then return first, ... end
    return nil, "an error here: " .. first_line(first)
  end
  return settle(pcall(fn, ...))
end

--- Runs a function in a task of its own.
-- @tparam function on_error called with the text of an error in it
-- @tparam function fn
-- @param ... its arguments
function barrier.detach(on_error, fn, ...)
  core.detach(function(...)
    local fine, problem = pcall(fn, ...)
    if not fine then on_error("an error here: " .. first_line(problem)) end
  end, ...)
end

return barrier
