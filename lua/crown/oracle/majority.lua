--- What info, evict and check ask of several registers. The leader is the candidate that holds the lease on most of them.
-- @internal crown.oracle.majority

local eviction = require "crown.oracle.eviction"
local explain = require "crown.link.explain"
local orders = require "crown.register.orders"
local outputs = require "crown.register.outputs"
local record = require "crown.register.record"
local ranks = require "crown.register.ranks"
local runs = require "crown.register.runs"
local several = require "crown.link.several"
local tools = require "crown.register.tools"

local majority = {}

local GRACE = 0.5 -- seconds that a server has for its answer when most have answered

local function needed(servers) return math.floor(#servers / 2) + 1 end

-- Asks all servers at once, each by a task of its own. @return answers by the server's number, false where there was none; how
-- many there are; the failures, in words; and the code of one of them
local function ask_all(servers, fn)
  local answers, problems, code = {}, {}, nil
  several.ask(#servers, { enough = needed(servers), grace = GRACE }, function(i)
    local answer, problem, why = fn(servers[i].store)
    answers[i], problems[i], code = answer or false, problem, why or code
    return answer
  end)
  local taken, failures, count = {}, {}, 0 -- what comes later belongs to nobody
  for i, server in ipairs(servers) do
    taken[i] = answers[i] or false
    if taken[i] then count = count + 1
    else
      failures[#failures + 1] = ("%s: %s"):format(server.label, explain.bare(server.label, problems[i] or "no answer"))
    end
  end
  return taken, count, failures, code
end

local function too_few(servers, reached, failures, code)
  return nil, ("%d of %d servers answer, %d are needed: %s"):format(reached, #servers, needed(servers),
    table.concat(failures, "; ")), code or "store"
end

-- What the servers say of one election: a runtime whose sessions hold it on most of them leads, in an epoch that most of them
-- have reached. A server that came later has a higher one.
local function judge(name, records, wanted)
  local one, holders = { name = name, epoch = 0 }, {}
  for _, found in ipairs(records) do
    one.epoch, one.orders = math.max(one.epoch, found.epoch or 0), one.orders or found.orders
    one.runs = runs.later(one.runs, found.runs)
    local by = found.by and record.runtime(found.by) or found.node -- a runtime has another session on each server
    if by then
      holders[by] = holders[by] or { node = found.node, lives = 0 }
      table.insert(holders[by], found.epoch)
      if not found.over then holders[by].lives = holders[by].lives + 1 end
    end
  end
  for by, epochs in pairs(holders) do
    table.sort(epochs, function(a, b) return a > b end)
    if #epochs >= wanted then
      one.node, one.by, one.epoch, one.over = epochs.node, by, epochs[wanted], epochs.lives < wanted or nil
    end
  end
  return one
end

local function look(servers, read)
  local answers, reached, failures, code = ask_all(servers, read)
  if reached < needed(servers) then return too_few(servers, reached, failures, code) end
  local records, found = {}, {}
  for i = 1, #servers do
    for name, one in pairs(answers[i] or {}) do
      records[name] = records[name] or {}
      table.insert(records[name], one)
    end
  end
  for name, all in pairs(records) do found[#found + 1] = judge(name, all, needed(servers)) end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

local function leader_of(servers, name)
  local found, problem, code = look(servers, function(store) return tools.records(store, { name }) end)
  if not found then return nil, problem, code end
  return found[1] or {}
end

--- Elections, and who leads them on most of the servers.
-- @tparam table servers each `store` and `label`
-- @treturn table an array of `{ name =, node =, epoch =, over =, ordered =, preferred = }`; or nil, message, code
function majority.list(servers)
  local found, problem, code = look(servers, function(store)
    local names, why, kind = store:names()
    if not names then return nil, why, kind end
    return tools.records(store, names)
  end)
  for _, one in ipairs(found or {}) do
    one.by, one.ordered, one.ran = nil, orders.words(one.orders, os.time()), runs.words(one.runs, os.time())
    one.preferred = ranks.words(one.orders)
  end
  return found, problem, code
end

--- Asks a leader to go, on each server, and waits until it has.
-- @tparam table servers
-- @string name
-- @number[opt] wait seconds
-- @treturn table `{ node =, epoch = }`; or nil, message, code
function majority.evict(servers, name, wait)
  local leader, problem, code = leader_of(servers, name)
  if not leader then return nil, problem, code end
  if not leader.node then return eviction.nobody(name) end
  local _, reached, failures, why = ask_all(servers, function(store)
    local asked, problem_there, kind = tools.ask_to_go(store, name)
    if asked == nil then return nil, problem_there, kind end
    return true
  end)
  if reached < needed(servers) then return too_few(servers, reached, failures, why) end
  local ended
  ended, problem, code = eviction.await(name, wait, function()
    local now, what = leader_of(servers, name)
    if not now then return nil, what, "store" end
    return now.by ~= leader.by or now.epoch ~= leader.epoch
  end, "the request stays until its term ends")
  if not ended then return nil, problem, code end
  return { node = leader.node, epoch = leader.epoch }
end

--- Orders something of all candidates, on each server.
-- @tparam table servers
-- @string name
-- @tparam[opt] table fields as of crown.register.tools
-- @treturn table who leads, with the `orders` that stood; false where no server has a record; or nil, message, code
function majority.order(servers, name, fields)
  local leader, problem, code = leader_of(servers, name)
  if not leader then return nil, problem, code end
  if not leader.name then return false end
  local wanted
  wanted, problem, code = tools.changed(name, leader, fields)
  if wanted == nil then return nil, problem, code end
  local _, reached, failures, why = ask_all(servers, function(store)
    local before, problem_there, kind = tools.order(store, name, fields)
    if kind == tools.REFUSED then return true end -- another server has what this one lacks
    return before ~= nil or nil, problem_there, kind
  end)
  if reached < needed(servers) then return too_few(servers, reached, failures, why) end
  return leader
end

-- What each server answers; false of one that has nothing. @return by the server's number; or nil, message, code
local function found_by(servers, fn)
  local answers, reached, failures, code = ask_all(servers, function(store)
    local found, problem, why = fn(store)
    if found == nil then return nil, problem, why end
    return { found = found }
  end)
  if reached < needed(servers) then return too_few(servers, reached, failures, code) end
  for i = 1, #servers do answers[i] = answers[i] and answers[i].found end
  return answers
end

--- The marks of an election's runs, as of crown.register.tools; or forgets them on each server.
-- @tparam table servers
-- @string name
-- @tparam[opt] boolean forget
-- @treturn table the marks; false where no server has a record; or nil, message, code
function majority.runs(servers, name, forget)
  local found, problem, code = found_by(servers, function(store) return tools.runs(store, name, forget) end)
  if not found then return nil, problem, code end
  local all = false
  for i = 1, #servers do
    if found[i] then all = runs.later(all or nil, found[i]) or {} end
  end
  return all
end

--- The end of what an election's command has written, as of crown.register.outputs; or keeps it, on each server.
-- @tparam table servers
-- @string name
-- @tparam[opt] table fields
-- @treturn table the last one that any server has; true where it is kept; false where no server has one; or nil, message, code
function majority.output(servers, name, fields)
  local found, problem, code = found_by(servers, function(store) return outputs.output(store, name, fields) end)
  if not found then return nil, problem, code end
  local last = false
  for i = 1, #servers do
    local one = found[i]
    if one and (fields or not last or one.began > last.began) then last = one end
  end
  return last
end

--- The nodes of which a runtime has a session on any of the servers: see crown.register.tools.
-- @tparam table servers
-- @treturn table by node; or nil, message, code
function majority.nodes(servers)
  local all = {}
  local _, reached, failures, code = ask_all(servers, function(store)
    local names, problem, why = store:names()
    if not names then return nil, problem, why end
    local found
    found, problem, why = tools.nodes(store, names)
    for node in pairs(found or {}) do all[node] = true end
    return found, problem, why
  end)
  if reached < needed(servers) then return too_few(servers, reached, failures, code) end
  return all
end

-- Adds what a server says, under its name.
local function add(texts, server, more)
  for _, text in ipairs(more or {}) do texts[#texts + 1] = server.label .. ": " .. text end
end

--- Whether two names lead to one server, which would count twice.
-- @tparam table servers each `store`, with its `id` where it has been asked, and `label`
-- @treturn string what to say; or nil, where each that is known is another one
function majority.twice(servers)
  for i, server in ipairs(servers) do -- at each refresh of each election: without a table
    for j = 1, server.store.id and i - 1 or 0 do
      local other = servers[j]
      if other.store.id == server.store.id then
        return ("two of these names lead to one server: %s and %s"):format(other.label, server.label)
      end
    end
  end
end

--- What the servers say of themselves; one that gives no answer is a warning.
-- @tparam table servers
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function majority.health(servers)
  local answers, reached, failures, code = ask_all(servers, function(store) return store:health() end)
  if reached < needed(servers) then return too_few(servers, reached, failures, code) end
  local all = { facts = { { "Store", ("%d servers, of which %d decide"):format(#servers, needed(servers)) } }, warnings = {} }
  for i, server in ipairs(servers) do
    local answer = answers[i]
    all.facts[i + 1] = { "Server " .. i, ("%s, %s"):format(server.label, answer and answer.facts[1][2] or "no answer") }
    add(all.warnings, server, answer and answer.warnings)
  end
  all.warnings[#all.warnings + 1] = majority.twice(servers)
  for _, text in ipairs(failures) do all.warnings[#all.warnings + 1] = text end
  return all
end

--- What a candidate lacks on the servers; that one gives no answer comes last.
-- @tparam table servers
-- @string name of the election
-- @number patience seconds that a candidate waits for an answer
-- @treturn table an array of texts, with `unchecked` where a server does not tell; or nil and a message, where none answers
function majority.rights(servers, name, patience)
  local answers, reached, failures = ask_all(servers, function(store) return store:rights(patience, name) end)
  if reached == 0 then return nil, table.concat(failures, "; ") end
  local all = {}
  for i, server in ipairs(servers) do
    add(all, server, answers[i])
    all.unchecked = all.unchecked or answers[i] and answers[i].unchecked
  end
  all[#all + 1] = majority.twice(servers)
  for _, text in ipairs(failures) do all[#all + 1] = text end
  return all
end

return majority
