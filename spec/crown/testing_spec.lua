-- The conformance suite must find what it is there for: each broken oracle fails it.
local run = require "support.run"
local tempdir = require "support.tempdir"

local BROKEN = {
  ["grants to everybody"] = "function M:claim() return true, 1, { ttl = 1, epoch = 1 } end M.refresh = M.claim",
  ["goes by the node's name"] = [[
    function M:claim() local l = leases[self.name] or {} leases[self.name] = l
      if l.node and l.node ~= self.node then return false end
      l.node = self.node l.epoch = (l.epoch or 0) + 1 return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:refresh() local l = leases[self.name] or {} if l.node ~= self.node then return false end
      return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:abdicate() local l = leases[self.name] or {} if l.node == self.node then l.node = nil end end]],
  ["forgets the epoch on release"] = [[
    function M:claim() local l = leases[self.name] if l and l.token ~= self.token then return false end
      leases[self.name] = { token = self.token } return true, 1, { ttl = 1, epoch = 1 } end
    function M:refresh() local l = leases[self.name] if not l or l.token ~= self.token then return false end
      return true, 1, { ttl = 1, epoch = 1 } end
    function M:abdicate() local l = leases[self.name] if l and l.token == self.token then leases[self.name] = nil end end]],
  ["lets anybody release"] = [[
    function M:claim() local l = leases[self.name] or { epoch = 0 } leases[self.name] = l
      if l.token and l.token ~= self.token then return false end
      l.token = self.token l.epoch = l.epoch + 1 return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:refresh() local l = leases[self.name] or {} if l.token ~= self.token then return false end
      return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:abdicate() local l = leases[self.name] if l then l.token = nil end end]],
}

local SPEC = [[
local leases = {}
local M = {}
M.__index = M
function M.init(opts)
  return setmetatable({ name = opts.crown_name, node = opts.node, token = opts.token }, M)
end
%s
require("crown.testing").conformance("a broken oracle", function()
  return { module = M, options = {}, expires = false }
end)
]]

describe("the conformance suite", function()
  for what, code in pairs(BROKEN) do
    it("fails an oracle that " .. what, function()
      local path = tempdir() .. "/broken_spec.lua"
      local file = assert(io.open(path, "w"))
      file:write(SPEC:format(code))
      file:close()
      local result = run({ "/usr/bin/busted", "--ignore-lua", path }, { timeout = 30 })
      assert.are_not.equal(0, result.code)
      assert.matches("[1-9]%d* failure", result.stdout)
    end)
  end
end)
