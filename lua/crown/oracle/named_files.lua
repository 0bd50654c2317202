--- The files that an oracle's options name: what no store could mend is said at the start. A runtime that was started again
-- looks no more, since a file that is being replaced must not end a candidate for good; whoever opens it tells of it then.
-- @internal crown.oracle.named_files

local core = require "crown.core"
local files = require "crown.core.files"
local tcp = require "crown.core.tcp"
local usage = require "crown.check.usage"

local named_files = {}

local fine = {} -- what was looked at: thousands of elections mostly name the same

--- Looks at something, unless that was done, or the runtime was started again.
-- @string key what is looked at
-- @tparam function look raises what is wrong
function named_files.once(key, look)
  if core.restarts > 0 or fine[key] then return end
  look()
  fine[key] = true
end

local function refuse(word, option, problem)
  usage.error("oracle '%s': %s: %s", word, option, problem)
end

--- Refuses a file that is not there, that this user may not read, or that is none.
-- @string word the oracle's, for messages
-- @string option that names it
-- @string[opt] path
-- @raise a usage error
function named_files.check(word, option, path)
  if not path then return end
  named_files.once(("%s\n%s"):format(option, path), function()
    local readable, problem = files.readable(path)
    if not readable then refuse(word, option, problem) end
  end)
end

--- Refuses files of TLS that cannot be used.
-- @string word the oracle's, for messages
-- @tparam table given `ca`, `cert`, `key`: paths
-- @raise a usage error
function named_files.check_tls(word, given)
  local ca, cert, key = given.ca, given.cert, given.key
  if not (ca or cert or key) then return end
  if key and not cert then usage.error("oracle '%s': key has no effect without cert", word) end
  named_files.once(("%s\n%s\n%s"):format(ca or "", cert or "", key or ""), function()
    for _, option in ipairs { "ca", "cert", "key" } do named_files.check(word, option, given[option]) end
    local fits, problem = tcp.fits_tls { ca = ca }
    if not fits then refuse(word, "ca", problem) end
    fits, problem = tcp.fits_tls { cert = cert, key = key }
    if fits then return end
    refuse(word, key and problem:sub(1, #key) == key and "key" or "cert", problem)
  end)
end

return named_files
