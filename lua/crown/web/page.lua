--- The status page: a plain table for whoever has no scripts; with them it follows /api/elections.
-- @module crown.web.page

local page = {}

--- How many elections it shows.
page.MOST = 1000

local function escape(text)
  return (tostring(text):gsub('[&<>"\']', { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
    ["'"] = "&#39;" }))
end

local STYLE = [[
:root { color-scheme: light dark; --ink: #1c2128; --soft: #59636e; --paper: #fff; --panel: #f6f8fa; --line: #d1d9e0;
  --good: #1a7f37; --bad: #cf222e; --wait: #9a6700; --accent: #0969da; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --panel: #151b23;
  --line: #3d444d; --good: #3fb950; --bad: #f85149; --wait: #d29922; --accent: #4493f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; margin-bottom: 1.25rem; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.soft { color: var(--soft); } #live::before { content: "●"; margin-right: .35em; color: var(--wait); }
#live.on::before { color: var(--good); } #live.off::before { color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--line); padding: .4rem .6rem; }
td { border-bottom: 1px solid var(--line); padding: .45rem .6rem; overflow-wrap: anywhere; }
.badge { display: inline-block; padding: 0 .55em; border-radius: 1em; border: 1px solid currentColor; font-size: .85em;
  color: var(--soft); white-space: nowrap; }
.badge.leading { color: var(--good); font-weight: 600; } .badge.finishing, .badge.init { color: var(--wait); }
ol { list-style: none; margin: 0; padding: 0 0 0 1rem; border-left: 2px solid var(--line); }
li { position: relative; padding: .15rem 0 .15rem .35rem; overflow-wrap: anywhere; }
li::before { content: ""; position: absolute; left: calc(-1rem - 5px); top: .62em; width: 8px; height: 8px;
  border-radius: 50%; background: var(--soft); }
li.claimed::before { background: var(--good); } li.lost::before, li.killed::before, li.error::before { background: var(--bad); }
time { color: var(--soft); font-variant-numeric: tabular-nums; margin-right: .6em; white-space: nowrap; }
@media (max-width: 40rem) { thead { display: none; } tr { display: block; background: var(--panel);
  border: 1px solid var(--line); border-radius: .5rem; margin-bottom: .75rem; padding: .4rem .75rem; }
  td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .15rem 0; text-align: right; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left; flex: none; } }
]]

local SCRIPT = [[
"use strict";
const labels = ["Election", "State", "Leader", "Epoch", "Lease", "For", "Oracle"];
function span(s) {
  if (s === undefined || s === null) return "–";
  if (s < 90) return s.toFixed(1) + " s";
  if (s < 5400) return Math.round(s / 60) + " min";
  return s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " d";
}
function cell(row, index, child) {
  const td = document.createElement("td");
  td.dataset.label = labels[index];
  td.append(child);
  row.append(td);
}
function badge(phase) {
  const b = document.createElement("span");
  b.className = "badge " + phase;
  b.textContent = phase;
  return b;
}
let known = new Map(), stamp = "";
function take(state) {
  if (!state.delta) known = new Map();
  for (const e of state.elections)
    if (known.has(e.name) || known.size < 1000) known.set(e.name, { ...e, at: performance.now() / 1000 });
  stamp = state.stamp;
}
function left(e, passed) {
  return e.expires_in === undefined ? undefined : Math.max(0, e.expires_in - passed);
}
function show(state) {
  const body = document.querySelector("tbody"), list = document.querySelector("ol"), now = performance.now() / 1000;
  body.replaceChildren(...[...known.values()].map(e => {
    const row = document.createElement("tr"), passed = now - e.at;
    [e.name, badge(e.phase), e.leader || "–", String(e.epoch), span(left(e, passed)), span(e.since + passed), e.oracle]
      .forEach((child, i) => cell(row, i, child));
    return row;
  }));
  list.replaceChildren(...state.changes.map(c => {
    const item = document.createElement("li"), time = document.createElement("time");
    item.className = c.event.split(".")[1];
    time.textContent = new Date(c.time * 1000).toLocaleTimeString();
    item.append(time, [c.event.replace(".", ": "), c.name, c.leader && "leader " + c.leader, c.epoch && "epoch " + c.epoch,
      c.reason].filter(Boolean).join(" · "));
    return item;
  }));
  document.querySelector("#empty").hidden = state.changes.length > 0;
}
const live = document.querySelector("#live");
async function follow() {
  try {
    const answer = await fetch("api/elections/1000" + (stamp && "?since=" + stamp), { cache: "no-store" });
    const state = await answer.json();
    take(state);
    show(state);
    live.className = "on"; live.textContent = "live";
  } catch (problem) {
    live.className = "off"; live.textContent = "no answer since " + new Date().toLocaleTimeString();
    return setTimeout(follow, 2000);
  }
  setTimeout(follow, document.hidden ? 5000 : 1000);
}
follow();
]]

local function seconds(value)
  return value and ("%.1f s"):format(value) or "–"
end

local LABELS = { "Election", "State", "Leader", "Epoch", "Lease", "For", "Oracle" }

local function row_of(one)
  local cells = { escape(one.name), ('<span class="badge %s">%s</span>'):format(one.phase, one.phase),
    escape(one.leader or "–"), ("%d"):format(one.epoch), seconds(one.expires_in), seconds(one.since), escape(one.oracle) }
  for i, cell in ipairs(cells) do cells[i] = ('<td data-label="%s">%s</td>'):format(LABELS[i], cell) end
  return "<tr>" .. table.concat(cells) .. "</tr>"
end

local function change_of(change)
  local parts = { (change.event:gsub("%.", ": ", 1)), change.name, change.leader and "leader " .. change.leader,
    change.epoch and ("epoch %d"):format(change.epoch), change.reason }
  local text = {}
  for i = 1, 5 do
    if parts[i] then text[#text + 1] = escape(parts[i]) end
  end
  return ('<li class="%s"><time>%s</time>%s</li>'):format(change.event:match "%.(.*)$", os.date("%H:%M:%S", change.time),
    table.concat(text, " · "))
end

local function map(list, fn)
  local parts = {}
  for i = 1, #list do parts[i] = fn(list[i]) end
  return table.concat(parts, "\n")
end

local TEMPLATE = [[
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<header><h1>Elections on $node</h1><span class="soft">crown-lua $version, process $pid</span>
<span id="live" class="soft">as of $now; reload for more</span></header>
<main>
<table>
<thead><tr>$head</tr></thead>
<tbody>
$rows
</tbody>
</table>
$more
<h2>Last changes</h2>
<ol>
$changes
</ol>
<p id="empty" class="soft"$hidden>Nothing has changed since this page is served.</p>
</main>
<script>$script</script>
</body>
</html>
]]

--- Renders the page.
-- @tparam table state `node`, `version`, `pid`, `elections`, `changes`
-- @treturn string HTML
function page.render(state)
  local head = {}
  for i, word in ipairs(LABELS) do head[i] = "<th>" .. word .. "</th>" end
  local values = {
    title = escape("Elections on " .. state.node), style = STYLE, script = SCRIPT, node = escape(state.node),
    version = escape(state.version), pid = ("%d"):format(state.pid), now = os.date "%H:%M:%S", head = table.concat(head),
    rows = map(state.elections, row_of), changes = map(state.changes, change_of),
    hidden = #state.changes > 0 and " hidden" or "",
    more = state.total > #state.elections and ('<p class="soft">and %d more: <a href="api/elections">all as JSON</a></p>')
      :format(state.total - #state.elections) or "",
  }
  return (TEMPLATE:gsub("%$(%l+)", values))
end

return page
