--- What tells a ZooKeeper that has lost its memory: how far its transactions had come, and a node of ours, PATH/@crown, with a
-- text that nobody else makes and the word "new" or "old". While it says "new", nobody new leads there: somebody may have
-- emptied the ensemble while a leader acts. A candidate that has seen it stand for long enough writes "old". No clock of a
-- server counts.
-- @internal crown.zookeeper.memory

local nonce = require "crown.text.nonce"
local wire = require "crown.zookeeper.wire"

local memory = {}

local NEW, OLD = "new", "old"
local STRANGE = "the node %s was overwritten: delete it, and every candidate waits for amnesia_wait"

--- The node.
-- @string path of the URL
-- @treturn string
function memory.node(path)
  return path .. "/@crown"
end

--- Makes the nodes that a path names, the last one too.
-- @tparam Connection connection
-- @number timeout
-- @string path
-- @string acl of crown.zookeeper.wire
-- @string kind "create" or "container"
-- @number flags
-- @treturn boolean true; or nil, message, code
function memory.make_path(connection, timeout, path, acl, kind, flags)
  local at = 1
  while at do
    at = path:find("/", at + 1, true)
    local one = at and path:sub(1, at - 1) or path
    local made, problem, code = connection:ask(timeout, kind, one, "", acl, flags)
    if not made and code == wire.UNKNOWN and kind == "container" then
      return memory.make_path(connection, timeout, path, acl, "create", wire.PERSISTENT) -- older than 3.5.1
    end
    if not made and code == wire.NO_AUTH and at then made = true end -- above ours there may be a right only to go through
    if not made and code ~= wire.EXISTS then return nil, ("%s: %s"):format(one, problem), code end
  end
  return true
end

local function make(self, connection)
  local node, path = memory.node(self.parsed.path), self.parsed.path
  if path ~= "" then
    local fine, problem, code = memory.make_path(connection, self.timeout, path, self.acl, "create", wire.PERSISTENT)
    if not fine then return nil, problem, code end
  end
  local text = ("%s %s"):format(nonce(), self.trust_empty and OLD or NEW)
  local made, problem, code = connection:ask(self.timeout, "create", node, text, self.acl, wire.PERSISTENT)
  if not made and code ~= wire.EXISTS then return nil, ("%s: %s"):format(node, problem), code end
  return connection:ask(self.timeout, "get", node, true)
end

-- @return its two words; or nil
local function read_text(text)
  local identity, word = text:match "^(%S+) (%l+)$"
  if word == NEW or word == OLD then return identity, word end
end

--- What is wrong with the node, for a tool.
-- @string path of the URL
-- @string text of the node
-- @treturn string or nil
function memory.trouble(path, text)
  if not read_text(text) then return STRANGE:format(memory.node(path)) end
end

-- @return what stands there; or nil, message, code
local function read(self, connection)
  local node = memory.node(self.parsed.path)
  local found, problem, code = connection:ask(self.timeout, "get", node, true)
  if code == wire.NO_NODE then found, problem, code = make(self, connection) end
  if not found then return nil, ("%s: %s"):format(node, problem), code end
  local identity, word = read_text(found.data)
  if not identity then return nil, STRANGE:format(node), "store" end
  return { identity = identity, is_new = word == NEW, version = found.stat.version }
end

-- Newcomers shall wait as well.
local function doubt_for_all(self, connection, found)
  if found.is_new then return end
  local identity = nonce()
  local made = connection:ask(self.timeout, "set", memory.node(self.parsed.path), ("%s %s"):format(identity, NEW), found.version)
  if made then self.trust.identity = identity end
end

--- Looks at it, on a connection whose server has caught up with its ensemble.
-- @tparam Session self of crown.zookeeper.session
-- @tparam Connection connection
-- @bool went_back whether transactions that were seen are missing there
-- @treturn boolean whether this is the memory that there was before, nil where it is not known: then message and code
function memory.look(self, connection, went_back)
  local found, problem, code = read(self, connection)
  if not found then return nil, problem, code end
  local _, is_other = self.trust:saw { identity = found.identity }
  local wait = math.max(self.amnesia_wait, self.trust.longest)
  if went_back or is_other then
    self.trust:lost(wait)
    doubt_for_all(self, connection, found)
    return false
  end
  if found.is_new and self.trust.sat_out ~= found.identity then
    self.trust.sat_out = found.identity
    self.trust:lost(wait)
  elseif not found.is_new and self.trust.sat_out == found.identity then
    self.trust.until_then = nil -- another candidate has sat it out
  end
  self.mark = found.is_new and found or nil
  return true
end

--- Writes that the memory is no longer new, once that has been sat out.
-- @tparam Session self
-- @tparam Connection connection
function memory.ripen(self, connection)
  local mark = self.mark
  if not mark or self.trust:left() > 0 then return end
  local _, _, code = connection:ask(self.timeout, "set", memory.node(self.parsed.path),
    ("%s %s"):format(mark.identity, OLD), mark.version)
  if code ~= "closed" and code ~= "timeout" then self.mark = nil end
end

return memory
