-- Promise 1 over the example's HTTP lease server, which forgets everything when it crashes.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local takeover = require "support.takeover"
local tempdir = require "support.tempdir"

local number, server = port.free(), nil

local function up(sit_out)
  server = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua", number, sit_out or 0 }, node = "server",
    log = tempdir() .. "/log" }
  eventually(function() return server:output():find "port %d" end, 10)
end

up()

takeover("a leader by a lease over HTTP", {
  url = ("http://127.0.0.1:%d/locks"):format(number), port = number,
  down = function()
    server:hurt("KILL", "supervise", "runtime")
    server:wait(5)
  end,
  up = function() up(2) end,
})

teardown(function() server:destroy() end)
