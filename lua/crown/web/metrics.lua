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

local function header(lines, name, kind, help)
  lines[#lines + 1] = ("# HELP %s %s"):format(name, help)
  lines[#lines + 1] = ("# TYPE %s %s"):format(name, kind)
end

--- Renders all metrics.
-- @tparam table elections as crown.core.election.all() gives them
-- @tparam table counts how often each event happened
-- @treturn string
function metrics.render(elections, counts)
  local lines = {}
  header(lines, "crown_info", "gauge", "the runtime, by its labels")
  lines[#lines + 1] = ('crown_info{node="%s",version="%s"} 1'):format(label(core.node()), label(core.version))
  for _, family in ipairs(FAMILIES) do
    local name, kind, help, value_of = unpack(family)
    header(lines, name, kind, help)
    for _, one in ipairs(elections) do
      local value = value_of(one)
      if value then
        lines[#lines + 1] = ('%s{election="%s",oracle="%s"} %.17g'):format(name, label(one.name), label(one.oracle), value)
      end
    end
  end
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
