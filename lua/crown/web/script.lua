--- What keeps the status page up to date: it follows /api/elections and draws what has changed.
-- @internal crown.web.script

return [[
"use strict";
const labels = @LABELS@, kinds = @KINDS@;
const $ = selector => document.querySelector(selector);
function span(s) {
  if (s === undefined || s === null) return "–";
  if (s < 10) return s.toFixed(1) + " s";
  if (s < 60) return Math.floor(s) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}
function zone(minutes) {
  const two = n => String(Math.floor(n)).padStart(2, "0"), most = Math.abs(minutes);
  return (minutes < 0 ? "-" : "+") + two(most / 60) + two(most % 60);
}
function moment(date) {
  const two = n => String(n).padStart(2, "0");
  return date.getFullYear() + "-" + two(date.getMonth() + 1) + "-" + two(date.getDate()) + " " + two(date.getHours()) + ":"
    + two(date.getMinutes()) + ":" + two(date.getSeconds()) + " " + zone(-date.getTimezoneOffset());
}
function element(tag, text, name) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(text);
  return made;
}
function lease(e, passed) {
  if (e.expires_in !== undefined && !e.amnesia) return "ends in " + span(Math.max(0, e.expires_in - passed));
  if (e.phase === "leading" || e.next_claim_in === undefined) return "–";
  return "next claim in " + span(Math.max(0, e.next_claim_in - passed));
}
function leader(e, passed) {
  if (!e.leader) return "–";
  const old = e.barred && e.phase === "following" && e.answered + passed >= 2;
  return old ? e.leader + ", " + span(e.answered + passed) + " ago" : e.leader;
}
function phase(e, passed) {
  const badge = element("span", e.phase, "badge " + e.phase);
  const why = (e.barred || []).map(b => b.reason + " for " + span(b.since + passed) + ": " + b.why).join("; ");
  if (e.acts_in === undefined && !why) return badge;
  const cell = element("span", badge);
  cell.append(" ", element("span", why ? "may not lead: " + why : "acts in " + span(Math.max(0, e.acts_in - passed)), "soft"));
  return cell;
}
function child(e) {
  const besides = e.child_unfenced ? ", works on without leading" : e.child_lives_on ? ", lives on" : "";
  if (e.child !== undefined) return "pid " + e.child + besides;
  if (e.child_signal !== undefined) return "ended by signal " + e.child_signal;
  return e.child_code === undefined ? "–" : "ended with " + e.child_code;
}
function store(e, passed) {
  const how = e.answers ? ": answers with a failure for " : ": no answer for ";
  if (e.away !== undefined) return e.oracle + how + span(e.away + passed);
  return e.amnesia ? e.oracle + ": may have forgotten who leads" : e.oracle;
}
function change(c) {
  const how = c.signal !== undefined ? "by signal " + c.signal : c.code !== undefined ? "with " + c.code : undefined;
  return [c.event.replace(".", ": ").replace("_", " "), c.leader && "leader " + c.leader, c.epoch && "epoch " + c.epoch, how,
    c.reason].filter(Boolean).join(" · ");
}
let urgent = new Set();
function troubled(e) { return urgent.has(key(e)) || e.away !== undefined || e.child_unfenced || e.amnesia ? 1 : 0; }
function alarm(a) {
  const item = element("li", a.text, a.level);
  if (!a.key) return item;
  const first = element("p", a.first + " "), more = element("a", "More");
  more.href = "help#" + a.key;
  first.append(more);
  item.append(first);
  return item;
}
function key(e) { return e.name + "\n" + e.node; }
function rules(r) {
  return [r.never && "only follows", r.preference && "prefer " + r.preference,
    r.preference_wait && "wait " + r.preference_wait + " s", r.preempt && "preempt " + r.preempt + " s",
    r.healthy && "while healthy", r.last_resort && "last resort", ...(r.window || []),
    r.watchdog && "watchdog " + r.watchdog + " s"].filter(Boolean).join(", ");
}
function named(e) {
  const cell = document.createElement("span");
  const link = element("a", e.name);
  link.href = "history/" + e.name;
  cell.append(link);
  for (const text of [e.node !== last.node && e.node, e.rules && rules(e.rules)])
    if (text) cell.append(" ", element("span", text, "soft"));
  return cell;
}
let known = new Map(), stamp = "", last = null;
function take(state) {
  if (!state.delta) known = new Map();
  for (const e of state.troubled) known.set(key(e), { ...e, at: performance.now() / 1000 });
  for (const e of state.elections)
    if (known.has(key(e)) || known.size < 1000) known.set(key(e), { ...e, at: performance.now() / 1000 });
  urgent = new Set(state.troubled.map(key));
  stamp = state.stamp;
  last = state;
}
function row(e, latest, now) {
  const tr = document.createElement("tr"), passed = now - e.at, c = latest.get(e.name);
  const cells = [named(e), phase(e, passed), leader(e, passed), e.epoch ? String(e.epoch) : "–",
    lease(e, passed), span(e.since + passed), child(e), store(e, passed),
    c ? moment(new Date(c.time * 1000)) + " " + change(c) : "–"];
  cells.forEach((cell, i) => {
    const bad = kinds[i] === "command" && e.child_unfenced || kinds[i] === "store" && e.away !== undefined;
    const doubted = kinds[i] === "store" && e.amnesia;
    const running = kinds[i] === "command" && e.child;
    const besides = bad ? " bad" : doubted ? " warn" : cell === "–" ? " none" : running ? " running" : "";
    const td = element("td", cell, kinds[i] + besides);
    td.dataset.label = labels[i];
    tr.append(td);
    if (i === 1) tr.append(element("td", "", "break"));
  });
  return tr;
}
function matches(e, wanted) {
  return [e.name, e.node, e.phase, e.leader, e.oracle].some(text => text && text.toLowerCase().includes(wanted));
}
function show() {
  const now = performance.now() / 1000, wanted = $("#filter").value.trim().toLowerCase(), latest = new Map();
  for (const c of last.changes) if (c.name && !latest.has(c.name)) latest.set(c.name, c);
  const shown = [...known.values()].filter(e => !wanted || matches(e, wanted));
  shown.sort((a, b) => troubled(b) - troubled(a)); // keeps the order of all others
  $("#elections tbody").replaceChildren(...shown.map(e => row(e, latest, now)));
  $("ol").replaceChildren(...last.changes.filter(c => !wanted || (c.name || "").toLowerCase().includes(wanted)).map(c => {
    const item = element("li", element("time", moment(new Date(c.time * 1000))), c.event.split(".")[1]);
    item.append((c.name ? c.name + " · " : "") + change(c));
    return item;
  }));
  $("#empty").hidden = last.changes.length > 0;
  const led = last.led + " of " + last.total + " led here";
  document.title = (last.alarms.length ? "⚠ " : "") + led + " – " + last.node;
  $("#alarms").replaceChildren(...(last.alarms.length ? last.alarms.map(alarm)
    : [element("li", "All is well: " + led + ".", "good")]));
}
function job(j, heading) {
  const tr = document.createElement("tr");
  j.cells.forEach((cell, i) => {
    const td = element("td", cell, i === j.cells.length - 1 ? j.level : cell === "-" ? "none" : "");
    td.dataset.label = heading[i];
    tr.append(td);
  });
  return tr;
}
async function jobs() {
  try {
    const state = await (await fetch("api/jobs", { cache: "no-store" })).json();
    $("#jobs tbody").replaceChildren(...state.jobs.slice(0, 1000).map(j => job(j, state.heading)));
  } catch (problem) { /* follow() says that there is no answer */ }
  setTimeout(jobs, document.hidden ? 60000 : 5000);
}
const live = $("#live");
$("#filter").addEventListener("input", () => last && show());
$("#filter").hidden = false;
async function follow() {
  try {
    const answer = await fetch("api/elections/1000" + (stamp && "?since=" + stamp), { cache: "no-store" });
    take(await answer.json());
    show();
    live.className = "on"; live.textContent = "live";
  } catch (problem) {
    if (live.className !== "off") live.textContent = "no answer since " + moment(new Date());
    live.className = "off";
    return setTimeout(follow, 2000);
  }
  setTimeout(follow, document.hidden ? 5000 : 1000);
}
follow();
if ($("#jobs")) jobs();
]]
