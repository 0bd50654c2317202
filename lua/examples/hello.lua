-- What `make run` runs: one election on the embedded oracle, explained as it goes.
local crown = require "crown"

local election
election = crown.elect {
  name = "hello",
  handlers = {
    won = function(term)
      print(("%s leads '%s' now (epoch %d): nobody else does."):format(crown.node, term.name, term.epoch))
      print "Start the same command in a second terminal: it follows. Then end this one with Ctrl-C,"
      print "or with kill -9, and watch the other take over."
      while crown.sleep(5) ~= nil or term:valid() do
        print(("%s still leads '%s' (epoch %d)."):format(crown.node, term.name, term.epoch))
      end
    end,
    lost = function(reason)
      print(("%s does not lead any more: %s."):format(crown.node, reason))
    end,
  },
}

crown.on("leadership.rejected", function(event)
  print(("%s leads '%s' (epoch %d); this one, process %s, waits for its turn.")
    :format(event.leader or "Somebody else", event.name, event.epoch, crown.token:sub(1, 6)))
end)

-- With a number of seconds as argument it ends by itself.
if arg[1] then
  crown.sleep(tonumber(arg[1]))
  election:stop()
end
