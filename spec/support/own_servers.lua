--- The servers that a test starts for itself, and that end with it.

--- Makes a way to start them.
-- @tparam function start a server of some kind, as support.redis, support.nats and the like do
-- @treturn function start, with the same arguments
-- @treturn function for after_each: destroys what was started since the last time
local function own_servers(start)
  local all = {}
  local function destroy()
    local mine = all
    all = {}
    for _, one in ipairs(mine) do one:destroy() end
  end
  return function(...)
    all[#all + 1] = start(...)
    return all[#all]
  end, destroy
end

return own_servers
