-- A service that must run once: the leader runs it, followers run a stand-in, handlers hear of every change.
local crown = require "crown"

crown.elect {
  name = "singleton",
  child = {
    command = { "sh", "-c", "echo serving as leader, epoch $CROWN_EPOCH; exec sleep 3600" },
    stdout = "log",
    restart = { policy = "permanent", max = 3, within = 60, backoff = { 0.1, 5 } },
  },
  follower_child = {
    command = { "sh", "-c", "echo standing by as $CROWN_ROLE; exec sleep 3600" },
    stdout = "log",
  },
  handlers = {
    init = function() return { terms = 0 } end,
    won = function(state, term)
      state.terms = state.terms + 1
      crown.log.info("won", { epoch = term.epoch, terms = state.terms })
    end,
    lost = function(_, reason) crown.log.info("lost", { reason = reason }) end,
  },
}
