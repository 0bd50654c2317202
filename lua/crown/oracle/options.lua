--- How the oracles on a store read their options.
-- @internal crown.oracle.options

local elections = require "crown.core.election"
local figure = require "crown.check.figure"
local named_files = require "crown.oracle.named_files"
local printable = require "crown.text.printable"
local schema = require "crown.check.schema"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local store_options = {}

--- What every oracle is given besides the user's options, as keys.
store_options.GIVEN = { crown_name = true, node = true, token = true, send = true, emit = true, leading = true, path = true,
  wait = true, order = true, forget = true, keep = true, given = true, election = true, checking = true }

--- The option `amnesia_wait`: seconds that nobody is to be granted anything where a store has lost all that it knew, also how
-- long leases there last. A longer TTL of one's own is waited for anyway; more where others may have had longer ones.
store_options.AMNESIA_WAIT = { type = "number", least = 0, most = 86400, default = 30 }

local ORDINARY_LEAST = 0.5 -- seconds: an eighth of it is how late a keeper may be at an ordinary priority

--- The option `ttl` or `duration` of a store that keeps leases by the millisecond. A shorter one than half a second has no room
-- for a keeper that waits for a processor, so it needs real-time priority.
-- @string[opt] other the option that says the same
-- @treturn table the option's rule
function store_options.short_ttl(other)
  return { type = "number", least = 0.2, most = 86400, not_beside = other }
end

--- The option `trust_empty`: whether a store in which nobody has been before is believed at once, and not sat out for
-- `amnesia_wait`.
-- @bool default what goes where it is not given: true only where a store that was emptied can be told from a new one
-- @treturn table the option's rule
function store_options.trust_empty(default)
  return { type = "boolean", default = default }
end

-- What a lock may be called: it is shown in tables and logs, and a word of the verb evict.
local function lock_problem(lock)
  if lock == "" then return "must not be empty" end
  if lock ~= printable(lock) then return ("'%s' is not possible: UTF-8 without control characters"):format(printable(lock)) end
end

--- The option `lock`: what the election is called in the store.
-- @tparam[opt] function more what else is wrong with it there: `more(lock)` → words, or nil
-- @string[opt] other the option that says the same
-- @treturn table the option's rule
function store_options.lock(more, other)
  return { type = { "string", "number" }, not_beside = other, check = function(lock)
    return lock_problem(tostring(lock)) or more and more(lock)
  end }
end

local function refuse_short_leases(word, checked)
  local ttl = checked.ttl or checked.duration
  if type(ttl) ~= "number" or ttl >= ORDINARY_LEAST then return end
  if require("crown.core.build").kernel().real_time then return end
  usage.error("oracle '%s': a ttl below %s s needs real-time priority, which RLIMIT_RTPRIO or CAP_SYS_NICE give", word,
    figure.exact(ORDINARY_LEAST))
end

local function merge(text, opts, clients)
  local _, there = url.without(text, {})
  for key in pairs(clients) do
    if opts[key] ~= nil and not there[key] then text = url.with(text, key, opts[key]) end
  end
  return text
end

--- The user's own among the options that an oracle gets.
-- @tparam table opts as init and list get them
-- @tparam[opt] table besides others to leave out, as keys
-- @treturn table
function store_options.users(opts, besides)
  local own = {}
  for key, value in pairs(opts) do
    if not store_options.GIVEN[key] and not (besides and besides[key]) then own[key] = value end
  end
  return own
end

--- Whether an election's options are those of another one, as far as they are the user's.
-- @tparam table opts as init gets them
-- @tparam table users what store_options.users found in the other's
-- @treturn boolean
function store_options.same(opts, users)
  for key, value in pairs(opts) do
    if users[key] ~= value and not store_options.GIVEN[key] then return false end
  end
  for key, value in pairs(users) do
    if opts[key] ~= value then return false end
  end
  return true
end

-- What the user wrote under a name of what the runtime gives, which would be swallowed. A URL's path is given, too.
local function add_swallowed(opts, own, besides)
  local there = url.query(opts.url or "")
  local beside = type(opts.given) == "table" and opts.given or {}
  for name in pairs(store_options.GIVEN) do
    local value = there[name]
    if value == nil and name ~= "path" then value = beside[name] end
    if not besides[name] then own[name] = value end
  end
  return own
end

local TLS = { "ca", "cert", "key", "server_name", "insecure" }
-- Schemes that never speak TLS, and those that do instead.
local PLAIN = { redis = "rediss", ["redis+cluster"] = "rediss+cluster", ["redis+majority"] = "rediss+majority",
  ["redis+unix"] = "rediss", ["redis+sentinel"] = "rediss", etcd = "etcds", http = "https", mysql = "mysqls",
  zookeeper = "zookeepers", consul = "consuls" }

