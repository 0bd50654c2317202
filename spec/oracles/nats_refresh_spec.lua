-- What refreshes the keys of a leader in a NATS bucket, and deletes them: many by one write, and no call of the oracle while nothing
-- has changed.
local base64 = require "crown.text.base64"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local refreshed_together = require "support.refreshed"
local Wire = require "support.nats_wire"

local json = crown.json

local server, bucket, wire
local last_url -- of the bucket

-- A bucket for each TTL: it says how long a lease lasts.
local function url(ttl)
  bucket = "TTL" .. ttl
  last_url = ("%s/%s?trust_empty=true&refresh=%g"):format(server.url, bucket, ttl / 12)
  return last_url
end

-- The message that a key has now.
local function last(name)
  local answer = wire:ask("$JS.API.STREAM.MSG.GET.KV_" .. bucket, nil, json.encode { last_by_subj = ("$KV.%s.%s"):format(bucket, name) })
  return assert(answer.message, "no value")
end

local function head(message)
  return message.hdrs and base64.decode(message.hdrs) or ""
end

-- Writes over what is there, whatever comes between: somebody else, or the token of whoever is there for the term of `epoch`.
local function write(name, node, epoch)
  eventually(function()
    local now = last(name)
    local token = head(now):match "Crown%-Token: ([^\r]*)"
    local headers = ("Nats-Expected-Last-Subject-Sequence: %d"):format(now.seq)
    if epoch then headers = ("%s\r\nCrown-Token: %s\r\nCrown-Epoch: %d"):format(headers, token, epoch(head(now))) end
    return not wire:ask(("$KV.%s.%s"):format(bucket, name), headers, node).error
  end)
end

local function epoch_of(headers) return tonumber(headers:match "Crown%-Epoch: (%d+)") end

local function another_term(name)
  write(name, "one", function(headers) return epoch_of(headers) + 5 end)
end

refreshed_together("a leader's key in a NATS bucket", {
  oracle = kv, word = "nats_kv", amnesia_wait = 0, taken = "the key was written by somebody else",
  start = function()
    server = Nats.start()
    wire = Wire.open(server.port)
  end,
  url = url,
  ends_at = function(name) return last(name).seq end,
  is_free = function(name) return head(last(name)):find "KV%-Operation: DEL" ~= nil end,
  evict = function(name) assert(kv.evict({ url = last_url }, name)) end,
  take = function(name) write(name, "somebody") end,
  reclaim = another_term,
  raise = another_term,
  amid = { change = another_term, reason = "denied" },
  freeze = function() server:freeze() end,
  thaw = function() server:thaw() end,
  more = function(it, leader, refreshed, _, calls)
    local function stop(election)
      election:stop()
      eventually(function() return not election.handle or election.handle:finished() end, 20)
    end

    it("is given back also when the answer to its last update was lost", function()
      local election = leader()
      refreshed(1)
      write(election.name, "one", epoch_of)
      stop(election)
      assert.is_true(head(last(election.name)):find "KV%-Operation: DEL" ~= nil)
      assert.equal(0, calls())
    end)

    it("is not given back by a release that comes to its end when the next claim has won", function()
      local wins, losses = 0, {}
      local election = leader()
      local bucket_of, held = election.state.bucket, false
      finally(function() bucket_of.get = nil end)
      crown.on("leadership.claimed", function(event)
        if event.name == election.name then wins = wins + 1 end
      end)
      crown.on("leadership.lost", function(event)
        if event.name == election.name then losses[#losses + 1] = event.reason end
      end)
      write(election.name, "one", epoch_of) -- so that the release looks at the key
      function bucket_of.get(...)
        if not held then
          held = true
          eventually(function() return wins > 0 end, 30)
        end
        return getmetatable(bucket_of).get(...)
      end
      crown.spawn(function() kv.evict({ url = last_url, wait = 60 }, election.name) end)
      eventually(function() return wins > 0 end, 30)
      refreshed(2)
      assert.same({ "evicted" }, losses)
      assert.is_true(held)
    end)

    it("is let be when it is another's as it is given back", function()
      local election = leader()
      election.state.heard = function() end -- nothing of what comes now
      write(election.name, "somebody")
      stop(election)
      assert.equal("somebody", base64.decode(last(election.name).data))
    end)
  end,
})

teardown(function() server:destroy() end)
