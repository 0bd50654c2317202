-- One look for all that follow, and a session of their own that is there when they claim.
local record = require "crown.register.record"
local Seen = require "crown.register.seen"
local Watch = require "crown.register.watch"

describe("the watch over the sessions that others follow", function()
  it("has its own session renewed a moment after somebody follows, and then each second", function()
    local now, renewed, member = 0, {}, { slot = {}, tell = function() end }
    local text = record.text({ v = 1, serial = 1, memory = "m", at = 1, ttl = 12, node = "ann" }, "n")
    local answer = { text = text, version = 1, memory = "m" }
    local env = { now = function() return now end, atomic = function(fn, ...) return fn(...) end,
      detach = function(fn, ...) fn(...) end, sleep = function(seconds) now = now + seconds end }
    local session = { env = env, seen = Seen.new(env.now), store = { look = function() return { ["@ann-12"] = answer } end },
      is_due = function() return true end }
    local watch = Watch.new(session, 1)
    function session.renew()
      renewed[#renewed + 1] = now
      if #renewed == 3 then watch:hear "@ann-12" end -- nobody follows it any more
    end
    member.slot.holder = session.seen:of "@ann-12"
    session.seen:note(member.slot.holder, answer, 0)
    watch:add(member)
    assert.same({ 0.1, 1.1, 2.1 }, renewed)
  end)
end)
