-- Every client finds its server by name, from a name server that misbehaves, with a healthy election beside. As root.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local NameServer = require "support.own_name_server"
local Network = require "support.network"
local tempdir = require "support.tempdir"
local Victim = require "support.victim"
local write_file = require "support.write_file"

if not Network.is_possible() then return end

-- Servers of all clients at an address, and a program whose name server behaves as it is told.
local function start(manner, address)
  local self = { manner = manner, names = NameServer.start(address), servers = {} }
  local urls = {}
  self.names:be(manner)
  for client, url in pairs(Victim.URLS) do
    self.servers[client] = Hostile.at(address or "127.0.0.1", "")
    urls[#urls + 1] = NameServer.named(url:format(self.servers[client].port))
  end
  self.victim = Victim.start(urls, self.names:words())
  return self
end

local function are_found(self)
  eventually(function()
    for client, server in pairs(self.servers) do
      if server.count == 0 then error(("%s: %s did not find it"):format(self.manner, client)) end
    end
    return true
  end, 10)
end

local function is_found(self)
  for _, server in pairs(self.servers) do
    if server.count > 0 then return true end
  end
  return false
end

local function finish(self)
  self.victim:finish()
  self.names:destroy()
  for _, server in pairs(self.servers) do server:destroy() end
end

describe("clients that find their servers by name", function()
  it("cost nobody anything while no name server answers, and find them when one does", function()
    local worlds = {}
    for i, manner in ipairs { "silent", "wrong", "empty" } do worlds[i] = start(manner) end
    crown.sleep(3)
    for _, one in ipairs(worlds) do
      assert.is_false(is_found(one), one.manner)
      one.names:be "answers"
    end
    for _, one in ipairs(worlds) do are_found(one) end
    for _, one in ipairs(worlds) do finish(one) end
  end)

  it("find them though the name server is silent about addresses of IPv6", function()
    local one = start "half"
    are_found(one)
    finish(one)
  end)

  -- c-ares by itself tells of one family when it has given the other one up: after two tries of two seconds and more.
  it("need not wait for the addresses of IPv6 that a name server is silent about", function()
    local names = NameServer.start()
    names:be "half"
    local server = Hostile.start ""
    local path = write_file(tempdir() .. "/app.lua", [[
local tcp = require "crown.core.tcp"
for _ = 1, 8 do -- a host that is busy may lose a try
  if tcp.connect("store.test", tonumber(arg[1]), { timeout = 1.5 }) then return print "FOUND" end
end
]])
    local words = names:words()
    for _, word in ipairs { path, tostring(server.port) } do words[#words + 1] = word end
    local result = assert(crown.exec(words, { timeout = 60 }))
    assert.equal("FOUND\n", result.stdout, result.stderr)
    names:destroy()
    server:destroy()
  end)

  it("find them though they have addresses of IPv6 only", function()
    local one = start("answers", "::1")
    are_found(one)
    finish(one)
  end)

  for what, leave in pairs {
    ["who was there refuses"] = function(server) server:destroy() end,
    ["who was there says nothing any more"] = function() end,
  } do
    it("find them where they have moved to, when " .. what, function()
      local one, moved = start "answers", {}
      are_found(one)
      for client, server in pairs(one.servers) do
        moved[client] = Hostile.open("127.0.0.2", server.port, "")
        leave(server)
      end
      one.names:be "at 127.0.0.2"
      eventually(function()
        for client, server in pairs(moved) do
          if server.count == 0 then error(("%s did not find it"):format(client)) end
        end
        return true
      end, 20)
      finish(one)
      for _, server in pairs(moved) do server:destroy() end
    end)
  end
end)
