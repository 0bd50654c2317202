--- What a core does around an oracle, in support.register_world: it claims, refreshes and ends terms, and two that act at once are found.
local Renewals = require "support.register_renewals"
local servers = require "support.register_servers"
local chance = servers.chance
local tasks = require "support.register_tasks"
local pairs = require("support.ordered_pairs").pairs
local after, spawn = tasks.after, tasks.spawn

local claim, refresh

local function log(world, node, ...)
  if not world.trace then return end
  local words = { ("%9.3f %s"):format(world.clock.now, node.label) }
  for i = 1, select("#", ...) do words[#words + 1] = tostring((select(i, ...))) end
  world.trace(table.concat(words, " "))
end

local function acts(node, name)
  local election = not node.dead and node.elections[name]
  return election and election.acts_until > node.env.now()
end

local function check(world, name)
  local row, leader = world.peers and world.shards.elections1.rows[name], nil
  for _, node in pairs(world.nodes) do
    if acts(node, name) then
      if leader then error(("two act on %s at %.3f: %s and %s"):format(name, world.clock.now, leader.label, node.label), 0) end
      leader = node
      if row and row.peer and row.ends > world.clock.now then
        error(("%s leads %s at %.3f beside %s"):format(node.label, name, world.clock.now, row.peer), 0)
      end
    end
  end
end

-- A call of the oracle; `done` gets what it returned, nil when it was given up.
local function call(world, node, election, fn, done)
  local over, mine = false, {}
  local function finish(...)
    if over then return end
    over = true
    if election.call == mine then election.task = nil end -- else its term has ended, and another call is under way
    done(...)
  end
  local task
  election.task, election.call = true, mine
  local patience = node.timeout * 2
  after(world, node, patience, function()
    if over then return end
    if task then task.cancelled = true end
    finish(nil, "given up")
  end)
  task = spawn(world, node, finish, function()
    if world.servers > 1 then return world.modules.several[fn](node.env, election.member) end
    return world.modules.terms[fn](election.member.session, election.member)
  end)
  if not over then election.task = task end
end

local function soon(world) return world.eager and 0.02 + world.random() * 0.15 or 0.4 + world.random() * 1.6 end

local function follow(world, node, election, pause)
  election.turn = (election.turn or 0) + 1
  local turn = election.turn
  after(world, node, pause, function()
    if election.turn == turn then claim(world, node, election) end
  end)
end

-- A command has ended by itself; each third one has failed.
local function end_run(node, election)
  local job = election.member.job
  if not job then return end
  job.result = { at = math.floor(node.env.time() / 1000), took = 0, code = election.epoch % 3 == 0 and 1 or 0 }
end

-- Some trees do not die: then nothing is released, and nothing claimed, until the deadline.
local function end_term(world, node, election, gives_back)
  election.leads, election.turn = false, election.turn + 1
  if election.task then
    if type(election.task) == "table" then election.task.cancelled = true end
    election.task = nil
  end
  local left = election.acts_until - node.env.now()
  if left > 0 and chance(world, 0.25) then
    log(world, node, "has a tree that does not end:", election.name)
    return follow(world, node, election, left + 0.001)
  end
  election.acts_until = -math.huge
  if gives_back then end_run(node, election) end
  if not gives_back then return follow(world, node, election, soon(world)) end
  call(world, node, election, "release", function() follow(world, node, election, soon(world)) end)
end

local function granted(world, node, election, sent, grant)
  local past = grant.past or 0
  local lasts = grant.ttl + past
  local deadline = sent - past + lasts - lasts / 100 - math.min(0.25, lasts / 8)
  if node.env.now() >= deadline then return false end
  election.refresher = grant.refresher or election.refresher
  election.acts_until = deadline
  check(world, election.name)
  local turn = election.turn
  after(world, node, deadline - node.env.now(), function() -- the keeper's: see thaw
    if election.turn == turn and election.leads and election.acts_until <= node.env.now() then
      end_term(world, node, election, chance(world, 0.5))
    end
  end)
  return true
end

local function begin_term(world, node, election, grant)
  local name = election.name
  log(world, node, "leads", name, "epoch", ("%.0f"):format(grant.epoch))
  if grant.epoch <= (world.highest[name] or 0) then
    error(("epoch %.0f of %s after %.0f at %.3f"):format(grant.epoch, name, world.highest[name], world.clock.now), 0)
  end
  world.highest[name] = grant.epoch
  world.terms = world.terms + 1
  election.leads, election.epoch = true, grant.epoch
  if election.member.job then election.member.job.started = true end
end

local function stop(world, node, election, second)
  log(world, node, "has lost", election.name, second and second.error or "")
  end_term(world, node, election, false)
end

local function refreshed(world, node, election, sent, verdict, second, grant)
  if not election.leads then return end
  if verdict then
    assert(grant.epoch == election.epoch, "a refresh in another epoch")
    if not granted(world, node, election, sent, grant) then return refresh(world, node, election, 0.1) end
    return refresh(world, node, election, math.max(0, sent + second - node.env.now()))
  end
  if verdict == nil then return refresh(world, node, election, 0.1 + world.random() * 0.5) end
  if second.evicted then return end_term(world, node, election, true) end
  stop(world, node, election, second)
end

-- As the core's candidate does it: by a renewal that counts for all terms, or by the oracle.
local function refresh_by(world, node, election, done)
  local sent, renewals, turn = node.env.now(), election.refresher, election.turn
  local function ask_oracle()
    call(world, node, election, "refresh", function(...) done(sent, ...) end)
  end
  local function granted_at_once()
    local second, grant = Renewals.grant(renewals, election.stands, sent)
    if not second then return false end
    grant.epoch = election.epoch
    done(sent, true, second, grant)
    return true
  end
  if not renewals then return ask_oracle() end
  if granted_at_once() then return end
  if not election.stands or not renewals.sent then return ask_oracle() end
  local over = false
  election.task = true
  local function answered(problem)
    if over or election.turn ~= turn then return end
    over, election.task = true, nil
    if granted_at_once() then return end
    if problem and election.stands then return done(sent, nil, problem) end
    ask_oracle()
  end
  after(world, node, node.timeout * 2, function() answered "given up" end)
  Renewals.wait(renewals, function(...)
    local problem = ...
    after(world, node, 0, function() answered(problem) end)
  end)
end

-- Commands end also when the trouble is over.
local function chance_of_end(world)
  if world.slot and not world.trouble then return 0.5 end
  return world.trouble and not world.restarts and 0.05 or 0
end

function refresh(world, node, election, delay)
  local turn = election.turn
  after(world, node, delay, function()
    if election.turn ~= turn or not election.leads then return end
    if election.task then return refresh(world, node, election, 0.1) end
    if chance(world, chance_of_end(world)) or not election.wanted then
      log(world, node, "gives back", election.name)
      return end_term(world, node, election, true)
    end
    if election.told then
      election.told = false
      return call(world, node, election, "look", function(verdict, second)
        if election.turn ~= turn or not election.leads then return end
        if verdict == false then return refreshed(world, node, election, 0, verdict, second) end
        refresh(world, node, election, 0)
      end)
    end
    refresh_by(world, node, election, function(...)
      if election.turn == turn then refreshed(world, node, election, ...) end
    end)
  end)
end

-- A host leaves an occurrence to a preferred one for a while, and not for longer.
local function check_delay(world, node, job, denial)
  if not world.yields or not (denial.ordered or ""):find("^left to .* of preference") then return end
  world.left = (world.left or 0) + 1
  if node.env.now() + denial.wait > job.from + world.yields + 0.001 then
    error(("%s waits longer for a preferred host at %.3f: %.3f s"):format(node.label, world.clock.now, denial.wait), 0)
  end
end

local function claimed(world, node, election, sent, verdict, second, grant)
  if verdict and not election.sick then
    election.acts_until = -math.huge
    begin_term(world, node, election, grant)
    if not granted(world, node, election, sent, grant) then return end_term(world, node, election, true) end
    return refresh(world, node, election, math.max(0, sent + second - node.env.now()))
  end
  if verdict == false then
    election.leader = second.node
    check_delay(world, node, election.member.job, second)
    local comes_when_asked_for = world.preferred or world.shares or world.yields or world.healthy
    local wait = not comes_when_asked_for and second.wait and chance(world, 0.5) and second.wait
    return follow(world, node, election, wait or soon(world))
  end
  if not verdict and chance(world, 0.2) then return follow(world, node, election, soon(world)) end
  call(world, node, election, "release", function() follow(world, node, election, soon(world)) end)
end

local function take_slot(world, job, env)
  local slot = math.floor(env.time() / 1000 / world.slot) * world.slot
  if job.slot ~= slot then job.slot, job.from = slot, env.now() end
end

function claim(world, node, election)
  if election.leads or election.task then return end
  local is_kept = not election.wanted or election.sick or election.barred and chance(world, 0.9)
  if is_kept then return follow(world, node, election, soon(world)) end
  local sent, job = node.env.now(), election.member.job
  if job then job.started, job.result = nil, nil end
  if job and world.slot then take_slot(world, job, node.env) end
  call(world, node, election, "claim", function(...) claimed(world, node, election, sent, ...) end)
end

-- What orders say against leading, of several servers by most of them: as lua/crown/register/oracle.lua.
local function obey(world, node, election, part, bar)
  local barred, free = nil, 0
  for _, one in ipairs(election.member.parts or { part }) do
    if one.bar then barred = barred or one.bar elseif one.slot.since then free = free + 1 end
  end
  if free > world.servers / 2 then barred = nil end
  log(world, node, "is told", election.name, bar or "nothing more")
  election.barred = barred
  -- A tree that has not ended is waited for all the same.
  if not election.leads then return barred or follow(world, node, election, math.max(0, election.acts_until - node.env.now() + 0.001)) end
  if barred then end_term(world, node, election, true) end
end

return { acts = acts, check = check, end_term = end_term, follow = follow, log = log, obey = obey, stop = stop }