--- The first option of TLS that is given: a certificate that nobody looks at would make a connection seem safe.
-- @tparam table given options by their names
-- @treturn string its name, or nil
function store_options.of_tls(given)
  for _, name in ipairs(TLS) do
    if given[name] ~= nil then return name end
  end
end

local function refuse_tls_in_vain(word, opts, text)
  local instead = PLAIN[text:match "^[%w+]+"]
  if not instead then return end
  local _, there = url.without(text, {})
  local name = store_options.of_tls(opts) or store_options.of_tls(there)
  if name then usage.error("oracle '%s': %s has no effect without TLS: %s://", word, name, instead) end
end

-- What the clients make of what the user says of TLS, in the URL or beside it.
local function check_tls(word, opts, text)
  local given = {}
  url.read_query(text:match "%?(.*)$" or "", given)
  for _, name in ipairs(TLS) do
    if opts[name] ~= nil then given[name] = tostring(opts[name]) end
  end
  if given.insecure and given.insecure ~= "true" and given.insecure ~= "false" then
    usage.error("oracle '%s': insecure must be true or false, not '%s'", word, given.insecure)
  end
  named_files.check_tls(word, given)
end

--- Checks an oracle's options. What is the store client's goes to where that reads it: the URL.
-- @string word the oracle's, for messages
-- @tparam table opts as init and list get them
-- @tparam table rules the oracle's schema; `url` is one of them
-- @tparam[opt] table clients options that the store's client reads from the URL, as keys
-- @treturn table the options, checked; `url` without those that are the oracle's
-- @raise a usage error that names the option
function store_options.check(word, opts, rules, clients)
  clients = clients or {}
  local _, named = url.without(opts.url or "", rules)
  for name in pairs(named) do
    if not clients[name] and not store_options.GIVEN[name] then url.refuse_login(opts.url) end
  end
  local own = add_swallowed(opts, store_options.users(opts, clients), clients)
  local checked = schema.check(("oracle '%s'"):format(word), own, rules)
  refuse_tls_in_vain(word, opts, checked.url)
  if rules.ca or clients.ca then check_tls(word, opts, checked.url) end
  refuse_short_leases(word, checked)
  checked.url = merge(url.without(checked.url, rules), opts, clients)
  return checked
end

--- Checks what the user gives an oracle that has no URL of a store.
-- @string word the oracle's, for messages
-- @tparam table opts as init gets them
-- @tparam table rules the oracle's schema
-- @treturn table the options, checked
-- @raise a usage error that names the option
function store_options.own(word, opts, rules)
  local beside = { url = true } -- it has been read
  local own = store_options.users(type(opts.given) == "table" and opts.given or {}, beside)
  return schema.check(("oracle '%s'"):format(word), add_swallowed(opts, own, beside), rules)
end

--- TTL and refresh delay of a lease: a third of the TTL where none is given.
-- @tparam table opts `ttl` or `duration`, `refresh`, `retry`
-- @number default TTL in seconds
-- @number[opt] retry seconds after which followers ask again where nothing tells them, and no option says otherwise
-- @treturn number the TTL
-- @treturn number the delay
-- @treturn nil there is no cool-down
-- @treturn number those seconds; or nil
function store_options.timing(opts, default, retry)
  local ttl = tonumber(opts.ttl) or tonumber(opts.duration) or default
  return ttl, tonumber(opts.refresh) or ttl / 3, nil, tonumber(opts.retry) or retry
end

-- The most that the core waits for the first refresh of a lease, where the user gives no timing: half of what is left
-- until the leader has to stop.
local latest = {} -- thousands of elections mostly have the same timing

local function patience(ttl, delay)
  local last = latest -- which another task may replace at any time
  if last.ttl == ttl and last.delay == delay then return last.patience end
  local fits, timing = elections.explain({}, ttl, delay)
  local left = fits and timing.stop_at - delay or 0
  local found = math.max(left / 2, math.min(left, 1))
  latest = { ttl = ttl, delay = delay, patience = found }
  return found
end

--- Seconds for one question to the store: no longer than the core waits for the answer to a refresh, so that a refresh
-- that was given up is not still under way when the next one is sent.
-- @tparam table checked `timeout`, where the user gives one
-- @number ttl in seconds
-- @number[opt] delay in seconds, from one refresh to the next: a third of the TTL
-- @treturn number
function store_options.timeout(checked, ttl, delay)
  local least = ttl < ORDINARY_LEAST and ttl / 4 or 0.25
  return checked.timeout or math.max(least, math.min(5, ttl / 4, patience(ttl, delay or ttl / 3)))
end

return store_options
