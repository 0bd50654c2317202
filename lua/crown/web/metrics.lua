--- What Prometheus reads: its text format, version 0.0.4.
-- @module crown.web.metrics

local core = require "crown.core"

local metrics = {}

metrics.TYPE = "text/plain; version=0.0.4; charset=utf-8"

local function label(text)
  return (tostring(text):gsub('[\\"\n]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }))
end

local FAMILIES = {
  { "crown_leader", "gauge", "1 while this candidate leads and may act", function(one)
    return one.phase == "leading" and one.acting and 1 or 0
  end },
  { "crown_epoch", "gauge", "the epoch of the leader that is known, 0 for none", function(one) return one.epoch end },
  { "crown_lease_remaining_seconds", "gauge", "how long the lease that is known still runs", function(one)
    return one.expires_in
  end },
  { "crown_phase_seconds", "gauge", "how long the candidate has been in its phase", function(one) return one.since end },
  { "crown_terms_total", "counter", "terms that this candidate has won", function(one) return one.terms end },
}

local CONNECTIONS = {
  { "crown_store_up", "gauge", "1 while this connection to a store has proved good", function(one)
    return one.state == "proven" and 1 or 0
  end },
  { "crown_store_state_seconds", "gauge", "how long the connection has been in its state", function(one) return one.since end },
  { "crown_store_last_answer_seconds", "gauge", "how long ago the store was heard of last", function(one)
    return one.answered
  end },
  { "crown_store_reconnects_total", "counter", "how often the connection was lost", function(one) return one.reconnects end },
}

local function election_labels(one)
  return ('election="%s",oracle="%s"'):format(label(one.name), label(one.oracle))
end

local function connection_labels(one)
  return ('connection="%d",store="%s",server="%s"'):format(one.connection, label(one.store), label(one.server or ""))
end

local function header(lines, name, kind, help)
  lines[#lines + 1] = ("# HELP %s %s"):format(name, help)
  lines[#lines + 1] = ("# TYPE %s %s"):format(name, kind)
end

local function render(lines, families, list, labels_of)
  local labels = {}
  for i, one in ipairs(list) do labels[i] = "{" .. labels_of(one) .. "} " end
  for _, family in ipairs(families) do
    local name, kind, help, value_of = unpack(family)
    header(lines, name, kind, help)
    for i, one in ipairs(list) do
      local value = value_of(one)
      if value then lines[#lines + 1] = ("%s%s%.17g"):format(name, labels[i], value) end
    end
  end
end

--- Renders all metrics.
-- @tparam table elections as crown.core.election.all() gives them
-- @tparam table connections as crown.link.conditions.all() gives them
-- @tparam table counts how often each event happened
-- @treturn string
function metrics.render(elections, connections, counts)
  local lines = {}
  header(lines, "crown_info", "gauge", "the runtime, by its labels")
  lines[#lines + 1] = ('crown_info{node="%s",version="%s"} 1'):format(label(core.node()), label(core.version))
  render(lines, FAMILIES, elections, election_labels)
  render(lines, CONNECTIONS, connections, connection_labels)
  header(lines, "crown_events_total", "counter", "events since the start of the runtime")
  local names = {}
  for event in pairs(counts) do names[#names + 1] = event end
  table.sort(names)
  for _, event in ipairs(names) do
    lines[#lines + 1] = ('crown_events_total{event="%s"} %d'):format(label(event), counts[event])
  end
  return table.concat(lines, "\n") .. "\n"
end

return metrics
