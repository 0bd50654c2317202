--- How this runtime's connections to its stores are: what the verb `status`, the metrics and the status page show.
-- @internal crown.link.conditions

local core = require "crown.core"

local conditions = {}

local sources = setmetatable({}, { __mode = "k" }) -- what nobody holds any more is forgotten
local serial = 0

local function collect()
  local found = {}
  for source, id in pairs(sources) do found[#found + 1] = { source = source, id = id } end
  table.sort(found, function(a, b) return a.id < b.id end)
  return found
end

--- Adds a connection, or what makes one anew.
-- @param source it has `condition(self)` → `{ store =, server =, state =, since =, heard =, reconnects =, problem =,
-- connections =, limit = }`, where `since` and `heard`, the last answer, are instants of crown.core.now. `connections` is
-- how many the servers may see of it now: open, being made, or given up and not known to be gone; `limit` is the most that there
-- can be. Both are nil where it does not know them
function conditions.add(source)
  serial = serial + 1
  sources[source] = serial
end

--- Takes it out.
function conditions.remove(source)
  sources[source] = nil
end

local function age(now, at)
  return at and math.max(0, now - at)
end

-- Whether a URL names a server, also without its port.
local function names(place, server)
  local host = server:match "^(.*):%d+$" or server
  return place:find(host, 1, true) ~= nil
end

--- Why a store gives no answer, where there is no connection to a server of its.
-- @string place its URL
-- @treturn string words that name the server; nil: not known
function conditions.trouble(place)
  for _, one in ipairs(core.atomic(collect)) do
    local condition = one.source:condition()
    local is_away = condition.problem and condition.state ~= "open" and condition.state ~= "proven"
    if is_away and condition.server and names(place, condition.server) then
      return ("%s at %s: %s"):format(condition.store, condition.server, core.redact(condition.problem))
    end
  end
end

--- Looks at the connections, in the order in which they were made.
-- @number[opt] skip how many of the first are left out
-- @number[opt] most how many are wanted
-- @treturn table an array of `{ connection =, store =, server =, state =, since =, answered =, reconnects =, error =,
-- connections =, limit = }`: a number that is another for each, its store and server, what it is about, for how many seconds, how
-- many seconds ago it heard of the server last, how often it was lost, and why the last time; how many connections servers may
-- see of it now, and at most
function conditions.all(skip, most)
  local list, now = {}, core.now()
  local found = core.atomic(collect)
  skip = skip or 0
  for i = skip + 1, math.min(#found, skip + (most or #found)) do
    local condition = found[i].source:condition()
    list[#list + 1] = { connection = found[i].id, store = condition.store, server = condition.server, state = condition.state,
      since = age(now, condition.since), answered = age(now, condition.heard), reconnects = condition.reconnects or 0,
      error = condition.problem and core.redact(condition.problem), connections = condition.connections,
      limit = condition.limit }
  end
  return list
end

return conditions
