--- Postgres URLs, and the options of the oracles that take them.
-- @internal crown.postgres.url

local bare = require "crown.core.postgres"
local named_files = require "crown.oracle.named_files"
local store_options = require "crown.oracle.options"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local postgres_url = {}

local WRITTEN = "a Postgres URL is written postgres://user@host:port/database"

-- libpq would read such a URL otherwise than it was meant, and show a part of the password in its complaint.
local function has_bare_characters(rest)
  local authority = rest:match "^[^/?]*"
  local login = authority:match "^(.*)@"
  if login and rest:match "^[^?]*":find("@", #authority + 1, true) then return true end
  if login then return login:find "@" end
  local without_ports = (authority:gsub("%b[]", "") .. ","):gsub(":%d*,", ",")
  return rest:match "^[^?]*":find "@" and not login or without_ports:find ":" and rest:find "@"
end

-- For libpq a place without a name is this host's own server: behind a comma too many there would be another database.
local function has_empty_place(rest)
  local places = rest:match "^[^/?]*":gsub("^.*@", "")
  if not places:find(",", 1, true) then return false end
  for one in (places .. ","):gmatch "([^,]*)," do
    if one == "" or one:find ":$" then return true end
  end
  return false
end

--- Makes of an oracle's URL one that libpq reads.
-- @string text `postgres://…`, or with a word for the oracle: `postgres+advisory://…`, `oban+postgres://…`
-- @treturn string the URL, or nil and a message without any of its parts
function postgres_url.check(text)
  if type(text) ~= "string" then return nil, "no URL is given: " .. WRITTEN end
  local scheme, rest = text:match "^([%w+]+)://(.*)$"
  local words = "+" .. (scheme or "") .. "+"
  if not words:find("+postgres+", 1, true) and not words:find("+postgresql+", 1, true) then
    return nil, WRITTEN
  end
  local problem = url.encoding_problem(text) or url.place_problem(text)
  if problem then return nil, problem end
  if has_bare_characters(rest) then
    return nil, url.UNENCODED
  end
  if has_empty_place(rest) then return nil, "the URL's list of hosts has an empty place: " .. WRITTEN end
  return "postgres://" .. rest
end

--- How messages name the server before there is a connection: without user, password and options.
-- @string text
-- @treturn string
function postgres_url.label(text)
  local place = (text:match "^%w+[%w+]*://([^?]*)" or ""):gsub("^.*@", "")
  return place ~= "" and place or "postgres"
end

--- The rule of the option `url`, which belongs to the oracle's schema.
postgres_url.RULE = { type = "string", default = "postgres://" }

--- The rule of the option `schema`: which one the tables are in, where others of the database have tables of other candidates.
postgres_url.SCHEMA = { type = "string", match = "^.+$", match_words = "a schema's name" }

-- libpq reads `ssl=true`, as JDBC has it, in a URL alone.
local IN_URLS = { ssl = true }

-- Neither ours nor libpq's: libpq would name it, without a word of what there is.
local function refuse(word, text, name, rules, there)
  local names = usage.names(rules)
  local meant = usage.translate(name, names)
  if not meant then
    if not there or there[name] or IN_URLS[name] then return end
    for _, known in ipairs(usage.names(there)) do names[#names + 1] = known end
    meant = usage.suggest(name, names)
  end
  url.refuse_login(text)
  usage.error("oracle '%s': unknown option '%s'%s", word, name, meant)
end

local FILES = { "sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile" }

-- Where a file that is named is missing, libpq may go on without it.
local function check_files(word, text)
  local given = {}
  url.read_query(text:match "%?(.*)$" or "", given)
  for _, option in ipairs(FILES) do
    local is_path = not (option == "sslrootcert" and given[option] == "system") -- as libpq 16 has it
      and not (option == "sslkey" and (given[option] or ""):find ":") -- of an engine
    if is_path then named_files.check(word, option, given[option]) end
  end
end

--- Sorts out an oracle's options: ours are checked; in the URL's query, what is not ours is libpq's.
-- @string word the oracle's, for messages
-- @tparam table opts as init and list get them
-- @tparam table rules the oracle's schema
-- @treturn table the options, checked, with `url` and what every oracle gets
-- @raise a usage error that names the option
function postgres_url.options(word, opts, rules)
  local _, libpqs = url.without(opts.url or "", rules)
  local there = next(libpqs) and bare.options() -- nil where libpq is not installed, which is said later
  for name in pairs(libpqs) do refuse(word, opts.url, name, rules, there) end
  local checked = store_options.check(word, opts, rules, libpqs)
  check_files(word, checked.url)
  for key in pairs(store_options.GIVEN) do checked[key] = opts[key] end
  return checked
end

local COMMITS = { on = true, ["local"] = true, remote_write = true, remote_apply = true }

--- The rule of the option `synchronous_commit`.
postgres_url.COMMIT = { type = { "string", "boolean" }, default = "on" }

--- As `options`, of an oracle whose rules have `synchronous_commit`: with its word.
-- @treturn table the options; or nil and a message
function postgres_url.durable_options(word, opts, rules)
  local checked = postgres_url.options(word, opts, rules)
  local commit = checked.synchronous_commit
  checked.synchronous_commit = commit == true and "on" or tostring(commit)
  if COMMITS[checked.synchronous_commit] then return checked end
  return nil, ("synchronous_commit = %s would let the server forget a lease in a crash: on, local, remote_write or remote_apply")
    :format(tostring(commit))
end

return postgres_url
