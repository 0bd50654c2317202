-- What a runtime with many elections on etcd keeps open.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local ELECTIONS = 200
local MOST = 4 -- what is watched; a transaction, the lease, and the memory, which a win asks for at once

local APP = [[
local crown = require "crown"
local led = 0
for i = 1, tonumber(arg[2]) do
  crown.elect { name = "e" .. i, oracle = { "etcd", url = arg[1], ttl = 60 }, handlers = {
    won = function()
      led = led + 1
      if led == tonumber(arg[2]) then crown.log.info "all are led" end
    end } }
end
]]

-- The inodes of connections to a port.
local function connections_to(number)
  local found, there = {}, (" 0100007F:%04X "):format(number)
  for line in read_file("/proc/net/tcp"):gmatch "[^\n]+" do
    local remote, inode = line:match "^%s*%d+: %S+( %S+ )%S+ %S+ %S+ %S+ +%d+ +%d+ +(%d+)"
    if remote == there then found[inode] = true end
  end
  return found
end

describe("a runtime with many elections on etcd", function()
  it("has four connections to it, and inherits none", function()
    local server, dir = Etcd.start():trusted "many", tempdir()
    write_file(dir .. "/app.lua", APP)
    local member = Candidate.start { node = "one", log = dir .. "/log",
      args = { dir .. "/app.lua", server.url .. "/many", ELECTIONS } }
    finally(function()
      member:destroy()
      server:destroy()
    end)
    eventually(function() return member:output():find "all are led" end, 60)
    local there, count = connections_to(server.port), 0
    local pipe = io.popen(("readlink /proc/%d/fd/*"):format(member:pids("runtime")[1]))
    for inode in pipe:read("*a"):gmatch "socket:%[(%d+)%]" do count = count + (there[inode] and 1 or 0) end
    pipe:close()
    assert.is_true(count > 0 and count <= MOST, count)
  end)
end)
