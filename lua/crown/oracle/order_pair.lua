--- Operators' orders for an oracle of the user's own, by two functions of its module: `look_orders(opts, name)` → the text that
-- stands beside the election, false where none does; `swap_orders(opts, name, was, now)` → true, or false where another text than
-- `was` stands. False in their place is none. Both return nil, a reason and perhaps a code where nobody knows. All that an order
-- means is crown.oracle.ordered's. docs/custom-oracles.md tells authors of it.
-- @internal crown.oracle.order_pair

local ordered = require "crown.oracle.ordered"
local usage = require "crown.check.usage"

local pair = {}

local PATROL = 5 -- seconds at most from one look at the orders to the next

-- --- the store of orders

local Orders = {}
Orders.__index = Orders

local FITS = {
  look_orders = function(found) return found == false or type(found) == "string" end,
  swap_orders = function(done) return type(done) == "boolean" end,
}

local function settle(self, fn, fine, first, problem, code)
  if fine and FITS[fn](first) then return first end
  if not fine then return nil, ("the oracle '%s' failed in %s: %s"):format(self.word, fn, usage.one_line(first)), "store" end
  if first == nil and type(problem) == "string" then return nil, problem, code end
  return nil, ("oracle '%s': %s returned %s: see the oracle contract"):format(self.word, fn,
    first == nil and "nil without a reason" or ("a %s"):format(type(first))), "store"
end

local function ask(self, fn, ...) return settle(self, fn, pcall(self.module[fn], self.opts, ...)) end

-- A pair of functions cannot list: what stands beside elections that `list` tells of is all that is known.
local function names_of(self)
  if self.name then return { self.name } end
  local found, problem, code = self.module.list(self.opts)
  if not found then return nil, problem, code end
  local names = {}
  for i, one in ipairs(found) do names[i] = one.name end
  return names
end

--- As crown.oracle.order_book has it. A text is its own version.
function Orders:read(names)
  local found, problem, code = {}, nil, nil
  if not names then names, problem, code = names_of(self) end
  for _, name in ipairs(names or {}) do
    local text
    text, problem, code = ask(self, "look_orders", name)
    if text == nil then return nil, problem, code end
    found[name] = text and text ~= "" and { text = text, version = text }
  end
  return names and found, problem, code
end

--- As crown.oracle.order_book has it.
function Orders:write(name, text, version) return ask(self, "swap_orders", name, version, text or false) end

-- --- the oracle

local function noted(self, verdict, second, ...)
  local goes = type(second) == "table" and second.evicted -- it leads until it has gone
  if verdict ~= nil and not (verdict == false and goes) then self.leading = verdict == true end
  return verdict, second, ...
end

local function name_of(opts) return tostring(opts.lock or opts.crown_name) end

-- What a list without an answer says counts as nobody: or else a lower preference would wait for ever where `list` is broken, and
-- claims are not.
local function holder_of(self)
  local fine, found = pcall(self.module.list, self.opts, self.name)
  for _, one in ipairs(fine and found or {}) do
    if one.name == self.name and one.node then return { node = one.node, epoch = one.epoch } end
  end
  return false
end

local function patrol_of(self)
  local _, delay = nil, nil
  if self.module.timing then _, delay = self.module.timing(self.opts) end
  return math.min(PATROL, delay or PATROL)
end

-- The user's module, with states of ours: the user's may be any value.
local function standing_in(module, ignored)
  local made = setmetatable({}, { __index = module })
  function made.init(opts)
    local state, problem, code = module.init(opts)
    if state == ignored then return nil, ignored end
    if state == nil then return nil, problem, code end
    return { module = module, state = state, opts = opts, name = name_of(opts), leading = false }
  end
  function made.claim(self) return noted(self, module.claim(self.state)) end
  function made.refresh(self) return noted(self, module.refresh(self.state)) end
  function made.abdicate(self, ...)
    self.leading = false
    return module.abdicate(self.state, ...)
  end
  function made.handle_info(self, message)
    if module.handle_info then return noted(self, module.handle_info(self.state, message)) end
  end
  function made.warnings(self) return module.warnings and module.warnings(self.state) or {} end
  return made
end

-- What `check --store` asks, and `info`, which names no election.
local function health_with(module, store_of)
  return function(opts)
    local found, problem, code = {}, nil, nil
    if module.health then found, problem, code = module.health(opts) end
    if not found or not opts.crown_name then return found, problem, code end
    local stands
    stands, problem = store_of(opts):read { name_of(opts) }
    if stands then return found end
    local warnings = { unpack(found.warnings or {}) }
    warnings[#warnings + 1] = "operators' orders cannot be read: " .. problem
    return setmetatable({ warnings = warnings }, { __index = found })
  end
end

--- Has an oracle of the user's own take orders.
-- @tparam table module with the two functions, `list` and `abdicate`; it stays as it is
-- @string word what messages call it
-- @param ignored what its `init` returns to take no part
-- @treturn table an oracle that obeys orders and asks that module for all else; its `init` gets the election of
-- crown.oracle.candidate as a second argument
function pair.oracle(module, word, ignored)
  local function store_of(opts, name) return setmetatable({ module = module, word = word, opts = opts, name = name }, Orders) end
  local made = ordered.oracle(standing_in(module, ignored), { word = word, holder = holder_of, patrol = patrol_of,
    owner = function(self) return self, self.name end,
    leads = function(self) return self.leading end,
    store = function(self) return store_of(self.opts) end,
    visit = function(opts, fn, name) return fn(store_of(opts, name)) end })
  local init = made.init
  function made.init(opts, election)
    local state, problem, code = init(opts, election)
    if problem == ignored then return ignored end
    return state, problem, code
  end
  made.health = health_with(module, store_of)
  return made
end

return pair
