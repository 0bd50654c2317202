--- A program that is a client of servers that play tricks, with a healthy election in its own memory beside.
local assert = require "luassert"
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local judge = require "support.judge"
local Stillness = require "support.stillness"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local LINES_MOST = 9 -- that may tell of lost connections, for each client

local APP = [[
local crown = require "crown"
package.path = "spec/?.lua;" .. package.path
require "support.healthy" ()
local function never() end
local kept = {} -- else they are collected
local plain = {
  subscriber = function(place)
    local one = require("crown.redis.subscriber").new("redis://" .. place, 1)
    one:subscribe("c", never)
    return one
  end,
  watch = function(place)
    local client = require("crown.etcd.client").new({ endpoints = { "http://" .. place } }, 1)
    local one = require("crown.etcd.watch").new { client = client, timeout = 1, on_event = never, on_missed = never }
    crown.spawn(function() one:over { key = "a2V5" } end)
    return one
  end,
  listener = function(place)
    local one = assert(require("crown.postgres").new("postgres://x@" .. place .. "/x?sslmode=disable&target_session_attrs=any",
      { timeout = 1 }))
    one:listen("news", never)
    return one
  end,
  registry = function(place)
    local function yes() return true end
    local one = assert(require("crown.registry.links").open { host = "127.0.0.1", port = 0, every = 0.2, linger = 1,
      who = { registry = "r", id = "r@a", secret = "secret", runtime = "one" },
      receive = yes, answered = yes, up = never, down = never, runtime_of = never, emit = never })
    one:set_peers { ["r@b"] = place }
    print("LISTENS " .. one.port)
    return one
  end,
}
for i = 1, #arg do
  local kind, place = arg[i]:match "^(%a+)=(.*)"
  if plain[kind] then
    crown.spawn(function() kept[i] = plain[kind](place) end)
  else
    crown.elect { name = "e" .. i, oracle = arg[i], handlers = { won = function() print "WON" end } }
  end
end
]]

local Victim = {}
Victim.__index = Victim

--- What a client is told to talk to, `%d` is the port. The last four are no elections: they listen, watch, or link members.
Victim.URLS = {
  redis = "redis://127.0.0.1:%d?ttl=4",
  sentinel = "redis+sentinel://127.0.0.1:%d/main?ttl=4",
  nats = "nats://127.0.0.1:%d/B?ttl=4",
  etcd = "etcd://127.0.0.1:%d?ttl=4",
  http = "http://127.0.0.1:%d/locks?ttl=4",
  postgres = "postgres://x@127.0.0.1:%d/x?sslmode=disable&ttl=4",
  subscriber = "subscriber=127.0.0.1:%d",
  watch = "watch=127.0.0.1:%d",
  listener = "listener=127.0.0.1:%d",
  registry = "registry=127.0.0.1:%d",
}

--- The same over TLS.
Victim.TLS_URLS = {
  redis = "rediss://127.0.0.1:%d?ttl=4",
  nats = "tls://127.0.0.1:%d/B?ttl=4",
  etcd = "etcds://127.0.0.1:%d?ttl=4",
  http = "https://127.0.0.1:%d/locks?ttl=4",
  postgres = "postgres://x@127.0.0.1:%d/x?sslmode=require&ttl=4",
}

--- Starts it; the healthy election has been won when this returns.
-- @tparam table urls an array
-- @tparam[opt] table words what starts the program, instead of the program itself
-- @treturn Victim
function Victim.start(urls, words)
  local self = setmetatable({ dir = tempdir(), clients = #urls }, Victim)
  write_file(self.dir .. "/app.lua", APP)
  self.still = Stillness.start()
  local args = { unpack(words or {}, 2) }
  args[#args + 1] = self.dir .. "/app.lua"
  for _, url in ipairs(urls) do args[#args + 1] = url end
  self.app = Candidate.start { program = words and words[1], args = args, node = "victim", log = self.dir .. "/log",
    env = { CROWN_LOOP_HELD = self.dir .. "/held" } }
  eventually(function() return self:output():find "HEALTHY" end, 20)
  return self
end

function Victim:output() return self.app:output() end

local function refreshes(self)
  return select(2, self:output():gsub("REFRESHED", ""))
end

--- Ends it, and checks what has to be true after each trick: the healthy election was won once, never lost, and missed no refresh,
-- the loop was never held, no task died, nobody won by it, and the log is short.
function Victim:finish()
  local so_far = refreshes(self)
  pcall(eventually, function() return refreshes(self) > so_far end, 10) -- it goes on
  local output = self:output()
  self.app:destroy()
  local _, terms = ("\n" .. output):gsub("\nHEALTHY", "")
  assert.equal(1, terms, output)
  assert.is_true(refreshes(self) > so_far, "no refresh came any more\n" .. output)
  assert.is_nil(output:find("WON", 1, true), output)
  judge.program(output, self.dir .. "/held", self.still)
  self.still:destroy()
  local _, lines = output:gsub("oracle%.disconnected", "")
  assert.is_true(lines <= LINES_MOST * self.clients, lines .. " lines tell of lost connections")
end

return Victim
