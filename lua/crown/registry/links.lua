--- The links of one member: it dials every other one and sends by that connection alone, so what it sends to somebody arrives
-- in order; answers come back by the connection that the question went by. Who does not know the secret is not read
-- further; who talks nonsense is cut, and told of once.
-- @internal crown.registry.links

local core = require "crown.core"
local elector = require "crown.registry.elector"
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local Outbox = require "crown.link.outbox"
local Peer = require "crown.registry.peer"
local Strangers = require "crown.registry.strangers"
local tcp = require "crown.core.tcp"

local Links = {}
Links.__index = Links

--- What is told of somebody who takes nothing of what is sent to him.
Links.TAKES_NOTHING = "nothing of what is sent to it was taken for too long"

local WAITING_MOST = 256 * 1024 * 1024  -- bytes that wait for a slow member before it is cut
local IN_A_ROW = 32                     -- frames that are read before the loop gets its turn
local BYTES_IN_A_ROW = 65536            -- or bytes, if that is sooner
local SPENT_IN_A_ROW = 0.001            -- or seconds that are spent on what they say
local PATIENCE = 10                     -- seconds for the rest of a frame, and until some of what is sent is taken

--- Says what is wrong with a member, once for each cause.
-- @string who its id
-- @string problem
function Links:tell(who, problem)
  if self.told[who] == problem then return end
  self.told[who] = problem
  self.emit("oracle.registry.link_cut", { peer = who, error = problem })
end

-- What waits for somebody who takes it too slowly is given up with the link.
local function put(self, id, stream, out, head, text)
  if out.size <= self.waiting_most then return out:write(head, text) end
  self:tell(id, "it takes what is sent to it too slowly")
  stream:close()
end

-- One message goes to several members: it is encoded once.
local function encoded(self, message)
  local frame = self.encoded[message]
  if not frame then
    frame = { frames.parts(message) }
    self.encoded[message] = frame
  end
  return frame[1], frame[2]
end

--- Sends to a member; without a link, nothing happens.
-- @string id
-- @tparam table message
function Links:send(id, message)
  local link = self.up_links[id]
  if link then put(self, id, link.stream, link.outbox, encoded(self, message)) end
end

--- Bytes that are still to go to a member.
-- @string id
-- @treturn number
function Links:waiting(id)
  local link = self.up_links[id]
  return link and link.outbox.size or 0
end

--- Ends the links to and from all members; they are made anew.
-- @string problem why
function Links:cut(problem)
  for id, link in pairs(self.up_links) do
    self:tell(id, problem)
    link:close(problem)
  end
  for _, stream in pairs(self.incoming) do stream:close() end
end

local function outbox(self, id, stream)
  stream:set_timeout(self.patience)
  return Outbox.new(stream, function(_, code)
    if code == "timeout" then self:tell(id, Links.TAKES_NOTHING) end
    stream:close()
  end)
end

--- Reads a connection's frames, one a call. Those that are there already are read without a wait: a peer that sends many must not
-- keep the loop from the rest.
-- @param stream
-- @treturn function → message; or nil, message, code
function Links:reader(stream)
  local count, bytes, spent, since = 0, 0, 0, core.now()
  return function()
    spent = spent + core.now() - since
    if count >= IN_A_ROW or bytes >= BYTES_IN_A_ROW or spent >= SPENT_IN_A_ROW then
      core.sleep(0)
      count, bytes, spent = 0, 0, 0
    end
    local message, problem, code, size = frames.read(stream, frames.MOST, 3 * self.every, self.patience)
    count, bytes, since = count + 1, bytes + (size or 0), core.now()
    return message, problem, code
  end
end

local PONG = frames.encode { kind = "pong" }

--- Says whom to have links to.
-- @tparam table peers addresses (`host:port`) by id
function Links:set_peers(peers)
  for id, peer in pairs(self.peers) do
    local function forget()
      if self.peers[id] == peer then self.peers[id] = nil end
    end
    if not peers[id] then
      peer:linger(self.linger, forget)
    elseif peers[id] ~= peer.address then
      peer:close()
      forget()
    else
      peer:stay()
    end
  end
  for id, address in pairs(peers) do
    self.peers[id] = self.peers[id] or Peer.new(self, id, address)
  end
