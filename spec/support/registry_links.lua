--- Links between members, as their specs open them: sides that note what they hear, and strangers that speak by hand.
local base64 = require "crown.text.base64"
local crown = require "crown"
local frames = require "crown.registry.frames"
local handshake = require "crown.registry.handshake"
local registry_links = require "crown.registry.links"

local Links = {}
Links.__index = Links

local SECRET = "the secret of these specs"

--- What one test opens.
function Links.new() return setmetatable({ opened = {} }, Links) end

--- What a member says of itself.
function Links.who(node, fields)
  local made = { registry = "r", id = "r@" .. node, secret = SECRET, runtime = "runtime of " .. node }
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

--- One side: its links, and what it heard.
function Links:side(node, options)
  local one = { heard = {}, events = {}, ups = {}, answers = {} }
  local given = { who = Links.who(node), host = "127.0.0.1", port = 0, every = 0.2, linger = 0.2,
    receive = function(from, message, reply)
      one.heard[#one.heard + 1] = { from = from, message = message }
      if message.kind == "nonsense" then return nil, "a message of an unknown kind" end
      if message.kind == "ask" then reply { kind = "told", of = message.of } end
      return true
    end,
    answered = function(_, message)
      one.answers[#one.answers + 1] = message
      return true
    end,
    up = function(id) one.ups[id] = true end, down = function(id) one.ups[id] = nil end,
    dialled = function() end,
    runtime_of = function(id) return "runtime of " .. id:match "@(.*)$" end,
    emit = function(event, fields) one.events[#one.events + 1] = { event = event, error = fields.error, peer = fields.peer } end }
  for key, value in pairs(options or {}) do given[key] = value end
  one.links = assert(registry_links.open(given))
  one.address = "127.0.0.1:" .. one.links.port
  self.opened[#self.opened + 1] = one.links
  return one
end

--- Closes all that was opened.
function Links:close()
  for _, links in ipairs(self.opened) do links:close() end
  self.opened = {}
end

--- A stream to it, of somebody who has said nothing yet.
function Links.connect(one)
  local stream = assert(crown.tcp.connect("127.0.0.1", one.links.port))
  stream:set_timeout(5)
  return stream
end

--- Whether the other side ends it.
function Links.is_cut(stream)
  return stream:read("*s", 5) == nil
end

--- How often a side has told of trouble in such words.
function Links.told(one, words)
  local count = 0
  for _, event in ipairs(one.events) do
    if event.error:find(words, 1, true) then count = count + 1 end
  end
  return count
end

--- A dialler that knows no secret, and repeats what it saw.
function Links.greet(stream, id)
  stream:write(frames.encode { version = handshake.VERSION, registry = "r", id = id, runtime = "one",
    nonce = base64.encode(("n"):rep(32)) })
  return frames.read(stream, 1024, 5, 5)
end

return Links
