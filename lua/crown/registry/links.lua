--- The links of one member: it dials every other one and sends by that connection alone, so what it sends to somebody arrives
-- in order; answers come back by the connection that the question went by. Who does not know the secret is not read
-- further; who talks nonsense is cut, and told of once.
-- @module crown.registry.links

local barrier = require "crown.link.barrier"
local conditions = require "crown.link.conditions"
local core = require "crown.core"
local elector = require "crown.registry.elector"
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local Outbox = require "crown.link.outbox"
local Strangers = require "crown.registry.strangers"
local tcp = require "crown.core.tcp"
local url = require "crown.text.url"

local Links = {}
Links.__index = Links

local HANDSHAKE = 3                     -- seconds for each of its steps
local WAITING_MOST = 256 * 1024 * 1024  -- bytes that wait for a slow member before it is cut
local FIRST_PAUSE, MOST_PAUSE = 0.02, 1 -- seconds between dials
local SETTLED = 2                       -- seconds of life that prove a link
local IN_A_ROW = 32                     -- frames that are read before the loop gets its turn
local BYTES_IN_A_ROW = 65536            -- or bytes, if that is sooner
local PATIENCE = 10                     -- seconds for the rest of a frame, and until some of what is sent is taken

local function tell(self, who, problem)
  if self.told[who] == problem then return end
  self.told[who] = problem
  self.emit("oracle.registry.link_cut", { peer = who, error = problem })
end

-- What waits for somebody who takes it too slowly is given up with the link.
local function put(self, id, stream, out, bytes)
  if out.size <= self.waiting_most then return out:write(bytes) end
  tell(self, id, "it takes what is sent to it too slowly")
  stream:close()
end

local function send(self, link, bytes)
  put(self, link.id, link.stream, link.outbox, bytes)
end

-- One message goes to several members: it is encoded once.
local function encoded(self, message)
  local bytes = self.encoded[message]
  if not bytes then
    bytes = frames.encode(message)
    self.encoded[message] = bytes
  end
  return bytes
end

--- Sends to a member; without a link, nothing happens.
-- @string id
-- @tparam table message
function Links:send(id, message)
  local link = self.up_links[id]
  if link then send(self, link, encoded(self, message)) end
end

--- Bytes that are still to go to a member.
-- @string id
-- @treturn number
function Links:waiting(id)
  local link = self.up_links[id]
  return link and link.outbox.size or 0
end

local function outbox(self, id, stream)
  stream:set_timeout(self.patience)
  return Outbox.new(stream, function(_, code)
    if code == "timeout" then tell(self, id, "nothing of what is sent to it was taken for too long") end
    stream:close()
  end)
end

-- Frames that are there already are read without a wait: a peer that sends many must not keep the loop from the rest.
local function reader(self, stream)
  local count, bytes = 0, 0
  return function()
    if count >= IN_A_ROW or bytes >= BYTES_IN_A_ROW then
      core.sleep(0)
      count, bytes = 0, 0
    end
    local message, problem, code, size = frames.read(stream, frames.MOST, 3 * self.every, self.patience)
    count, bytes = count + 1, bytes + (size or 0)
    return message, problem, code
  end
end

local PING, PONG = frames.encode { kind = "ping" }, frames.encode { kind = "pong" }

local function ping(self, link)
  while not link.closed do
    core.sleep(self.every)
    if not link.closed then send(self, link, PING) end
  end
end

local function read_answers(self, link)
  local read = reader(self, link.stream)
  while true do
    local message, problem, code = read()
    if not message then return problem, code end
    link.peer.heard = core.now()
    if message.kind ~= "pong" then
      local fine
      fine, problem = self.answered(link.id, message)
      if not fine then return problem, "nonsense" end
    end
  end
end

-- A member that we have, or want, a link to.
local Peer = {}
Peer.__index = Peer

function Peer:enter(state, problem)
  self.state, self.since, self.problem = state, core.now(), problem
end

--- How its link is: see crown.link.conditions.
function Peer:condition()
  local state = self.state
  if state == "open" and core.now() - self.since >= SETTLED then state = "proven" end
  return { store = "registry", server = self.id .. " " .. self.address, state = state, since = self.since, heard = self.heard,
    reconnects = self.reconnects, problem = state ~= "proven" and self.problem or nil }
end

local function dial_once(self, peer)
  local host, port = url.address(peer.address)
  if not host then return nil, ("'%s' is no address"):format(peer.address) end
  local stream, problem, code = tcp.connect(host, port, { timeout = HANDSHAKE, tls = self.tls })
  if not stream then return nil, problem, code end
  stream:set_timeout(HANDSHAKE)
  peer:enter("logging in", peer.problem)
  local fine
  fine, problem, code = barrier.call(handshake.dial, stream, self.who, peer.id, HANDSHAKE)
  if not fine then
    stream:close()
    return nil, problem, code
  end
  return stream
end

