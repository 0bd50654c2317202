--- Whether two names of a majority's servers mean one server, which would count twice.
-- @internal crown.redis.same

local redis_url = require "crown.redis.url"

local same = {}

--- Where a URL leads, with which login and to which database it ever may be.
-- @string url of one server
-- @treturn string such as "db:6379", equal for equal places; or nil: it names none, as one of Sentinels
function same.place(url)
  local parsed = redis_url.parse(url)
  return parsed and not parsed.master and redis_url.label(parsed):lower() or nil
end

local function label(url) return redis_url.label(redis_url.parse(url)) end

--- Tells that two names lead to one server, by the id that each server gives itself when it starts.
-- @tparam table urls of the servers
-- @tparam table ids by the server's number, nil where a server was not asked yet
-- @treturn string what to say, or nil: each is another one
function same.server(urls, ids)
  local names = {}
  for i, url in ipairs(urls) do
    local id = ids[i]
    if id and names[id] then return ("two of these names lead to one server: %s and %s"):format(names[id], label(url)) end
    if id then names[id] = label(url) end
  end
end

return same