end

-- Whoever has much to read comes late to a ping behind it, and says meanwhile that he is at it.
local function signs_of_life(self, out)
  local said = core.now()
  return function(asked)
    local now = core.now()
    if not asked and now - said < self.every then return end
    said = now
    out:write(PONG)
  end
end

local function serve(self, stream, id, out)
  local function reply(message)
    put(self, id, stream, out, frames.parts(message))
  end
  local function waiting() return out.size end
  local read, live = self:reader(stream), signs_of_life(self, out)
  while self.incoming[id] == stream do
    local message, problem, code = read()
    if not message then
      if code == "nonsense" then self:tell(id, problem) end
      return
    end
    live(message.kind == "ping")
    if message.kind ~= "ping" and self.incoming[id] == stream then
      local fine
      fine, problem = self.receive(id, message, reply, waiting)
      if not fine then return self:tell(id, problem) end
    end
  end
end

-- A second runtime under a name in use must not knock the links of the first one out.
local function refused(self, id, runtime)
  local known = self.runtime_of(id)
  if self.incoming[id] and known and known ~= runtime then return elector.TAKEN end
end

-- Whoever shows at once that he knows the secret has a place apart from the strangers: they may come more quickly than he can
-- prove it. Somebody may have recorded that, so there are so many places for each id, too, and the rest is still to be proved.
local function admit(self, stream)
  local stranger, pause = self.strangers:enter(stream)
  if pause > 0 then self.listener:pause(pause) end
  local knowing
  stream:set_timeout(handshake.TIMEOUT)
  local fine, id, problem, code = pcall(handshake.accept, stream, self.who, handshake.TIMEOUT,
    function(...) return refused(self, ...) end, function(claimed)
      self.strangers:leave(stranger)
      knowing = self.knowing:enter(stream, claimed)
    end)
  self.strangers:leave(stranger)
  if knowing then self.knowing:leave(knowing) end
  if not fine then error(id, 0) end
  if id then return id end
  if code == "denied" or code == "nonsense" then self.strangers:tell(stranger.address, problem) end
end

-- A member that dials anew has given its older connection up: nothing more is read from that.
local function accept(self, stream)
  if self.closed then return stream:close() end
  local id = admit(self, stream)
  if id and not self.closed then
    if self.incoming[id] then self.incoming[id]:close() end
    self.incoming[id] = stream
    self.dialled(id, true)
    local fine, problem = pcall(serve, self, stream, id, outbox(self, id, stream))
    if not fine then self:tell(id, problem) end
    if self.incoming[id] == stream then
      self.incoming[id] = nil
      self.dialled(id, false)
    end
  end
  stream:close()
end

--- Opens the listener.
-- @tparam table options `who` (`registry`, `id`, `secret`, `runtime`), `host`, `port` (0: any), `tls` (a table: `cert`,
-- `key`, `ca`), `every` seconds between signs of life; `linger` seconds that a link to somebody who is a member no more stays
-- up; `receive(id, message, reply, waiting)` and `answered(id, message)` return true, or nil and why what came is nonsense;
-- `runtime_of(id)`: that of a member; `up(id)`, `down(id)`; `dialled(id, there)`: whether a member has a link to this one;
-- `emit(event, fields)`; `patience` seconds until some of what is
-- sent is taken, `waiting_most` bytes that wait for somebody
-- @treturn Links or nil, message, code
function Links.open(options)
  local self = setmetatable({ peers = {}, up_links = {}, incoming = {}, told = {}, strangers = Strangers.new(options.emit),
    knowing = Strangers.new(options.emit), patience = PATIENCE, waiting_most = WAITING_MOST,
    encoded = setmetatable({}, { __mode = "k" }) }, Links)
  for key, value in pairs(options) do self[key] = value end
  local listener, problem, code = tcp.listen(options.host, options.port, function(stream) accept(self, stream) end,
    { background = true, tls = options.tls })
  if not listener then return nil, problem, code end
  self.listener = listener
  self.port = listener:port()
  return self
end

--- Closes everything.
function Links:close()
  self.closed = true
  self.listener:close()
  for _, peer in pairs(self.peers) do peer:close() end
  self.peers = {}
  for _, stream in pairs(self.incoming) do stream:close() end
end

return Links
