--- How the status page looks: light and dark, wide and narrow.
-- @internal crown.web.style

return [[
:root { color-scheme: light dark; --ink: #1c2128; --soft: #59636e; --paper: #fff; --panel: #f6f8fa; --line: #d1d9e0;
  --good: #1a7f37; --bad: #cf222e; --wait: #9a6700; --accent: #0969da;
  --goodback: #dafbe1; --badback: #ffebe9; --waitback: #fff8c5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --panel: #151b23;
  --line: #3d444d; --good: #3fb950; --bad: #f85149; --wait: #d29922; --accent: #4493f8; --goodback: #12261e; --badback: #2d1517;
  --waitback: #272115; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; margin-bottom: 1rem; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.soft { color: var(--soft); } #live::before { content: "●"; margin-right: .35em; color: var(--wait); }
#live.on::before { color: var(--good); } #live.off::before { color: var(--bad); }
#live.off { color: var(--bad); font-weight: 600; }
#alarms { list-style: none; margin: 0 0 1rem; padding: 0; border: 0; }
#alarms li { padding: .5rem .9rem; margin: 0 0 .4rem; border-left: 4px solid var(--good); border-radius: .25rem;
  background: var(--goodback); font-weight: 600; overflow-wrap: anywhere; }
#alarms li::before { display: none; }
#alarms li.bad { border-color: var(--bad); background: var(--badback); }
#alarms li.warn { border-color: var(--wait); background: var(--waitback); }
#alarms p { margin: 0; font-weight: 400; }
a { color: var(--accent); } nav { display: flex; gap: 1rem; flex-basis: 100%; } nav a[aria-current] { color: var(--ink);
  font-weight: 600; text-decoration: none; }
a:focus-visible, input:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
td.name a { color: inherit; text-decoration-color: var(--soft); }
.problem { color: var(--bad); font-weight: 600; } section p { margin: .25rem 0; max-width: 50rem; }
#filter { width: 100%; max-width: 24rem; margin-bottom: .75rem; padding: .4rem .7rem; font: inherit; color: inherit;
  background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--line); padding: .4rem .6rem; }
td { border-bottom: 1px solid var(--line); padding: .45rem .6rem; overflow-wrap: break-word; vertical-align: top; }
td.name, td.change { overflow-wrap: anywhere; min-width: 9rem; }
td:first-child { font-weight: 600; } td.bad { color: var(--bad); font-weight: 600; }
td.warn { color: var(--wait); font-weight: 600; } td.lease { min-width: 10rem; }
td.change { color: var(--soft); font-size: .9em; } td.leader, td.epoch, td.for { white-space: nowrap; }
.badge { display: inline-block; padding: 0 .55em; border-radius: 1em; border: 1px solid currentColor; font-size: .85em;
  color: var(--soft); white-space: nowrap; }
.badge.leading { color: var(--good); font-weight: 600; } .badge.cooling, .badge.finishing, .badge.init { color: var(--wait); }
ol { list-style: none; margin: 0; padding: 0 0 0 1rem; border-left: 2px solid var(--line); }
li { position: relative; padding: .15rem 0 .15rem .35rem; overflow-wrap: anywhere; }
ol li::before { content: ""; position: absolute; left: calc(-1rem - 5px); top: .62em; width: 8px; height: 8px;
  border-radius: 50%; background: var(--soft); }
li.claimed::before { background: var(--good); }
li.lost::before, li.killed::before, li.error::before, li.amnesia::before, li.unfenced::before { background: var(--bad); }
time { color: var(--soft); font-variant-numeric: tabular-nums; margin-right: .6em; white-space: nowrap; }
@media (max-width: 68rem) { th:last-child, td.change { display: none; } }
@media (max-width: 54rem) { thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 0 .8rem; align-items: baseline; background: var(--panel);
    border: 1px solid var(--line); border-radius: .5rem; margin-bottom: .6rem; padding: .5rem .75rem; }
  td { border: 0; padding: 0; font-size: .9rem; } td:first-child { font-size: 1.1rem; flex: 1; }
  td.leader::before, td.epoch::before, #jobs td:not(:first-child)::before {
    content: attr(data-label) " "; color: var(--soft); font-weight: 400; }
  td.break { flex-basis: 100%; } td.none, td.running, td.for, td.store, td.change { display: none; }
  td.bad, td.warn { display: block; } td.lease, td.name { min-width: 0; } }
@media (min-width: 54.01rem) { .break { display: none; } }
]]
