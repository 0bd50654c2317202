--- What a candidate's own options say of who leads, and when, for those who look at it: `crown-lua status`, the status page,
-- /api/elections. The store's view of a preference is in `crown-lua info`.
-- @internal crown.text.own_rules

local figure = require "crown.check.figure"

local own_rules = {}

local has_any = false -- most runtimes have none, and perhaps a hundred thousand elections

local PLAIN = { "never", "preference", "preference_wait", "preempt", "last_resort" }

--- Those that an election's options give.
-- @tparam table checked the options
-- @treturn table `never`, `preference`, `preference_wait`, `preempt`, `last_resort`, `healthy` (whether there is a check),
-- `window` (an array), `watchdog` of its child; or nil: none
function own_rules.of(checked)
  local found = {}
  for _, name in ipairs(PLAIN) do found[name] = checked[name] or nil end
  if found.preference == 0 then found.preference = nil end
  found.healthy = checked.healthy ~= nil or nil
  found.window = type(checked.window) == "string" and { checked.window } or checked.window
  found.watchdog = type(checked.child) == "table" and checked.child.watchdog or nil
  if not next(found) then return nil end
  has_any = true
  return found
end

--- Adds them to statuses, as `rules`.
-- @tparam table list an array of statuses of this runtime's elections
-- @tparam function find name, node → the election as Lua knows it, with `own_rules`; or nil
-- @treturn table the list
function own_rules.add(list, find)
  for _, one in ipairs(has_any and list or {}) do
    local election = find(one.name, one.node) or find(one.name)
    one.rules = election and election.own_rules
  end
  return list
end

--- Puts them into words.
-- @tparam table one an election's status
-- @treturn string such as "prefer 10, preempt 300 s, watchdog 10 s"; nil: it has none
function own_rules.words(one)
  local rules, parts = one.rules, {}
  if not rules then return nil end
  local function add(text, value) parts[#parts + 1] = value and text:format(figure.exact(value)) or text end
  if rules.never then add "only follows" end
  if rules.preference then add("prefer %s", rules.preference) end
  if rules.preference_wait then add("wait %s s", rules.preference_wait) end
  if rules.preempt then add("preempt %s s", rules.preempt) end
  if rules.healthy then add "while healthy" end
  if rules.last_resort then add "last resort" end
  for _, hours in ipairs(rules.window or {}) do parts[#parts + 1] = hours end
  if rules.watchdog then add("watchdog %s s", rules.watchdog) end
  return table.concat(parts, ", ")
end

return own_rules
