--- The elections of the runtimes on this host.
-- @module crown.command.status

local console = require "crown.core.console"
local control = require "crown.control"
local json = require "crown.text.json"
local tables = require "crown.command.tables"
local watch = require "crown.command.watch"

local status = {
  summary = "the elections of your runtimes on this host",
  usage = "crown-lua status [--stores] [--json] [--watch]",
  most_words = 0,
  options = {
    { name = "stores", help = "their connections to stores instead" },
    { name = "json", help = "for programs" },
    { name = "watch", help = "show it again every second, in place" },
  },
  help = [[
Asks each runtime of this user by its socket in $CROWN_DIRECTORY (for root
/var/lib/crown-lua, else ~/.local/state/crown-lua); root sees those of units too. Exit code 1 when there is none.

With --stores: each connection's state (resolving, dialling, connecting, handshaking, logging in, open, proven, broken) and for
how long, when its server answered last, how often it was lost, and the last error.]],
}

local HEADING = { "Election", "Phase", "Leader", "Epoch", "Expires in", "Since", "Child", "Oracle", "Runtime" }
local STORES_HEADING = { "Store", "Server", "State", "Since", "Last answer", "Reconnects", "Last error", "Runtime" }

local function seconds(value)
  return value and ("%.1f s"):format(value) or "-"
end

local function child_of(one)
  if not one.child then return "-" end
  return ("%d%s"):format(one.child, one.child_lives_on and " lives on" or "")
end

local function rows_of(runtimes)
  local rows = {}
  for _, runtime in ipairs(runtimes) do
    local pid = ("%d"):format(runtime.pid)
    if runtime.error then rows[#rows + 1] = { "-", "no answer", "-", "-", "-", "-", "-", "-", pid } end
    for _, one in ipairs(runtime.elections or {}) do
      rows[#rows + 1] = { one.name, one.phase, one.leader or "-", ("%d"):format(one.epoch), seconds(one.expires_in),
        seconds(one.since), child_of(one), one.oracle, pid }
    end
  end
  return rows
end

local function store_rows_of(runtimes)
  local rows = {}
  for _, runtime in ipairs(runtimes) do
    local pid = ("%d"):format(runtime.pid)
    if runtime.error then rows[#rows + 1] = { "-", "-", "no answer", "-", "-", "-", "-", pid } end
    for _, one in ipairs(runtime.stores or {}) do
      rows[#rows + 1] = { one.store, one.server or "-", one.state, seconds(one.since), seconds(one.answered),
        ("%d"):format(one.reconnects), one.error or "-", pid }
    end
  end
  return rows
end

local VIEWS = {
  elections = { ask = "status", heading = HEADING, rows = rows_of },
  stores = { ask = "stores", heading = STORES_HEADING, rows = store_rows_of },
}

--- The verb.
function status.run(options)
  local count = 0
  local list = options.stores and "stores" or "elections"
  local view = VIEWS[list]
  local function make()
    local runtimes = control.ask_all { ask = view.ask }
    count = #runtimes
    if options.json then return json.line({ runtimes = runtimes }, "runtimes", list) end
    if count == 0 then return "no runtime of yours runs here\n" end
    return tables.text(view.heading, view.rows(runtimes), console.columns(1))
  end
  if options.watch then return watch(make) end
  io.write((make()))
  return count > 0 and 0 or 1
end

return status
