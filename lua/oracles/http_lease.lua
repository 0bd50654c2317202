--- A lease behind an HTTP API: POST to claim and to refresh, DELETE to release. URL: `https://host/locks?ttl=15`.
-- See docs/oracle-http.md.
-- @module crown.oracles.http_lease

local Asked = require "crown.link.asked"
local candidate = require "crown.oracle.candidate"
local claim_number = require "crown.oracle.claim_number"
local core = require "crown.core"
local explain = require "crown.link.explain"
local http = require "crown.http"
local http_login = require "crown.oracle.http_login"
local store_options = require "crown.oracle.options"
local Gathered = require "crown.link.gathered"
local json = require "crown.text.json"
local Lanes = require "crown.link.lanes"
local lease = require "crown.oracle.lease"
local LongPoll = require "crown.oracle.long_poll"
local url = require "crown.text.url"

local Lease = {}
Lease.__index = Lease

local DEFAULT_TTL = 15
local JITTER = 1.1 -- times a pause is what the core makes of it at most

-- Each client and proxy takes "." and ".." out of a path, and what is before them, also where they are escaped.
local function check_lock(lock)
  if lock == "." or lock == ".." then return ("'%s' is no part of a URL's path: give another"):format(lock) end
end

-- Without its slash it would run into the URL, and where that has no path of its own, into the host's name or the port.
local function path_rule(default)
  return { type = "string", default = default, match = "^/", match_words = "it goes behind the URL, and must begin with /" }
end

