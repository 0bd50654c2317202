--- Health of the candidates of support.register_world, and what it makes of them: as lua/crown/election/health.lua has it. A host
-- is `sick` or not; one with `last_resort` leads all the same where nobody else does.
local tasks = require "support.register_tasks"
local after = tasks.after
local core = require "support.register_core"
local end_term, follow, log = core.end_term, core.follow, core.log

local EVERY = 2 -- seconds from one check to the next, about
local LOOK = 0.5 -- seconds between two looks whether a term has ended

local health = {}

--- The level of those that lead only where nobody else does, as records have it.
health.LAST = -1000000

-- A term ends first, so that those who are healthy may claim.
local function lead_as_the_last(world, node, election)
  election.member.rank.is_last = true
  local function look()
    if not election.member.rank.is_last then return end
    local is_over = not election.leads and not election.task and election.acts_until <= node.env.now()
    if not is_over then return after(world, node, LOOK, look) end
    election.sick = nil
    follow(world, node, election, 0)
  end
  after(world, node, LOOK, look)
end

local function recover(world, node, election)
  local rank = election.member.rank
  rank.is_last, rank.since, election.sick = nil, node.env.now(), nil
  -- A tree that has not ended is waited for all the same.
  local left = math.max(0, election.acts_until - node.env.now() + 0.001)
  if not election.leads then return election.task or follow(world, node, election, left) end
  world.modules.claims.say_rank(election.member.session, election.member)
end

local function turn(world, node)
  log(world, node, node.sick and "is unhealthy" or "is healthy")
  for _, name in ipairs(world.names) do
    local election = node.elections[name]
    if node.sick then
      election.sick = true
      if election.leads then end_term(world, node, election, true) end
      if node.host.last_resort then lead_as_the_last(world, node, election) end
    else
      recover(world, node, election)
    end
  end
end

local function watch(world, node)
  if node.sick ~= node.host.sick then
    node.sick = node.host.sick
    turn(world, node)
  end
  after(world, node, EVERY * (0.5 + world.random()), function() watch(world, node) end)
end

--- Checks a runtime's health again and again. It claims nothing before the first answer.
function health.begin(world, node)
  for _, name in ipairs(world.names) do node.elections[name].sick = true end
  after(world, node, world.random() * EVERY, function() watch(world, node) end)
end

--- What a host says of its election: nil where it may not lead.
-- @treturn number
function health.level(host)
  if not host.sick then return host.rank and host.rank.level or host.level or 0 end
  return host.last_resort and health.LAST or nil
end

return health
