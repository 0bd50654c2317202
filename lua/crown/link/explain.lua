--- What a connection that failed says to a person: which store, which server, what happened, and what to look at next.
-- @internal crown.link.explain

local core = require "crown.core"
local url = require "crown.text.url"

-- What a step says in a single word.
local WORDS = { timeout = "no answer in time", closed = "the server closed the connection" }

-- How a text begins that names its server.
local NAMED = "^%l[%l%d]* ?%l* at %S+: "

-- The system's and curl's words name the server as well: once is enough.
local function without_server(server, problem)
  for _, front in ipairs { "connect to %s: ", "read from %s: ", "write to %s: ", "TLS with %s: ", "%s: " } do
    local named = front:format(server)
    if problem:sub(1, #named) == named then return problem:sub(#named + 1) end
  end
  local address, rest = problem:match "^(https?://%S+): (.*)$"
  return address and address:find(server, 1, true) and rest or problem
end

-- A server's words may end with a full stop.
local function with_step(text, step)
  return step and ("%s; %s"):format((text:gsub("%.$", "")), step) or text
end

local explain = {}

--- Names a server.
-- @string host
-- @number port 0 for a UNIX socket
-- @treturn string
function explain.place(host, port)
  if port == 0 then return host end
  return (host:find(":", 1, true) and "[%s]:%d" or "%s:%d"):format(host, port)
end

-- @return what stands behind the name of this server, where a problem has that already; and whether it has any server's
local function behind_name(problem, server)
  local rest = problem:match "^%l+ ?%l* at (.*)$"
  local is_this = rest and rest:sub(1, #server + 2) == server .. ": "
  return is_this and rest:sub(#server + 3) or nil, rest and rest:find "^%S+: "
end

--- Puts a problem into words; one that has been is left as it is.
-- @string problem
-- @string store "redis", "nats", …
-- @string server `host:port`
-- @bool tls whether TLS is spoken with it
-- @bool spoke whether it has answered before
-- @treturn string
function explain.problem(problem, store, server, tls, spoke)
  local behind, is_another = behind_name(problem, server)
  if behind then return problem end
  local text = explain.named(problem, store, server)
  return with_step(text, not is_another and core.advice(text, store, tls, spoke))
end

--- Names the store and the server of an answer, which says itself what is wrong.
-- @string problem
-- @string store "redis", "nats", …
-- @string server `host:port`
-- @treturn string
function explain.named(problem, store, server)
  return ("%s at %s: %s"):format(store, server, without_server(server, WORDS[problem] or problem))
end

--- The same, with what to do about it where that is known: a right that is missing, no room.
-- @string problem
-- @string store "redis", "nats", …
-- @string server `host:port`
-- @treturn string
function explain.answer(problem, store, server)
  local text = explain.named(problem, store, server)
  return with_step(text, core.advice(text, store, false, true, true))
end

--- Puts a store in front of what an oracle says, and behind it what to do about it, where that names no server itself: it may be
-- the oracle's own words, or a server's that came without its name. Of several servers each may have its step already.
-- @string problem
-- @string place the store's URL; anything else names no store
-- @bool answered whether it is an answer of the store's
-- @treturn string
function explain.placed(problem, place, answered)
  local scheme, there = place:match "^([%l%d+]+)://([^?]*)"
  if not scheme or problem:find(NAMED) then return problem end
  local store, host = url.oracle(scheme .. ":"):match "^[^_]*", there:gsub("^.*@", ""):gsub("/+$", "")
  local step = not problem:find("; ", 1, true) and core.advice(problem, store, false, true, answered)
  return with_step(("%s at %s: %s"):format(store, host, problem), step)
end

--- A problem without the store and the server, for where these stand beside it.
-- @string server
-- @string problem
-- @treturn string
function explain.bare(server, problem)
  return behind_name(problem, server) or problem
end

return explain
