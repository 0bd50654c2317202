--- crown: elections, and what their oracles and handlers need. Everything that has to wait suspends the task that
-- calls it, never the loop; it takes a timeout in seconds and returns nil, message, code when it fails.
-- @module crown

local core = require "crown.core"
local elect = require "crown.elect"
local json = require "crown.text.json"
local shares = require "crown.election.shares"
local usage = require "crown.check.usage"

-- Values of the log's fields are numbers, switches and texts.
local function loggable(fields)
  if type(fields) ~= "table" then return fields end
  local plain = {}
  for key, value in pairs(fields) do
    local kind = type(value)
    if kind == "table" then
      local encoded, text = pcall(json.ordered, value)
      value = encoded and text or tostring(value)
    elseif kind ~= "number" and kind ~= "boolean" then
      value = tostring(value)
    end
    plain[tostring(key)] = value
  end
  return plain
end

-- Declares the shares of one work: crown.elect with `shares`, which is `count` here.
local function share(given)
  if type(given) ~= "table" then usage.error("crown.shares: a table of options expected, not a %s", type(given)) end
  local options = {}
  for name, value in pairs(given) do options[name] = value end
  options.shares, options.count = given.count == nil and shares.COUNT or given.count, nil
  return elect(options)
end

local crown = {
  elect = elect,
  shares = share,
  on = require("crown.election.events").on,
  sleep = core.sleep,
  spawn = core.spawn,
  now = core.now,
  json = { encode = json.exact, decode = core.json.decode, null = core.json.null },

  tcp = require "crown.core.tcp",
  exec = require "crown.core.exec",
  watch_file = require "crown.core.watch_file",
  node = core.node(),
  token = core.token,
  version = core.version,
  IGNORE = require("crown.election.contract").IGNORE,
  log = {},
}

for _, level in ipairs { "debug", "info", "warn", "error" } do
  -- Writes to the log: `crown.log.info(text [, fields])`, and so debug, warn, error. A table among the fields is written as JSON.
  crown.log[level] = function(text, fields) core.log(level, tostring(text), loggable(fields)) end
end

-- Clients that most apps have no use for are loaded when they are first asked for.
local CLIENTS = { postgres = "crown.postgres", http = "crown.http", redis = "crown.redis" }

-- A name that is none of ours is a slip of the pen. What begins with two underlines other programs look for in any table.
local function unknown(self, key)
  if type(key) ~= "string" or key:find "^__" then return nil end
  local names = usage.names(self)
  for name in pairs(CLIENTS) do names[#names + 1] = name end
  usage.error("crown has no '%s'%s; docs/app.md has the list", key, usage.suggest(key, names))
end

setmetatable(crown, { __index = function(self, key)
  if not CLIENTS[key] then return unknown(self, key) end
  self[key] = require(CLIENTS[key])
  return self[key]
end })

return crown
