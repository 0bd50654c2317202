--- What `crown-lua info` and `evict` ask of several independent Redis servers, of which a majority decides.
-- @internal crown.redis.majority

local admin = require "crown.redis.admin"
local eviction = require "crown.oracle.eviction"
local explain = require "crown.link.explain"
local redis_url = require "crown.redis.url"
local same = require "crown.redis.same"
local several = require "crown.link.several"

local majority = {}

local function at(opts, url)
  local one = {}
  for key, value in pairs(opts) do one[key] = value end
  one.url, one.urls = url, nil
  return one
end

local function label(url)
  local parsed = redis_url.parse(url)
  return parsed and redis_url.label(parsed) or "?"
end

local function needed(opts)
  return math.floor(#opts.urls / 2) + 1
end

-- Seconds that a server has for its answer when a majority has answered.
local GRACE = 0.5

-- Asks all servers at once. @return their answers, by the server's number, false where there was none; how many there
-- are; and the failures, in words
local function ask_all(opts, fn)
  local answers, problems, failures, reached = {}, {}, {}, 0
  several.ask(#opts.urls, { enough = needed(opts), grace = GRACE }, function(i)
    local answer, problem = fn(at(opts, opts.urls[i]))
    answers[i], problems[i] = answer or false, problem
    return answer
  end)
  local taken = {} -- what comes later belongs to nobody
  for i, url in ipairs(opts.urls) do
    taken[i] = answers[i] or false
    if taken[i] then reached = reached + 1
    else failures[#failures + 1] = ("%s: %s"):format(label(url), explain.bare(label(url), problems[i] or "no answer")) end
  end
  return taken, reached, failures
end

-- Adds what a server says, under its name.
local function add(texts, url, more)
  for _, text in ipairs(more) do texts[#texts + 1] = label(url) .. ": " .. text end
end

-- Adds that two names lead to one server.
local function add_twice(texts, opts, answers)
  local ids = {}
  for i = 1, #opts.urls do ids[i] = answers[i] and answers[i].id or nil end
  texts[#texts + 1] = same.server(opts.urls, ids)
end

local function too_few(opts, reached, failures)
  return nil, ("%d of %d servers answer, %d are needed: %s"):format(reached, #opts.urls, needed(opts),
    table.concat(failures, "; ")), "store"
end

-- What the servers say of one election: whose lease is on most of them leads, until one server fewer has it.
local function judge(name, copies, wanted)
  local one, holders = { name = name, epoch = 0 }, {}
  for _, copy in ipairs(copies) do
    one.epoch = math.max(one.epoch, copy.epoch)
    if copy.token then
      holders[copy.token] = holders[copy.token] or { node = copy.node }
      table.insert(holders[copy.token], copy.expires_in or 0)
    end
  end
  for token, ends in pairs(holders) do
    table.sort(ends, function(a, b) return a > b end)
    if #ends >= wanted then one.node, one.token, one.expires_in = ends.node, token, ends[wanted] end
  end
  return one
end

local function look(opts)
  local answers, reached, failures = ask_all(opts, admin.leases)
  if reached < needed(opts) then return too_few(opts, reached, failures) end
  local copies, found = {}, {}
  for i = 1, #opts.urls do
    for _, copy in ipairs(answers[i] or {}) do
      copies[copy.name] = copies[copy.name] or {}
      table.insert(copies[copy.name], copy)
    end
  end
  for name, list in pairs(copies) do found[#found + 1] = judge(name, list, needed(opts)) end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

local function find(opts, name)
  local found, problem, code = look(opts)
  for _, one in ipairs(found or {}) do
    if one.name == name then return one end
  end
  return found and {}, problem, code
end

--- Elections whose keys begin with the prefix, as most of the servers have them.
-- @tparam table opts `urls`, `prefix`
-- @treturn table an array of `{ name, node, epoch, expires_in }`; or nil, message, code
function majority.list(opts)
  local found, problem, code = look(opts)
  for _, one in ipairs(found or {}) do one.token = nil end
  return found, problem, code
end

--- Marks a leader as evicted on each server, and waits until it has stepped down.
-- @tparam table opts `urls`, `prefix`, `wait`
-- @string name of the election
-- @treturn table `{ node =, epoch = }`; or nil, message, code
function majority.evict(opts, name)
  local leader, problem, code = find(opts, name)
  if not leader then return nil, problem, code end
  if not leader.node then return eviction.nobody(name) end
  local _, reached, failures = ask_all(opts, function(one) return admin.mark(one, name) end)
  if reached < needed(opts) then return too_few(opts, reached, failures) end
  local ended
  ended, problem = eviction.await(name, opts.wait, function()
    local now, why = find(opts, name)
    if not now then return nil, why end
    return now.token ~= leader.token or now.epoch ~= leader.epoch
  end, "the request stays until its lease ends")
  if not ended then return nil, problem end
  return { node = leader.node, epoch = leader.epoch }
end

--- What the servers say of themselves; one that gives no answer is a warning.
-- @tparam table opts `urls`
-- @treturn table `{ ttl =, facts =, warnings = }`; or nil, message, code
function majority.health(opts)
  local answers, reached, failures = ask_all(opts, admin.health)
  if reached < needed(opts) then return too_few(opts, reached, failures) end
  local all = { facts = { { "Store", ("%d servers, of which %d decide"):format(#opts.urls, needed(opts)) } }, warnings = {} }
  for i, url in ipairs(opts.urls) do
    local answer = answers[i]
    all.facts[i + 1] = { "Server " .. i, ("%s, %s"):format(label(url), answer and answer.facts[1][2] or "no answer") }
    if answer and answer.ttl then all.ttl = math.max(all.ttl or 0, answer.ttl) end
    add(all.warnings, url, answer and answer.warnings or {})
  end
  add_twice(all.warnings, opts, answers)
  for _, text in ipairs(failures) do all.warnings[#all.warnings + 1] = text end
  return all
end

--- What a candidate lacks on the servers, for `check --store`; that one gives no answer comes last.
-- @tparam table opts `urls`, `prefix`, `min_replicas`
-- @treturn table an array of texts, with `unchecked` where a server does not tell; or nil and a message, where none answers
function majority.rights(opts)
  local answers, reached, failures = ask_all(opts, admin.rights)
  if reached == 0 then return nil, table.concat(failures, "; ") end
  local all = {}
  for i, url in ipairs(opts.urls) do
    local answer = answers[i] or {}
    add(all, url, answer)
    all.unchecked = all.unchecked or answer.unchecked
  end
  add_twice(all, opts, answers)
  for _, text in ipairs(failures) do all[#all + 1] = text end
  return all
end

return majority
