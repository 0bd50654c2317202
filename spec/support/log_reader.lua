--- Reads what a member of a registry has written since it was looked at last, and counts what matters: each line once.
local Reader = {}
Reader.__index = Reader

--- Makes one that has nothing to read yet.
-- @treturn Reader
function Reader.new()
  return setmetatable({ at = 0, thrown = 0, missed = 0 }, Reader)
end

local function take(self, line)
  local port = line:match "^control port (%d+)"
  if port then self.life = port end -- each process has its own
  if line:find("oracle.registry.thrown_out", 1, true) then self.thrown = self.thrown + 1 end
  if line:find("oracle.registry.names_missed", 1, true) then self.missed = self.missed + 1 end
end

--- Reads on.
-- @treturn Reader itself: `life` tells this process from the one before; `thrown` and `missed`: how often
function Reader:look()
  local file = self.path and io.open(self.path)
  if not file then return self end
  file:seek("set", self.at)
  local text = (file:read "*a" or ""):match "^.*\n"
  file:close()
  if not text then return self end
  self.at = self.at + #text
  for line in text:gmatch "[^\n]+" do take(self, line) end
  return self
end

--- Reads another file from now on: the counts go on.
-- @string path
function Reader:follow(path)
  self:look()
  self.path, self.at = path, 0
end

return Reader