local function hold(self, peer, stream)
  local link = { id = peer.id, peer = peer, stream = stream, outbox = outbox(self, peer.id, stream) }
  peer.link, self.up_links[peer.id], self.told[peer.id] = link, link, nil
  core.detach(ping, self, link)
  peer:enter("open", peer.problem)
  self.up(peer.id)
  local fine, problem, code = pcall(read_answers, self, link)
  link.closed = true
  stream:close()
  peer.link, self.up_links[peer.id] = nil, nil
  peer.reconnects = peer.reconnects + 1
  peer:enter("broken", tostring(problem))
  if not fine or code == "nonsense" then tell(self, peer.id, problem) end
  self.down(peer.id)
end

local function dial(self, peer)
  local pause = FIRST_PAUSE
  while not peer.over and not self.closed do
    peer:enter("connecting", peer.problem)
    local stream, problem, code = dial_once(self, peer)
    if stream and not peer.over and not self.closed then
      local up = core.now()
      hold(self, peer, stream)
      if core.now() - up >= SETTLED then pause = FIRST_PAUSE end -- else it is like a dial that failed
    elseif stream then
      stream:close()
    else
      peer:enter("broken", problem)
      if code == "denied" or code == "nonsense" then tell(self, peer.id, problem) end
    end
    core.sleep(pause * (0.5 + math.random() / 2))
    pause = math.min(pause * 2, MOST_PAUSE)
  end
end

local function let_go(self, peer)
  peer.over = true
  conditions.remove(peer)
  if peer.link then peer.link.stream:close() end
  if self.peers[peer.id] == peer then self.peers[peer.id] = nil end
end

local function linger(self, peer)
  if peer.leaving then return end
  local leaving = {}
  peer.leaving = leaving
  core.detach(function()
    core.sleep(self.linger)
    if peer.leaving == leaving then let_go(self, peer) end
  end)
end

--- Says whom to have links to.
-- @tparam table peers addresses (`host:port`) by id
function Links:set_peers(peers)
  for id, peer in pairs(self.peers) do
    if not peers[id] then
      linger(self, peer)
    elseif peers[id] ~= peer.address then
      let_go(self, peer)
    else
      peer.leaving = nil
    end
  end
  for id, address in pairs(peers) do
    if not self.peers[id] then
      local peer = setmetatable({ id = id, address = address, reconnects = 0 }, Peer)
      peer:enter "connecting"
      self.peers[id] = peer
      conditions.add(peer)
      core.detach(dial, self, peer)
    end
  end
end

local function serve(self, stream, id, out)
  local function reply(message)
    put(self, id, stream, out, frames.encode(message))
  end
  local function waiting() return out.size end
  local read = reader(self, stream)
  while self.incoming[id] == stream do
    local message, problem, code = read()
    if not message then
      if code == "nonsense" then tell(self, id, problem) end
      return
    end
    if message.kind == "ping" then
      out:write(PONG)
    elseif self.incoming[id] == stream then
      local fine
      fine, problem = self.receive(id, message, reply, waiting)
      if not fine then return tell(self, id, problem) end
    end
  end
end

-- A second runtime under a name in use must not knock the links of the first one out.
local function refused(self, id, runtime)
  local known = self.runtime_of(id)
  if self.incoming[id] and known and known ~= runtime then return elector.TAKEN end
end

local function admit(self, stream)
  local stranger = self.strangers:enter(stream)
  if not stranger then return nil end
  stream:set_timeout(HANDSHAKE)
  local fine, id, problem, code = pcall(handshake.accept, stream, self.who, HANDSHAKE,
    function(...) return refused(self, ...) end)
  self.strangers:leave(stranger)
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
    local fine, problem = pcall(serve, self, stream, id, outbox(self, id, stream))
    if not fine then tell(self, id, problem) end
    if self.incoming[id] == stream then self.incoming[id] = nil end
  end
  stream:close()
end

--- Opens the listener.
-- @tparam table options `who` (`registry`, `id`, `secret`, `runtime`), `host`, `port` (0: any), `tls` (a table: `cert`,
-- `key`, `ca`), `every` seconds between signs of life; `linger` seconds that a link to somebody who is a member no more stays
-- up; `receive(id, message, reply, waiting)` and `answered(id, message)` return true, or nil and why what came is nonsense;
-- `runtime_of(id)`: that of a member; `up(id)`, `down(id)`, `emit(event, fields)`; `patience` seconds until some of what is
-- sent is taken, `waiting_most` bytes that wait for somebody
-- @treturn Links or nil, message, code
function Links.open(options)
  local self = setmetatable({ peers = {}, up_links = {}, incoming = {}, told = {}, strangers = Strangers.new(options.emit),
    patience = PATIENCE, waiting_most = WAITING_MOST, encoded = setmetatable({}, { __mode = "k" }) }, Links)
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
  for _, peer in pairs(self.peers) do let_go(self, peer) end
  for _, stream in pairs(self.incoming) do stream:close() end
end

return Links
