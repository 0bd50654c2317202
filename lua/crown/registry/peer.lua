--- A member that we have, or want, a link to: dialled, and dialled anew when the link breaks.
-- @internal crown.registry.peer

local barrier = require "crown.link.barrier"
local Connection = require "crown.link.connection"
local core = require "crown.core"
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local Reconnecting = require "crown.link.reconnecting"
local retry = require "crown.core.retry"
local url = require "crown.text.url"

local Link = Connection.extend()

local FIRST_PAUSE, MOST_PAUSE = 0.02, 1 -- seconds between dials
local SILENCE = 2 -- times the patience, after which the kernel cuts what we did not
local PING = frames.encode { kind = "ping" }

-- Who hears that a link is up hears of its end, too: give_up.
local function come_up(self)
  if self.closed then return end
  local links = self.links
  self.up, links.up_links[self.id], links.told[self.id] = true, self, nil
  links.up(self.id)
end

local function read_answers(self)
  core.atomic(come_up, self)
  local read = self.links:reader(self.stream)
  while true do
    local message, problem, code = read()
    if not message then return problem, code end
    self.heard = core.now()
    if message.kind ~= "pong" then
      local fine
      fine, problem = self.links.answered(self.id, message)
      if not fine then return problem, "nonsense" end
    end
  end
end

function Link:read_all()
  local fine, problem, code = pcall(read_answers, self)
  if not fine or code == "nonsense" then self.links:tell(self.id, problem) end
  self:close(tostring(problem))
end

function Link:failed(why, code)
  if code == "timeout" then self.links:tell(self.id, self.links.TAKES_NOTHING) end
  self:close(why)
end

-- Whether it is heard of is the reader's to know; the other side has to hear of us, too.
local function ping(self)
  while not self.closed do
    self.over:wait(self.links.every)
    if not self.closed then self:write(PING) end
  end
end

function Link:keep_alive()
  self.heard = core.now()
  core.detach(ping, self)
end

function Link:give_up()
  if not self.up then return end
  self.links.up_links[self.id] = nil
  core.detach(self.links.down, self.id) -- whoever closes it may be the one who is told
end

local Peer = {}
Peer.__index = Peer

-- What is wrong with who is there is told; that nobody is there, the link's condition shows.
local function refused(peer, problem, code)
  if code == "denied" or code == "nonsense" then peer.links:tell(peer.id, problem) end
  return nil, problem
end

local function open(peer, reconnecting)
  local links = peer.links
  local host, port = url.address(peer.address)
  if not host then return nil, ("'%s' is no address"):format(peer.address) end
  local link, problem = Connection.dial(Link, host, port, { timeout = handshake.TIMEOUT, silence = SILENCE * links.patience,
    tls = links.tls, link = reconnecting })
  if not link then return nil, problem end
  link.id, link.links = peer.id, links
  local fine, code
  fine, problem, code = barrier.call(handshake.dial, link.stream, links.who, peer.id, handshake.TIMEOUT)
  if fine and not reconnecting.closed then
    link.stream:set_timeout(links.patience)
    link:keep_alive()
    link:start()
    return link
  end
  link:close(problem)
  return refused(peer, problem, code)
end

--- Dials somebody from now on.
-- @tparam Links links whose peer it is
-- @string id
-- @string address `host:port`
-- @treturn Peer
function Peer.new(links, id, address)
  local self = setmetatable({ links = links, id = id, address = address }, Peer)
  self.reconnecting = Reconnecting.new { store = "registry", server = id .. " " .. address, timeout = handshake.TIMEOUT,
    backoff = retry.new(FIRST_PAUSE, MOST_PAUSE), open = function(reconnecting) return open(self, reconnecting) end }
  return self
end

--- Gives it up after a while, unless it is wanted again by then.
-- @number seconds
-- @tparam function gone called when it is
function Peer:linger(seconds, gone)
  if self.leaving then return end
  local leaving = {}
  self.leaving = leaving
  core.detach(function()
    core.sleep(seconds)
    if self.leaving ~= leaving then return end
    self:close()
    gone()
  end)
end

--- It is wanted.
function Peer:stay()
  self.leaving = nil
end

--- Ends it.
function Peer:close()
  self.leaving = nil
  self.reconnecting:close()
end

return Peer
