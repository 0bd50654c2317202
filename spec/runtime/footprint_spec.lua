-- What a keeper and a warden have for themselves, which a runtime with ten thousand children has ten thousand times.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local MOST = 12 -- pages of both together
local MANY = 8  -- so that what all of them have is nobody's own

local APP = [[
local crown = require "crown"
for i = 1, tonumber(arg[1]) do
  crown.elect { name = "e" .. i, oracle = { "memory", ttl = 60 }, child = { "sleep", "1000" } }
end
]]

local page_size = tonumber(assert(crown.exec { "getconf", "PAGESIZE" }).stdout)

local function private_pages(pid)
  return tonumber(read_file(("/proc/%d/smaps_rollup"):format(pid)):match "\nPrivate_Dirty:%s+(%d+)") * 1024 / page_size
end

describe("a keeper and its warden", function()
  local member
  before_each(function()
    local dir = tempdir()
    write_file(dir .. "/app.lua", APP)
    member = Candidate.start { node = "one", log = dir .. "/log", args = { dir .. "/app.lua", MANY } }
    eventually(function() return #member:pids "child" == MANY end, 20)
  end)
  after_each(function() member:destroy() end)

  it("share what they do not change", function()
    local one = member:pids("keeper")[1]
    if read_file(("/proc/%d/maps"):format(one)):find("libasan", 1, true) then return pending "a sanitizer writes to pages of its own" end
    -- They give back what the start took once the child runs.
    eventually(function()
      local sum = 0
      for _, kind in ipairs { "keeper", "warden" } do
        for _, pid in ipairs(member:pids(kind)) do sum = sum + private_pages(pid) end
      end
      assert(sum / MANY <= MOST, ("%.1f pages of each pair are its own"):format(sum / MANY))
      return true
    end, 20)
  end)
end)
