--- Connections of runtimes to their stores, as the verb status shows them to people.
-- @internal crown.command.stores

local printable = require "crown.text.printable"
local tables = require "crown.command.tables"
local words = require "crown.command.words"

local stores = {}

local HEADING = { "Store", "Server", "State", "Since", "Last answer", "Reconnects", "Connections", "Runtime", "Last error" }
local ERROR = 9 -- the column of the last error
local LAYOUT = { spare = { "Runtime", "Connections", "Reconnects", "Last answer", "Since" }, long = { Server = 21 } }

local function seconds(value)
  return value and words.span(value) or "-"
end

-- How many the server may see, and at most.
local function connections(one)
  if not one.connections then return "-" end
  return one.limit and ("%d of %d"):format(one.connections, one.limit) or ("%d"):format(one.connections)
end

local function rows_of(runtimes)
  local rows = {}
  for _, runtime in ipairs(runtimes) do
    local pid = ("%d"):format(runtime.pid)
    if runtime.error then rows[#rows + 1] = { "-", "-", "no answer", "-", "-", "-", "-", pid, "-" } end
    for _, one in ipairs(runtime.stores or {}) do
      rows[#rows + 1] = { one.store, one.server or "-", one.state, seconds(one.since), seconds(one.answered),
        ("%d"):format(one.reconnects), connections(one), pid, one.error or "-" }
    end
  end
  return rows
end

-- Errors are sentences: where they do not fit beside the rest they stand below, whole, each once.
local function errors_below(rows)
  local lines, seen = {}, {}
  for _, row in ipairs(rows) do
    local about = printable(row[2]) .. ": " .. printable(row[ERROR])
    if row[ERROR] ~= "-" and not seen[about] then -- a client's second connection says the same
      seen[about], lines[#lines + 1] = true, ("%s %s\n"):format(printable(row[1]), about)
    end
    row[ERROR] = nil
  end
  return table.concat(lines)
end

--- Lays them out, as the terminal allows.
-- @tparam table runtimes what they answered
-- @number[opt] columns of the terminal; nil: none
-- @treturn string
function stores.text(runtimes, columns)
  local rows = rows_of(runtimes)
  if #rows == 0 then return "no runtime of yours has a connection to a store\n" end
  if not columns or tables.width(HEADING, rows) <= columns then return tables.text(HEADING, rows, columns) end
  local below = errors_below(rows)
  return tables.text({ unpack(HEADING, 1, ERROR - 1) }, rows, columns, LAYOUT) .. below
end

return stores
