--- What Prometheus reads: its text format, version 0.0.4.
-- @internal crown.web.metrics

local core = require "crown.core"
local jobs = require "crown.web.jobs"

local metrics = {}

metrics.TYPE = "text/plain; version=0.0.4; charset=utf-8"

local function longest_bar(one)
  local longest = 0
  for _, bar in ipairs(one.barred or {}) do longest = math.max(longest, bar.since) end
  return longest
end

local function label(text)
  if not text:find '[\\"\n]' then return text end
  return (text:gsub('[\\"\n]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }))
end

local FAMILIES = {
  { "crown_leader", "gauge", "1 while this candidate leads and may act", function(one)
    return one.phase == "leading" and one.acting and 1 or 0
  end },
  { "crown_epoch", "gauge", "the epoch of the leader that is known, 0 for none", function(one) return one.epoch end },
  { "crown_lease_remaining_seconds", "gauge", "how long the lease that is known still runs", function(one)
    return one.expires_in
  end },
  { "crown_cooling_seconds", "gauge", "until a candidate that has won acts, 0 when it does not cool down", function(one)
    return one.acts_in or 0
  end },
  { "crown_eligible", "gauge", "0 while the candidate may not lead, by its own rules or by an operator's order", function(one)
    return one.barred and 0 or 1
  end },
  { "crown_ineligible_seconds", "gauge", "for how long the candidate may not lead, 0 where it may", longest_bar },
  { "crown_phase_seconds", "gauge", "how long the candidate has been in its phase", function(one) return one.since end },
  { "crown_election_store_reachable", "gauge", "0 while the election's store gives no answer", function(one)
    return one.away and 0 or 1
  end },
  { "crown_election_store_answer_seconds", "gauge", "how long ago the election's store answered last", function(one)
    return one.answered
  end },
  { "crown_unfenced", "gauge", "1 while a command works on without leading, and nothing tells it to stop", function(one)
    return one.child_unfenced and 1 or 0
  end },
  { "crown_terms_total", "counter", "terms that this candidate has won", function(one) return one.terms end },
}

-- A first question may be held open for as long as nothing happens, and of several servers not all are asked.
local UNTRIED = { ["not asked yet"] = true, asked = true }

local CONNECTIONS = {
  { "crown_store_up", "gauge", "1 while this connection to a store has proved good; none for a server over HTTP that has neither "
    .. "answered nor failed", function(one)
    if UNTRIED[one.state] then return nil end
    return one.state == "proven" and 1 or 0
  end },
  { "crown_store_state_seconds", "gauge", "how long the connection has been in its state", function(one) return one.since end },
  { "crown_store_last_answer_seconds", "gauge", "how long ago the store was heard of last", function(one)
    return one.answered
  end },
  { "crown_store_reconnects_total", "counter", "how often the connection was lost", function(one) return one.reconnects end },
  { "crown_store_connections", "gauge", "how many connections the store may see of this client, with those that were given up "
    .. "and are not known to be gone", function(one) return one.connections end },
  { "crown_store_connections_limit", "gauge", "how many there can be at most", function(one) return one.limit end },
}

-- One runtime may hold several candidates of one election, each with a node of its own.
local function election_labels(one)
  local labels = ('election="%s",oracle="%s"'):format(label(one.name), label(one.oracle))
  return one.node ~= core.node() and ('%s,node="%s"'):format(labels, label(one.node)) or labels
end

local function connection_labels(one)
  return ('connection="%d",store="%s",server="%s"'):format(one.connection, label(one.store), label(one.server or ""))
end

local function job_labels(one) return ('election="%s"'):format(label(one.name)) end

local function header(lines, name, kind, help)
  lines[#lines + 1] = ("# HELP %s %s"):format(name, help)
  lines[#lines + 1] = ("# TYPE %s %s"):format(name, kind)
end

local CUT = 1e14 -- from here on Lua itself writes a number with fewer digits than it has

-- The lines of one family. Of thousands of lines none is made a string of its own, which would cost more than the rest.
local function values(name, value_of, list, labels)
  local parts, n = {}, 0
  for i, one in ipairs(list) do
    local value = value_of(one)
    if value then
      if value >= CUT then value = ("%.17g"):format(value) end
      parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = n > 0 and "\n" or "", name, labels[i], value
      n = n + 4
    end
  end
  return n > 0 and table.concat(parts) or nil
end

local function render(lines, families, list, labels_of)
  local labels = {}
  for i, one in ipairs(list) do labels[i] = "{" .. labels_of(one) .. "} " end
  for _, family in ipairs(families) do
    local name, kind, help, value_of = unpack(family)
    header(lines, name, kind, help)
    lines[#lines + 1] = values(name, value_of, list, labels)
  end
end

-- A histogram adds up: each bound counts all that was shorter.
local function render_latency(lines, bounds, series)
  local name = "crown_oracle_call_seconds"
  header(lines, name, "histogram", "how long calls of oracles took")
  for _, one in ipairs(series) do
    local sum = 0
    for i = 1, #bounds + 1 do
      sum = sum + one[i]
      lines[#lines + 1] = ('%s_bucket{function="%s",le="%s"} %d'):format(name, one["function"],
        bounds[i] and ("%g"):format(bounds[i]) or "+Inf", sum)
    end
    lines[#lines + 1] = ('%s_sum{function="%s"} %.17g'):format(name, one["function"], one.seconds)
    lines[#lines + 1] = ('%s_count{function="%s"} %d'):format(name, one["function"], sum)
  end
end

local function names_of(set)
  local names = {}
  for name in pairs(set) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function render_events(lines, counts, by_election)
  header(lines, "crown_events_total", "counter", "events since the start of the runtime")
  for _, event in ipairs(names_of(counts)) do
    lines[#lines + 1] = ('crown_events_total{event="%s"} %d'):format(label(event), counts[event])
  end
  header(lines, "crown_election_events_total", "counter", "events of each election, of the first thousand")
  for _, name in ipairs(names_of(by_election)) do
    for _, event in ipairs(names_of(by_election[name])) do
      lines[#lines + 1] = ('crown_election_events_total{election="%s",event="%s"} %d'):format(label(name), label(event),
        by_election[name][event])
    end
  end
end

--- Renders all metrics.
-- @tparam table found `elections` as crown.core.election.all() gives them, `connections` as crown.link.conditions.all() gives
-- them, `counts` and `by_election`: how often each event happened; `bounds` and `latency` of crown.core.election.latency;
-- `restarts` of the runtime; `jobs` of crown.web.jobs, or nil
-- @treturn string
function metrics.render(found)
  local lines = {}
  header(lines, "crown_info", "gauge", "the runtime, by its labels")
  lines[#lines + 1] = ('crown_info{node="%s",version="%s"} 1'):format(label(core.node()), label(core.version))
  header(lines, "crown_build_info", "gauge", "what was built, by its labels")
  lines[#lines + 1] = ('crown_build_info{version="%s",lua="%s"} 1'):format(label(core.version), label(jit.version))
  header(lines, "crown_runtime_restarts_total", "counter", "how often the supervisor has restarted the runtime")
  lines[#lines + 1] = ('crown_runtime_restarts_total{node="%s"} %d'):format(label(core.node()), found.restarts)
  render(lines, FAMILIES, found.elections, election_labels)
  render(lines, CONNECTIONS, found.connections, connection_labels)
  if found.jobs then render(lines, jobs.FAMILIES, found.jobs, job_labels) end
  render_latency(lines, found.bounds, found.latency)
  render_events(lines, found.counts, found.by_election)
  return table.concat(lines, "\n") .. "\n"
end

return metrics
