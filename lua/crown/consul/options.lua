--- The options of an election in the format of `consul lock`.
-- @internal crown.consul.options

local figure = require "crown.check.figure"
local place = require "crown.consul.place"
local session = require "crown.consul.session"
local store_options = require "crown.oracle.options"

local options = {}

local DEFAULT_TTL, RETRY = 15, 5 -- as `consul lock` has them, in seconds
local TOO_SHORT = "lock_delay=%s is shorter than a lease: where somebody destroys a leader's session, another one leads before "
  .. "it has ended; give %s or more, or leave it out"
local LONGEST = 256 -- bytes of a name: a key goes into a URL

--- What is the same in both formats.
options.COMMON = {
  url = { type = "string" },
  token_file = { type = "string" },
  dc = { type = "string", match = "^[%w_-]+$", match_words = "a datacenter's name: letters, digits, - and _" },
  ca = { type = "string" }, cert = { type = "string" }, key = { type = "string" },
  lock = store_options.lock(function(lock)
    if #lock > LONGEST then return ("must have at most %d bytes"):format(LONGEST) end
  end),
}

--- The words of the option `recipe`.
options.RECIPES = { "lock", "register" }

local RULES = {
  recipe = { type = "string", values = options.RECIPES, default = "lock" },
  ttl = { type = "number", least = 1, most = 86400, default = DEFAULT_TTL },
  refresh = { type = "number", above = 0, most = 86400 },
  retry = { type = "number", above = 0, most = 86400, default = RETRY },
  timeout = { type = "number", above = 0, most = 3600 },
  lock_delay = { type = "number", least = 0, most = 60 },
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
}
for name, rule in pairs(options.COMMON) do RULES[name] = rule end

--- TTL and refresh delay that these options make.
-- @tparam table opts
-- @treturn number seconds
-- @treturn number seconds
function options.timing(opts)
  local ttl, delay = store_options.timing(opts, DEFAULT_TTL)
  return ttl, delay
end

--- Seconds for which Consul keeps the lock back of a session that has ended in disorder.
-- @tparam table opts
-- @number ttl seconds
-- @treturn number
function options.lock_delay(opts, ttl) return tonumber(opts.lock_delay) or session.delay(ttl) end

--- Seconds for one question: a refresh asks two.
-- @tparam table checked
-- @treturn number
function options.timeout(checked)
  return checked.timeout or store_options.timeout(checked, checked.ttl, checked.delay) / 2
end

--- What tells one place from another.
-- @tparam table checked
-- @treturn string
function options.key(checked)
  local words = {}
  for _, name in ipairs { "url", "token_file", "dc", "ca", "cert", "key", "ttl", "amnesia_wait", "trust_empty" } do
    words[#words + 1] = tostring(checked[name])
  end
  return table.concat(words, " ")
end

--- Checks what the user gives.
-- @tparam table opts as the oracle's functions get them
-- @treturn table the options, checked, with `delay`; or nil and a message
-- @raise a usage error that names the option
function options.check(opts)
  local checked = store_options.check("consul", opts, RULES)
  local found, problem = place.find(checked.url)
  if not found then return nil, problem end
  local _
  _, checked.delay = options.timing(checked)
  checked.lock_delay = options.lock_delay(checked, checked.ttl)
  local least = session.delay(checked.ttl)
  if checked.lock_delay < least then return nil, TOO_SHORT:format(figure.exact(checked.lock_delay), figure.exact(least)) end
  return checked
end

return options