local RULES = {
  url = { type = "string", required = "the lease server's address, such as https://host/locks" },
  ttl = { type = "number", least = 0.5, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400 },
  retry = { type = "number", above = 0, most = 86400, default = 1 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(check_lock),
  claim_path = path_rule("/{name}/claim"),
  refresh_path = path_rule("/{name}/refresh"),
  release_path = path_rule("/{name}"),
  batch_path = path_rule(),
  headers = http_login.rules.headers,
  user = http_login.rules.user,
  password = http_login.rules.password,
  bearer = http_login.rules.bearer,
  ca = { type = "string" },
  cert = { type = "string" },
  key = { type = "string" },
  ttl_field = { type = "string", default = "ttl" },
  epoch_field = { type = "string", default = "epoch" },
  holder_field = { type = "string", default = "holder" },
  expires_field = { type = "string", default = "expires_in" },
}
local MOST = 65536 -- bytes of an answer
local CONNECTIONS = 8 -- to a server, however many elections
local LOT = 100 -- questions in one request, where the server takes many
local CLAIM_WINDOW, REFRESH_WINDOW = 0, 0.05 -- seconds that a question waits for company then
local BUSY, FORBIDDEN, FULL = 429, 403, 507
local REFUSALS = { [401] = "it does not know this user", [403] = "this user may not" }
local LESS = "it sent fewer answers than questions: batch_path has to answer each question, in order"
local BROKEN = 500 -- from this status on the server is not well

--- What info and evict say.
Lease.unasked = "a lease server has no call for that: use its own tools, or 'crown-lua status' and 'abdicate' on a host"

--- TTL and refresh delay that these options make, and after how long a follower asks again.
function Lease.timing(opts)
  return store_options.timing(opts, DEFAULT_TTL, RULES.retry.default)
end

--- How many seconds it takes at most until somebody leads after a leader that has died: perhaps nobody tells of the end.
function Lease.failover(opts)
  local ttl, _, _, retry = Lease.timing(opts)
  return ttl + retry * JITTER
end

local function check(opts)
  local checked = store_options.check("http_lease", opts, RULES)
  http_login.check("oracle 'http_lease'", checked, RULES)
  return checked
end

local function server_of(text)
  return (text:gsub("^%w+://", ""):gsub("[/?].*$", ""):gsub("^.*@", ""))
end

-- What all elections on a server share; it lives as long as one of them.
local servers = setmetatable({}, { __mode = "v" })

local function server_at(text)
  local name = server_of(text)
  if servers[name] then return servers[name] end
  local lanes = Lanes.new(CONNECTIONS)
  local asked = Asked.new("http_lease", name, { limit = CONNECTIONS, count = function() return lanes.most_running end })
  servers[name] = { name = name, asked = asked, lanes = lanes, lots = {}, polls = {} }
  return servers[name]
end

-- @return what is wrong with the URL, without any of its parts; or nil
local function url_problem(text)
  local authority, path = text:match "^%w+://([^/?#]*)([^?]*)"
  if not authority then return "a URL of a lease server is written https://host/path" end
  local problem = url.place_problem(text)
  if problem then return problem end
  if path:find "//" then return "the path in the URL has a part that is empty: write one /" end
  local login, place = authority:match "^(.*)@(.*)$"
  place = place or authority
  if login and login:find "@" or path:find "@" then return url.UNENCODED end
  local numeric, port = place:match "^%[[%x:.]+(%%?[%w._-]*)%](.*)$" -- perhaps with a zone
  local host
  if not numeric then host, port = place:match "^([^:]*)(.*)$" end
  if port ~= "" and port ~= ":" and not url.place("host", port:match "^:(%d+)$") then
    return "the URL names no valid port, or " .. url.UNENCODED
  end
  return not numeric and not url.is_host(host) and "the URL names no valid host" or nil
end

-- @string at the URL
local function question(options, method, at, timeout)
  return { url = at, method = method, headers = options.headers, timeout = timeout, user = options.user,
    password = options.password, bearer = options.bearer, ca = options.ca, cert = options.cert, key = options.key, most = MOST }
end

local function explained(self, problem)
  return explain.problem(problem, "http", self.server.name, self.base:find "^https:" ~= nil, self.server.asked.heard ~= nil)
end

local function request(self, method, path, body)
  local at = self.base .. path:gsub("{name}", function() return url.encode(self.name) end)
  local asked = question(self.options, method, at, self.timeout)
  asked.body = body and json.encode(body)
  local answer, problem, code = self.server.lanes:ask(function() return http.request(asked) end, self.timeout)
  local fine = answer and answer.status < BROKEN
  self.server.asked:note(fine, problem or not fine and "it answered " .. answer.status)
  if problem then problem = explained(self, problem) end
  return answer, problem, code
end

-- What an answer says. Nothing at all says yes or no by its status; what is no JSON object says nothing that is known.
local function read(answer)
  if not answer.body:find "%S" then return {} end
  return json.object(answer.body)
end

-- Seconds until the next question, where that is said: 0, like a date, says nothing of use.
local function pause(text)
  local seconds = tonumber(text)
  return seconds and seconds > 0 and seconds or nil
end

local function holder_of(self) return self.node .. "#" .. self.token end

-- "node#token", as we write it; any other text is a node's name.
local function node_of(holder)
  return type(holder) == "string" and (holder:match "^(.*)#[^#]*$" or holder) or nil
end

-- Not one of the lanes: a request that is held open would keep those back that are in a hurry.
local function poll_of(self)
  local polls, base, options = self.server.polls, self.base, self.options
  if polls[self.way] then return polls[self.way] end
  local asked = Asked.new("http_lease watch", self.server.name, { limit = 1, count = function() return 1 end })
  local function ask(path)
    asked:begin()
    return http.request(question(options, "GET", base .. path, LongPoll.PATIENCE))
  end
  polls[self.way] = LongPoll.new(ask, function(fine, problem) asked:note(fine, problem) end)
  return polls[self.way]
end

-- Where to hear of what is freed, as a refusal may say.
local function listen(self, found)
  local poll = poll_of(self)
  self.waiting = true
  poll:add(self)
  poll:offer(found.watch, found.last)
end

-- Whether a grant may be ours. A service need not say whose it is; where it does, what was granted to another is no answer to us.
-- What is no text names nobody, and so not us.
local function is_ours(self, holder)
  return holder == nil or holder == self.node or holder == holder_of(self)
end

-- For how many seconds a grant counts: no longer than was asked for, so that no answer makes a leader without end. A service may
-- round down what is left; with nothing left it has granted nothing.
-- @return seconds; or nil where the answer names a time that is none
local function lasts(self, said)
  if said == nil then return self.ttl end
  said = tonumber(said)
  return said and said > 0 and math.min(said, self.ttl) or nil
end

local function refused(self, problem, retry)
  return nil, explain.named(problem, "http", self.server.name), "store", retry
end

local function grant(self, found)
  local options = self.options
  if not next(found) and not options.ttl then
    return refused(self, "the lease server does not say how long its leases last: set ttl")
  elseif not is_ours(self, found[options.holder_field]) then
    return refused(self, ("the lease server answered 200 and named another holder: it has to answer '%s' as it was sent, or "
      .. "leave it out, and no cache may answer in its place"):format(options.holder_field))
  end
  local ttl = lasts(self, found[options.ttl_field])
  if not ttl then
    return refused(self, ("the lease server answered 200 and a '%s' that is no number of seconds above 0: it has to answer what "
      .. "is left of the lease, not rounded to 0, or 409"):format(options.ttl_field))
  end
  return true, self.delay, { ttl = ttl, epoch = tonumber(found[options.epoch_field]) }
end

-- Of a status that grants and denies nothing.
-- @string[opt] location where a redirect leads
-- @return what is to be said, without a next step; or nil
local function failure(status, location)
  if status == FULL then return "it is full; make room there, or raise its limit" end
  if status == BUSY or status >= BROKEN then return "it is overloaded, or fails; it is asked again" end
  if status == FORBIDDEN then return REFUSALS[FORBIDDEN] .. "; see the service's own rules" end
  if status < 300 or status >= 400 then return nil end
  return "redirects are not followed" .. (location and "; it names " .. core.redact((location:gsub("[?#].*", ""))) or "")
end

-- @tparam table found what the answer says, nil where it says nothing that is known
-- @string[opt] location where a redirect leads
local function verdict(self, status, found, retry, location)
  local options = self.options
  self.waiting = false
  if status == 200 and found then
    return grant(self, found)
  elseif status == 409 then
    found = found or {}
    if LongPoll.fits(found.watch) then listen(self, found) end
    local left = tonumber(found[options.expires_field])
    -- Perhaps nobody tells of a release, so a lease that runs on is asked for again before it ends.
    local again = retry or options.retry
    return false, { node = node_of(found[options.holder_field]), epoch = tonumber(found[options.epoch_field]),
      expires_in = left and left <= again and left or nil, retry_in = again }
  end
  local words = type(status) == "number" and failure(status, location)
  if words then return refused(self, ("the lease server answered %d: %s"):format(status, words), retry) end
  return nil, explained(self, ("the lease server answered %s%s"):format(tostring(status),
    status == 200 and ", but no JSON object in the body" or "")), "store", retry
end

local function body_of(self)
  return { holder = holder_of(self), node = self.node, ttl = self.ttl, claim = self.number }
end

-- Many at once: an answer for each question, in their order.
local function ask_lot(self, lot)
  local asked = {}
  for i, one in ipairs(lot) do asked[i] = one.body end
  local answer, problem, code = request(self, "POST", self.options.batch_path, { asked = asked })
  local found = answer and answer.status == 200 and read(answer)
  local answers = found and type(found.answers) == "table" and found.answers
  if answer and not answers then
    problem, code = explained(self, ("the lease server answered %d%s to many questions at batch_path"):format(answer.status,
      answer.status == 200 and " without a list of answers" or "")), "store"
  end
  problem, code = problem or explain.named(LESS, "http", self.server.name), code or "protocol"
  local retry = answer and pause(answer.headers["retry-after"])
  for i, one in ipairs(lot) do
    local part = answers and answers[i]
    if type(part) == "table" then one.answer:resolve(part) else one.answer:resolve(nil, problem, code, retry) end
  end
end

-- A way to the server, login and all: those that have the same share what is asked for many.
local function way_of(base, options)
  return json.encode { base, options.headers, options.user or false, options.password or false, options.bearer or false,
    options.ca or false, options.cert or false, options.key or false }
end

local function lots_of(self, window)
  local shared = self.server.lots
  local key = json.encode { self.way, self.options.batch_path, self.timeout, window }
  shared[key] = shared[key] or Gathered.new { window = window, most = LOT, ask = function(lot) ask_lot(self, lot) end }
  return shared[key]
end

-- What a question needs.
local function asker(checked, opts)
  local ttl, delay = Lease.timing(checked)
  local base = checked.url:gsub("/$", "")
  return setmetatable({ options = checked, base = base, way = way_of(base, checked), ttl = ttl, send = opts.send,
    name = tostring(checked.lock or opts.crown_name), delay = delay, number = 0, node = opts.node,
    timeout = store_options.timeout(checked, ttl, delay), server = server_at(checked.url) }, Lease)
end

function Lease.init(opts)
  local checked = check(opts)
  local problem = url_problem(checked.url)
  if problem then return nil, problem end
  local self = asker(checked, opts)
  self.token, problem = candidate.enter("http " .. checked.url, self.name, opts)
  if not self.token then return nil, problem end
  if checked.batch_path then
    self.refreshes, self.others = lots_of(self, math.min(REFRESH_WINDOW, self.ttl / 100)), lots_of(self, CLAIM_WINDOW)
  end
  local poll = self.server.polls[self.way]
  if poll then poll:add(self) end -- so that nothing is missed that is freed while it claims
  return self
end

local function ask_with_others(self, op)
  local body, over = body_of(self), core.now() + self.timeout
  body.op, body.name = op, self.name
  local lots = op == "refresh" and self.refreshes or self.others
  local part, problem, code, retry = lots:ask { body = body, wanted = function() return core.now() <= over end }
  if not part then return nil, explained(self, problem), code, retry end
  local status = part.status
  part.status = nil
  return verdict(self, status, part, pause(part.retry_after))
end

local function ask(self, op, method)
  if self.options.batch_path then return ask_with_others(self, op) end
  local answer, problem, code = request(self, method, self.options[op .. "_path"], body_of(self))
  if not answer then return nil, problem, code end
  return verdict(self, answer.status, read(answer), pause(answer.headers["retry-after"]), answer.headers.location)
end

function Lease:claim()
  self.number, self.waiting = claim_number(self.number), true
  local granted, second, third, fourth = ask(self, "claim", "POST")
  self.leading = granted
  if granted then second = lease.first_delay(second) end
  if granted == nil and third == "store" then fourth = fourth or self.options.retry end
  return granted, second, third, fourth
end

function Lease:refresh()
  local granted, second, third, fourth = ask(self, "refresh", "POST")
  if granted == false then self.leading = false end
  return granted, second, third, fourth
end

function Lease:abdicate()
  self.leading = false
  ask(self, "release", "DELETE")
end

function Lease:handle_info(message)
  if message == "freed" and not self.leading then return self:claim() end
end

--- Whether the service lets this candidate in, for `check --store`: a GET of what a release deletes. That claims nothing, and a
-- service need not know it; who is let in is answered all the same.
-- @tparam table opts `url` and the rest
-- @treturn table an array of texts, with `unchecked`; or nil and a message
function Lease.rights(opts)
  local self = asker(check(opts), opts)
  local answer, problem = request(self, "GET", self.options.release_path)
  if not answer then return nil, problem end
  if answer.status >= BROKEN then return nil, ("the lease server answered %d"):format(answer.status) end
  if REFUSALS[answer.status] then
    return { ("the lease server answered %d: %s"):format(answer.status, REFUSALS[answer.status]) }
  elseif answer.status >= 300 and answer.status < 400 then
    return { ("the lease server answered %d: a redirect, and none is followed"):format(answer.status) }
  end
  return { unchecked = "whether it would grant a claim: a lease server cannot be asked without claiming" }
end

return Lease
