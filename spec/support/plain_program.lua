--- The program without what a process needs a right for: real-time priority and locked memory.
local is_root = require "support.is_root"
local program = require "support.program"

-- Root keeps its name: what it has built may be nobody else's to read.
local WITHOUT_RIGHTS = is_root and "setpriv --bounding-set -all --inh-caps -all --" or ""

--- @treturn table words that start it with more words
return function(...)
  return { "bash", "-c", ("ulimit -l 0 -r 0; exec %s \"$@\""):format(WITHOUT_RIGHTS), "bash", program, ... }
end
