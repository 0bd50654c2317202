-- Whoever comes to the HTTP endpoint and plays tricks there, with a healthy election beside, and somebody who is well.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local http = require "support.http"
local program = require "support.program"
local used = require "support.used"
local Victim = require "support.victim"

local GUESTS = 10       -- of each trick, again and again
local SECONDS = 1
local TRIES = 3         -- of somebody who is well: he may be the one who makes room
local MEMORY_MOST = os.getenv "ASAN_OPTIONS" and math.huge or 48 -- MiB more than before; ASan keeps what was freed
local GET = "GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n"

local TRICKS = {
  ["is silent"] = "",
  ["resets"] = "reset",
  ["resets after a question"] = "say " .. GET .. "\\r\\n\nreset",
  ["closes within a question"] = "say " .. GET .. "\nclose",
  ["says a byte now and then"] = "drip " .. GET .. "X-A: b\\r\\n\\r\\n",
  ["never ends a header"] = "say " .. GET .. "\nflood X",
  ["never ends its headers"] = "say " .. GET .. "\nflood X-A: b\\r\\n",
  ["never ends a line"] = "flood /",
  ["says NUL"] = "flood \\0",
  ["begins TLS"] = "say \22\3\1\\0\2\2\40",
  ["begins HTTP/2"] = "say PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\nflood \\0",
  ["says a huge length"] = "say " .. GET .. "Content-Length: 99999999999999\\r\\n\\r\\n\nflood x",
  ["says a length below nothing"] = "say " .. GET .. "Content-Length: -1\\r\\n\\r\\n\nflood x",
  ["never ends a body in pieces"] = "say " .. GET .. "Transfer-Encoding: chunked\\r\\n\\r\\n\nflood 1\\r\\nx\\r\\n",
  ["says a piece of a huge length"] = "say " .. GET .. "Transfer-Encoding: chunked\\r\\n\\r\\nffffffffffffffff\\r\\n\nflood x",
  ["asks on, and reads no answer"] = "flood " .. GET .. "\\r\\n",
  ["asks for what is not there"] = "flood GET /" .. ("x"):rep(200) .. " HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n",
  ["asks for a very long path"] = "say GET /" .. ("%41"):rep(8000) .. " HTTP/1.1\\r\\n\nflood x",
}

local function is_answered(port)
  for _ = 1, TRIES do
    local fine, answer = pcall(http.ask, port, "GET /metrics")
    if fine and answer.status == 200 then return true end
  end
end

describe("somebody who comes to the HTTP endpoint", function()
  for name, script in pairs(TRICKS) do
    it(name .. ", and costs nobody else an answer, a leadership or a refresh", function()
      local victim = Victim.start({}, { program, "--http", "127.0.0.1:0" })
      local port = eventually(function() return tonumber(victim:output():match "http.listening.- port=(%d+)") end, 20)
      assert.equal(200, http.ask(port, "GET /healthz").status)
      local pid = victim.app:pids("runtime")[1]
      local memory, descriptors = used(pid)
      local over = crown.now() + SECONDS
      for _ = 1, GUESTS do
        crown.spawn(function()
          while crown.now() < over do
            crown.spawn(pcall, Hostile.dial, port, script)
            crown.sleep(0.2)
          end
        end)
      end
      while crown.now() < over do
        assert.is_true(is_answered(port))
        crown.sleep(0.2)
      end
      local later, open = used(pid)
      assert.is_true(later < memory + MEMORY_MOST, ("%d MiB, %d before"):format(later, memory))
      assert.is_true(open < descriptors + 80, open .. " descriptors")
      victim:finish()
    end)
  end
end)
