-- Work at fixed times, on the leader only. A tick that falls into a change-over is not made up for: the next leader
-- begins with the next tick.
local crown = require "crown"

local interval = tonumber(arg[1]) or 60

local function job(term)
  print(("%s runs the job, epoch %d"):format(crown.node, term.epoch))
end

crown.elect {
  name = "cron",
  handlers = {
    won = function(term)
      -- This task belongs to the term: when the term ends it is not resumed any more.
      while true do
        job(term)
        crown.sleep(interval)
      end
    end,
  },
}
