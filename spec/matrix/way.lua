--- A client's way to one real server, as a proxy is: until some step of what they say to each other is reached it is well, and from
-- then on, on that connection, it plays a trick. Once it is told to be well, connections that are opened from then on are; the
-- others stay as they are.
local crown = require "crown"
local port = require "support.port"
local tricks = require "matrix.tricks"

local Way = {}
Way.__index = Way

local LONG = 3600 -- seconds

-- Whether the cell's step is reached with these bytes; nil: with the connection itself.
local function is_reached(self, bytes)
  local cell = self.cell
  if self.well or cell.trick == nil then return false end
  local step = self.steps[cell.step]
  if not step or (step.armed and not cell.armed) or (bytes == nil) ~= (step.says == nil) then return false end
  return bytes == nil or bytes:find(step.says:gsub("NAME", cell.name), 1, true) ~= nil
end

local function begin(self, pair)
  pair.trick = tricks[self.cell.trick]
  self.cell.struck = (self.cell.struck or 0) + 1
end

-- What a server says of where servers are, as it has to read for whoever comes this way.
local function rewrite(self, bytes)
  for number, other in pairs(self.cell.ways) do
    bytes = bytes:gsub("%f[%d]" .. number .. "%f[%D]", tostring(other.port))
  end
  return bytes
end

local function pump_back(self, pair)
  for bytes in function() return not pair.closed and pair.far:read("*s", LONG) or nil end do
    if self.frozen then return end
    bytes = rewrite(self, bytes)
    if not pair.trick then
      pair.near:write(bytes)
    elseif pair.trick.answer then
      pair.trick.answer(pair, bytes, self.client)
    end
  end
  if not pair.trick and not self.frozen then pair.close() end -- one that plays a trick keeps what it has
end

local function pump_there(self, pair)
  for bytes in function() return not pair.closed and pair.near:read("*s", LONG) or nil end do
    if self.frozen then return end
    local reached = not pair.trick and is_reached(self, bytes)
    if reached then begin(self, pair) end
    if not (pair.trick and pair.trick.deaf) and not pair.far:write(bytes) then break end
    if reached and pair.trick.at_once then pair.trick.at_once(pair) end
  end
  if not self.frozen then pair.close() end
end

local function new_pair(self, near)
  local pair = { near = near }
  function pair.close()
    if pair.closed then return end
    pair.closed = true
    self.pairs[pair] = nil
    self.open = self.open - 1
    near:close()
    if pair.far then pair.far:close() end
  end
  self.pairs[pair] = true
  self.open = self.open + 1
  self.most = math.max(self.most, self.open)
  return pair
end

local function accept(self, near)
  local pair = new_pair(self, near)
  near:set_timeout(LONG)
  if self.frozen then return end
  if is_reached(self, nil) then begin(self, pair) end
  pair.far = crown.tcp.connect("127.0.0.1", self.target, { timeout = 5 })
  if not pair.far or pair.closed then return pair.close() end
  pair.far:set_timeout(LONG)
  crown.spawn(pump_back, self, pair)
  if pair.trick and pair.trick.at_once then pair.trick.at_once(pair) end
  pump_there(self, pair)
end

--- Opens one.
-- @number target the server's port
-- @tparam table cell `name`, `step`, `trick` (nil: it is well), `armed`, `ways`: those of the cell, by their servers' ports;
-- `struck` counts
-- @tparam table client of matrix.clients
-- @tparam table steps of this server: `says`: the step is reached when the client says that; without it, when it connects;
-- `armed`: not before the cell is
-- @treturn Way with `port`; `open` counts its connections, and `most` is how many it has had at once
function Way.open(target, cell, client, steps)
  local self = setmetatable({ target = target, cell = cell, client = client, steps = steps, port = port.free(), pairs = {},
    open = 0, most = 0 }, Way)
  self.listener = assert(crown.tcp.listen("127.0.0.1", self.port, function(near) accept(self, near) end))
  return self
end

--- From now on it is like a process that was stopped: it takes connections, reads nothing, and closes none, whoever ends them.
function Way:freeze() self.frozen = true end

function Way:close()
  self.listener:close()
  for pair in pairs(self.pairs) do pair.close() end
end

return Way
