-- Connections on which nobody asks anything, and whose way is cut without a word: each is noticed in the time that it was told, by
-- the kernel's probes. As root.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local Network = require "support.network"
local program = require "support.program"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

if not Network.is_possible() then return end

local SILENCE = 1      -- seconds, as the clients below are told
local NOTICED_MOST = 8 -- probes come each second, and the first one after a second

-- Prints each change of a connection's state, with the time.
local APP = [[
local conditions = require "crown.link.conditions"
local crown = require "crown"
local function never() end
local open = {
  watch = function(place)
    local client = require("crown.etcd.client").new({ endpoints = { "http://" .. place } }, 1)
    local one = require("crown.etcd.watch").new { client = client, timeout = 1, on_event = never, on_missed = never }
    assert(one:over { key = "a2V5" })
    return one
  end,
  listener = function(place)
    local one = assert(crown.postgres.connect("postgres://x@" .. place .. "/x?sslmode=disable&target_session_attrs=any",
      { timeout = 1 }))
    assert(one:listen("news", never))
    return one
  end,
}
local kept, state = {}, nil
for i = 1, #arg do
  local kind, place = arg[i]:match "^(%a+)=(.*)"
  kept[i] = open[kind](place)
end
while true do
  local now = {}
  for _, one in ipairs(conditions.all()) do
    if one.store ~= "etcd" then now[#now + 1] = one.store .. " " .. (one.state == "proven" and "open" or one.state) end
  end
  now = table.concat(now, ", ")
  if now ~= state then print(now) end
  state = now
  crown.sleep(0.1)
end
]]

local SCRIPTS = {
  watch = Hostile.watch(Hostile.CREATED),
  listener = "wait 0.1\n" .. Hostile.LETS_IN .. "wait 0.5\n" .. Hostile.LISTENS,
}

describe("a connection that only listens, and whose way is cut, is noticed:", function()
  for what, script in pairs(SCRIPTS) do
    it(what, function()
      local network = Network.new { "a" }
      finally(function() network:destroy() end)
      local server = Hostile.at(network.here, script)
      local path = tempdir() .. "/app.lua"
      write_file(path, APP)
      local launcher, words = network:launch "a"
      for _, word in ipairs { program, path, ("%s=%s:%d"):format(what, network.here, server.port) } do words[#words + 1] = word end
      local app = Candidate.start { program = launcher, args = words, node = "a", log = path .. ".log" }
      finally(function()
        app:destroy()
        server:destroy()
        network:destroy()
      end)
      local function last() return app:output():match "([^\n]*)\n$" or "" end
      eventually(function() return last():find "open$" or error(app:output()) end, 20)
      crown.sleep(2 * SILENCE) -- it stays so
      assert.matches("open$", last())
      network:cut_port("a", server.port)
      local cut = crown.now()
      eventually(function() return not last():find "open$" end, 60)
      assert.is_true(crown.now() - cut < NOTICED_MOST, crown.now() - cut .. " s")
    end)
  end
end)
