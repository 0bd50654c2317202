-- How much memory an election needs, besides the process: there may be a hundred thousand of them in one.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- Bytes for each. A struct candidate takes 592 from malloc; the rest differs from run to run (616 and 668 seen).
local MOST_LUA, MOST_C = 1100, 720

-- Writes how many bytes of Lua and of C each election needs that comes after the first ones, which make what all share, such as
-- threads for tasks. All together are a little less than a power of two, so that tables by name are nearly full.
local APP = [[
local crown = require "crown"
local ffi = require "ffi"
local path, url, first, last = arg[1], arg[2], 3000, 8000
ffi.cdef "struct used { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; };"
ffi.cdef "struct used mallinfo2(void);"
local all = {}
local function declare(count)
  for i = #all + 1, count do all[i] = crown.elect { name = "small-" .. i, oracle = { "postgres_lease", url = url, ttl = 3600 } } end
end
local function each_knows_its_leader()
  for _, one in ipairs(all) do
    if not one:status().leader then return false end
  end
  return true
end
local function used()
  while not each_knows_its_leader() do crown.sleep(0.1) end
  collectgarbage()
  collectgarbage()
  local info = ffi.C.mallinfo2()
  return collectgarbage "count" * 1024, tonumber(info.uordblks + info.hblkhd)
end
local function write(text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end
if not pcall(function() return ffi.C.mallinfo2 end) then return write "not counted\n" end
declare(first)
crown.spawn(function()
  local lua, c = used()
  declare(last)
  local lua_after, c_after = used()
  write(("%.0f %.0f\n"):format((lua_after - lua) / (last - first), (c_after - c) / (last - first)))
end)
]]

describe("an election on a lease in Postgres", function()
  local server

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)

  it("needs little memory, where it leads and where it follows", function()
    local running = {}
    for _, node in ipairs { "leader", "follower" } do
      local dir = tempdir()
      write_file(dir .. "/app.lua", APP)
      running[#running + 1] = Candidate.start { node = node, log = dir .. "/log",
        args = { "--log-level", "warn", dir .. "/app.lua", dir .. "/out", server.url } }
      local text = eventually(function() return (read_file(dir .. "/out") or ""):match "^(.*)\n" end, 60)
      if text == "not counted" then return pending "this C library does not count" end
      local lua, c = text:match "(%S+) (%S+)"
      assert.is_true(tonumber(lua) < MOST_LUA, ("%s: %s bytes of Lua"):format(node, lua))
      assert.is_true(tonumber(c) < MOST_C, ("%s: %s bytes of C"):format(node, c))
    end
    for _, one in ipairs(running) do one:destroy() end
  end)
end)
